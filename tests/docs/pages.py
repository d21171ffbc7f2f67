"""Code blocks of the pages, in order, with what a comment before them says about each.

``<!-- file: NAME -->`` writes the block into the page's project, ``<!-- append: NAME -->`` adds to a file there,
``<!-- with: FILE, FILE in FOLDER -->`` copies files of this project into a folder of the page's before the block runs;
machine code needs NVIDIA's tools, and without them the block is left alone.
``<!-- not run: REASON -->`` leaves it alone and must give a reason.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
RUN = {"python", "console", "toml", "ini", "yaml", "diff", "cmake"}
_FENCE = re.compile(
    r"^(?P<fence>`{3,})(?P<language>[\w-]*)[^\n]*\n(?P<text>.*?)^(?P=fence)\s*$", re.MULTILINE | re.DOTALL
)
_COMMENT = re.compile(r"<!--\s*(?P<key>file|append|with|not run):\s*(?P<value>(?:(?!-->).)*?)\s*-->\s*\Z", re.DOTALL)


@dataclass(frozen=True)
class Block:
    page: str
    line: int
    language: str
    text: str
    key: str = ""
    value: str = ""

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    entries = []
    for fence in _FENCE.finditer(text):
        comment = _COMMENT.search(text[: fence.start()])
        entries.append(
            Block(
                page=page.name,
                line=text.count("\n", 0, fence.start()) + 1,
                language=fence["language"],
                text=fence["text"],
                key=comment["key"] if comment else "",
                value=comment["value"] if comment else "",
            )
        )
    return entries


def commands(block: Block) -> list[tuple[str, list[str]]]:
    """(command, expected lines) of a console block; a backslash continues a command."""
    entries: list[tuple[str, list[str]]] = []
    continued = False
    for line in block.text.splitlines():
        if continued:
            entries[-1] = (entries[-1][0] + "\n" + line.removeprefix("> "), [])
        elif line.startswith("$ "):
            entries.append((line[2:], []))
        elif entries:
            entries[-1][1].append(line)
        else:
            raise AssertionError(f"{block.place}: a console block starts with a command")
        continued = not entries[-1][1] and entries[-1][0].endswith("\\")
    return entries


def pattern(line: str) -> re.Pattern[str]:
    """An expected line: numbers stand for any number, ``...`` for anything, blanks for any blanks."""
    parts = []
    for word in re.split(r"(\.\.\.|\s+|[-+]?\d[\d.,]*)", line.strip()):
        if word == "...":
            parts.append(r".*")
        elif not word.strip():
            parts.append(r"\s*" if word else "")
        elif re.fullmatch(r"[-+]?\d[\d.,]*", word):
            parts.append(r"[-+]?\d[\d.,]*")
        else:
            parts.append(re.escape(word))
    return re.compile("".join(parts))


def unmet(expected: list[str], output: str) -> str:
    """The first expected line that does not come in order, or nothing."""
    lines = iter(output.splitlines())
    for wanted in expected:
        if wanted.strip() in {"", "..."}:
            continue
        if not any(pattern(wanted).search(line) for line in lines):
            return wanted
    return ""
