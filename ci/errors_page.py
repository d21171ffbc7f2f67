"""Writes docs/errors.md from the tables of error codes; a test holds it true."""

from __future__ import annotations

from pathlib import Path

from pytest_perfgate.model.codes import Family
from pytest_perfgate.model.errors import codes

PAGE = Path(__file__).resolve().parents[1] / "docs" / "errors.md"


def render() -> str:
    """Return every code by family, with the exit code of the command line."""
    lines = [
        "# Error codes",
        "",
        "Every error says what happened and where, why it matters, and what fixes it. Its code in square brackets is",
        "the anchor below. A command that an error stops has the exit code of its family; an INVALID limit has 4.",
        "This page is made from the tables in `pytest_perfgate/model/codes`:",
        "`python -m ci.errors_page`.",
    ]
    for family in Family:
        members = sorted((code for code in codes().values() if code.family is family), key=lambda code: code.name)
        if members:
            lines += ["", f"## {family.name.capitalize()}: exit code {family.exit}"]
        for code in members:
            lines += ["", f"### {code.name}", "", f"{code.title}."]
            lines += ["", f"Why it matters: {code.why}."] if code.why else []
            lines += ["", f"Next: {_verbatim(code.fix)}"] if code.fix else []
    return "\n".join(lines) + "\n"


def _verbatim(text: str) -> str:
    """Commands keep their signs."""
    return f"`{text}`" if "`" not in text and any(sign in text for sign in "<>*_[]") else text


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
