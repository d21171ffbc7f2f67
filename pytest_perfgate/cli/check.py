"""Hold limits against files, without running anything."""

from __future__ import annotations

import argparse

from pytest_perfgate.app.check import check, exit_of
from pytest_perfgate.cli import looking, verdicts

CHECK_ABOUT = """Hold limits against files, without running anything.

  perfgate check trace.json.gz "overlap >= 80%" "exposed_comm <= 400us"
  perfgate check kernel.cubin "spills == 0" "registers <= 128"

Arguments with an operator are limits, all others are files. Exit codes: 0 kept, 1 broken, 4 not measured or invalid.
What was not measured fails here as it does in CI, unless --policy unmeasured=warn says otherwise.
"""


def check_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("words", nargs="+", metavar="FILE|LIMIT")
    verdicts.add_options(parser)
    looking.add_options(parser)


def run_check(options: argparse.Namespace) -> int:
    files, limits = verdicts.split_limits(options.words)
    look = looking.judging_look(options)
    analysis, found = check(looking.named_files(files), limits, look)
    verdicts.write_files(options, analysis, found)
    verdicts.deliver(options, analysis, found)
    return exit_of(found)
