"""Compare two files of one kind, or two runs; the first is the reference. Limits are optional."""

from __future__ import annotations

import argparse
from pathlib import Path

from pytest_perfgate.app.check import compare, exit_of
from pytest_perfgate.app.inspect import view
from pytest_perfgate.cli import looking, verdicts
from pytest_perfgate.cli.output import say
from pytest_perfgate.core.render.text import render_text

COMPARE_ABOUT = """Compare two files of one kind, or two runs; the first is the reference. Limits are optional.

  perfgate compare before.sqlite after.sqlite "slowdown(kernel=*nccl*) <= 5%"

For jobs of several files: perfgate compare before0 before1 -- after0 after1
"""


def compare_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("words", nargs="+", metavar="FILE|LIMIT")
    parser.add_argument("--view", default="", help="one view of the comparison")
    verdicts.add_options(parser)
    parser.add_argument("--reports", metavar="FOLDER", help="write the reports of this comparison and all its tables")
    looking.add_options(parser)


def run_compare(options: argparse.Namespace) -> int:
    words, limits = verdicts.split_limits(options.words)
    before, after = verdicts.split_sides(words)
    look = looking.judging_look(options)
    analysis, found = compare(looking.named_files(before), looking.named_files(after), limits, look)
    verdicts.write_files(options, analysis, found)
    if options.reports:
        from pytest_perfgate.wiring.looking import write_reports

        say("\n".join(map(str, write_reports(Path(options.reports), analysis))), options)
    elif not options.json and options.markdown != "-":
        looking.write(render_text(view(analysis, options.view), looking.columns(), looking.room()))
    if found or options.json:
        verdicts.deliver(options, analysis, found)
    return exit_of(found)
