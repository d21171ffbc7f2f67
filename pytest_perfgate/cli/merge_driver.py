"""Merge baseline files for git, line by line: cases that one side changed are taken, others stay."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from pytest_perfgate.cli.looking import write, write_json

MERGE_DRIVER_ABOUT = """Merge baseline files for git, line by line: cases that one side changed are taken, others stay.

  perfgate doctor    tells the two commands that set it up, where they are missing

A case that both sides accepted differently stays a conflict, of that line alone. A side that does not read is
left as git leaves a conflict: both sides between markers.
"""


def merge_driver_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("base", metavar="BASE", help="the common ancestor (%%O)")
    parser.add_argument("ours", metavar="OURS", help="our file, which gets the result (%%A)")
    parser.add_argument("theirs", metavar="THEIRS", help="their file (%%B)")
    parser.add_argument("path", nargs="?", default="", metavar="PATH", help="its path, for messages (%%P)")


def run_merge_driver(options: Namespace) -> int:
    from pytest_perfgate.wiring.stores import merge_baselines

    conflicts = merge_baselines(Path(options.base), Path(options.ours), Path(options.theirs), options.path)
    if options.json:
        told = dict(conflicts)
        write_json({"conflicts": list(told), "what": told, "path": options.path})
    else:
        for name, what in conflicts:
            write(f"{options.path or options.ours}: {name}: {what}")
    return 1 if conflicts else 0
