"""Compare two files of one kind, or two runs; the first is the reference. Limits are optional.

  perfgate compare before.sqlite after.sqlite "slowdown(kernel=*nccl*) <= 5%"

For jobs of several files: perfgate compare before0 before1 -- after0 after1
"""

from __future__ import annotations

import argparse
from pathlib import Path

from pytest_perfgate.app.check import compare, exit_of
from pytest_perfgate.app.inspect import view
from pytest_perfgate.cli import looking
from pytest_perfgate.cli.verdicts import deliver, split_limits, split_sides
from pytest_perfgate.core.render.text import render_text


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("words", nargs="+", metavar="FILE|LIMIT")
    parser.add_argument("--view", default="", help="one view of the comparison")
    parser.add_argument("--junit", metavar="FILE", help="write a JUnit file of the verdicts")
    parser.add_argument("--reports", metavar="FOLDER", help="write the reports of this comparison and all its tables")
    looking.add_options(parser)


def run(options: argparse.Namespace) -> int:
    words, limits = split_limits(options.words)
    before, after = split_sides(words)
    look = looking.look(options)
    found, verdicts = compare(looking.named_files(before), looking.named_files(after), limits, look)
    if options.reports:
        from pytest_perfgate.wiring.looking import write_reports

        looking.write("\n".join(map(str, write_reports(Path(options.reports), found))))
    elif not options.json:
        looking.write(render_text(view(found, options.view)))
    if verdicts or options.json:
        deliver(options, found, verdicts)
    return exit_of(verdicts)
