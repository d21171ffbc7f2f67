"""Say what works here, what does not and why, and what mends it."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from pytest_perfgate.cli.looking import write, write_json
from pytest_perfgate.cli.output import plain
from pytest_perfgate.cli.project import Project, add_root


def arguments(parser: ArgumentParser) -> None:
    add_root(parser)


def run(options: Namespace) -> int:
    from pytest_perfgate.app.doctor import Level, examined
    from pytest_perfgate.cli.symptoms import CHECKS

    project = Project(options)
    findings = examined(CHECKS, project)
    if options.json:
        write_json(plain(findings))
    else:
        for finding in findings:
            write(f"{finding.level.value:<4}  {finding.name:<12}  {finding.what}")
            if finding.mend:
                write(f"      {'':<12}  next: {finding.mend}")
    return 1 if any(finding.level is Level.BAD for finding in findings) else 0
