"""Merge baseline files for git, line by line: cases that one side changed are taken, others stay.

  git config merge.perfgate.driver "perfgate merge-driver %O %A %B %P"
  echo "baselines/**/*.yaml merge=perfgate" >> .gitattributes

A case that both sides accepted differently stays a conflict, of that line alone.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from pytest_perfgate.cli.looking import write, write_json


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("base", metavar="BASE", help="the common ancestor (%%O)")
    parser.add_argument("ours", metavar="OURS", help="our file, which gets the result (%%A)")
    parser.add_argument("theirs", metavar="THEIRS", help="their file (%%B)")
    parser.add_argument("path", nargs="?", default="", metavar="PATH", help="its path, for messages (%%P)")


def run(options: Namespace) -> int:
    from pytest_perfgate.wiring.stores import merge_baselines

    conflicts = merge_baselines(Path(options.base), Path(options.ours), Path(options.theirs), options.path)
    if options.json:
        write_json({"conflicts": list(conflicts), "path": options.path})
    else:
        for name in conflicts:
            write(f"{options.path or options.ours}: both sides accepted '{name}' differently")
    return 1 if conflicts else 0
