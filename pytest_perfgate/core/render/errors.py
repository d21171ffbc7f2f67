"""The page of error codes, made from their tables."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_perfgate.model.codes.family import Code, Family


def render_errors(codes: Mapping[str, Code]) -> str:
    """Every code by family, with the exit code of the command line."""
    lines = [
        "# Error codes",
        "",
        "Every error says what happened and where, why it matters, and what mends it. Its code in square brackets is",
        "the anchor below. This page is made from the tables in `pytest_perfgate/model/codes`: `python ci/errors`.",
    ]
    for family in Family:
        members = sorted((code for code in codes.values() if code.family is family), key=lambda code: code.name)
        if members:
            lines += ["", f"## {family.name.capitalize()}: exit code {family.exit}"]
        for code in members:
            lines += ["", f"### {code.name}", "", f"{code.title}."]
            lines += ["", f"Why it matters: {code.why}."] if code.why else []
            lines += ["", f"Next: {_verbatim(code.mend)}"] if code.mend else []
    return "\n".join(lines) + "\n"


def _verbatim(text: str) -> str:
    """Commands keep their signs."""
    return f"`{text}`" if "`" not in text and any(sign in text for sign in "<>*_[]") else text
