"""The help page of a command: paragraphs in the terminal's width, examples as they stand."""

from __future__ import annotations

import argparse
import textwrap


class Page(argparse.RawDescriptionHelpFormatter):
    """What begins with blanks is an example."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:  # noqa: ARG002 - argparse gives it
        paragraphs = textwrap.dedent(text).strip().split("\n\n")
        return "\n\n".join(
            p if p.startswith("  ") else textwrap.fill(p, width, break_on_hyphens=False) for p in paragraphs
        )
