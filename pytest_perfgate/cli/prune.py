"""Remove baselines whose tests are gone; only after a full run, nothing left out, that passed."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from pytest_perfgate.cli.looking import write, write_json
from pytest_perfgate.cli.project import Project, add_root

PRUNE_ABOUT = """Remove baselines whose tests are gone; only after a full run, nothing left out, that passed."""


def prune_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--dry-run", action="store_true", help="show what would be removed")
    parser.add_argument("--in-ci", action="store_true", help="write although CI is set")
    add_root(parser)


def run_prune(options: Namespace) -> int:
    from pytest_perfgate.app.prune import prune, unused
    from pytest_perfgate.cli.accept import check_place

    project = Project(options)
    check_place(options, project)
    lines = unused(project.records.read(), project.baselines)
    paths = () if options.dry_run else prune(lines, project.baselines)
    files = [project.shown(Path(path)) for path in paths]
    if options.json:
        write_json({"unused": [{"case": str(line.key), "device": line.device} for line in lines], "files": files})
        return 0
    verb = "unused" if options.dry_run else "removed"
    for line in lines:
        write(f"{verb}  {line.device}  {line.key}")
    write(f"{len(lines)} {verb}" if lines else "every baseline has its test, and a limit that asks for it")
    return 0
