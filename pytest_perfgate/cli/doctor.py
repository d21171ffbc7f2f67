"""Say what works here, what does not and why, and what mends it: the project, then the machine.

It changes nothing. The last table times one call against itself for a few seconds.
"""

from __future__ import annotations

import textwrap
from argparse import ArgumentParser, Namespace
from typing import Any

from pytest_perfgate.cli.looking import write, write_json
from pytest_perfgate.cli.output import plain
from pytest_perfgate.cli.project import Project, add_root
from pytest_perfgate.model.document import Document


def arguments(parser: ArgumentParser) -> None:
    add_root(parser)
    parser.add_argument(
        "--seconds", type=float, default=5.0, help="how long to time a call against itself; 0: not at all"
    )


def run(options: Namespace) -> int:
    from pytest_perfgate.app.doctor import Level, examined
    from pytest_perfgate.cli.symptoms import CHECKS
    from pytest_perfgate.core.render.text import render_text

    project = Project(options)
    findings = examined(CHECKS, project)
    ward, machine = _machine(project, options.seconds)
    if options.json:
        instruments = [plain(found) for found in (*ward.libraries, *ward.others)]
        write_json({"findings": plain(findings), "instruments": instruments, "machine": plain(machine)})
    else:
        for finding in findings:
            _tell(f"{finding.level.value:<4}  {finding.name:<12}  {finding.what}")
            if finding.mend:
                _tell(f"      {'':<12}  next: {finding.mend}")
        write("\n" + render_text(machine))
    return 1 if any(finding.level is Level.BAD for finding in findings) else 0


def _tell(line: str) -> None:
    """A line of at most a hundred columns, and its rest below where it began."""
    write(textwrap.fill(line, 100, subsequent_indent=" " * 20, break_long_words=False, break_on_hyphens=False))


def _machine(project: Project, seconds: float) -> tuple[Any, Document]:
    """What was looked at, and what it comes to."""
    from pytest_perfgate.app.diagnosis import diagnosis, same_against_same
    from pytest_perfgate.wiring import devices, ward

    same = None
    if seconds > 0:
        same = same_against_same(devices.reference_call(), devices.host_runtime(), devices.host_timer(), seconds)
    found = ward(project.root)
    return found, diagnosis(found, same)
