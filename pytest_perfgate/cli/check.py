"""Hold limits against files, without running anything.

  perfgate check trace.json.gz "overlap >= 80%" "exposed_comm <= 400us"
  perfgate check kernel.cubin "spills == 0" "registers <= 128"

Arguments with an operator are limits, all others are files. Exit codes: 0 kept, 1 broken, 4 not measured or invalid.
"""

from __future__ import annotations

import argparse

from pytest_perfgate.app.check import check, exit_of
from pytest_perfgate.cli import looking
from pytest_perfgate.cli.verdicts import deliver, split_limits


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("words", nargs="+", metavar="FILE|LIMIT")
    parser.add_argument("--junit", metavar="FILE", help="write a JUnit file of the verdicts")
    looking.add_options(parser)


def run(options: argparse.Namespace) -> int:
    files, limits = split_limits(options.words)
    look = looking.look(options)
    analysis, verdicts = check(looking.named_files(files), limits, look)
    deliver(options, analysis, verdicts)
    return exit_of(verdicts)
