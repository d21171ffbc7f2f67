"""Take the environment out of an Nsight Systems export before it travels."""

from __future__ import annotations

import argparse
from pathlib import Path

from pytest_perfgate.app.scrub import scrub, sentence
from pytest_perfgate.cli import looking
from pytest_perfgate.cli.output import plain

SCRUB_ABOUT = """Take the environment out of an Nsight Systems export before it travels.

nsys stores the variables of every process it sees, tokens included, and what the program printed. The clean copy is
written beside the export unless --in-place asks for the export itself. A .nsys-rep cannot be cleaned: export it first.
"""


def scrub_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE")
    parser.add_argument("--output", metavar="FILE", help="where the clean copy goes; default FILE.clean.sqlite")
    parser.add_argument("--in-place", action="store_true", help="replace the export itself, in one step")
    parser.add_argument("--force", action="store_true", help="overwrite what --output names")


def run_scrub(options: argparse.Namespace) -> int:
    from pytest_perfgate.wiring.profiling import scrubber

    (path,) = looking.named_files([options.file])
    out = Path(options.output) if options.output else None
    done = scrub(path, out, scrubber(), in_place=options.in_place, force=options.force)
    if options.json:
        looking.write_json(plain(done))
    else:
        looking.write(sentence(done))
    return 0
