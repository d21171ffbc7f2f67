"""Keeps the name of an option on one line of the site: browsers break a line after each of its hyphens."""

import re

WORDS = re.compile(r"<pre.*?</pre>|<[^>]*>|(?<![\w-])(--\w[\w-]*)", re.DOTALL)


def on_page_content(html: str, **_: object) -> str:
    """Return a page that marks each option outside of code blocks."""
    return WORDS.sub(lambda word: f'<span class="option">{word[1]}</span>' if word[1] else word[0], html)
