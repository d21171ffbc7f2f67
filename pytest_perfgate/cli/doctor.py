"""Say what works here, what does not and why, and what mends it: the project, then the machine."""

from __future__ import annotations

import sys
import textwrap
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from pytest_perfgate.cli.looking import columns, room, write, write_json
from pytest_perfgate.cli.numbers import from_zero
from pytest_perfgate.cli.output import plain
from pytest_perfgate.cli.project import Project, add_root

if TYPE_CHECKING:
    from pytest_perfgate.app.diagnosis import Ward
    from pytest_perfgate.app.doctor import Finding


DOCTOR_ABOUT = """Say what works here, what does not and why, and what mends it: the project, then the machine.

It changes nothing. The last line times one call against itself for a few seconds. One screen, device by
device; all that was found is behind --verbose and --json.
"""

_BELOW = " " * 17


def doctor_arguments(parser: ArgumentParser) -> None:
    add_root(parser)
    parser.add_argument("-v", "--verbose", action="store_true", help="all that was found, each part in a table")
    parser.add_argument(
        "--seconds", type=from_zero, default=5.0, help="how long to time a call against itself; 0: not at all"
    )


def run_doctor(options: Namespace) -> int:
    from pytest_perfgate.app.diagnosis import diagnosis
    from pytest_perfgate.app.doctor import Level, brief, examined
    from pytest_perfgate.app.screen import groups, screen
    from pytest_perfgate.cli.symptoms import CHECKS
    from pytest_perfgate.core.render.text import render_text

    project = Project(options)
    findings = examined(CHECKS, project)
    if not options.json:  # before a driver is touched, which may take this process with it
        for finding in findings if options.verbose else brief(findings):
            write("\n".join(told_lines(finding, verbose=options.verbose, width=columns())))
        sys.stdout.flush()
    ward, same = _machine(project, options.seconds)
    if options.json:
        parts = {"instruments": (*ward.libraries, *ward.others), "devices": groups(ward)}
        told = {name: [plain(one) for one in found] for name, found in parts.items()}
        write_json({"findings": plain(findings), **told, "machine": plain(diagnosis(ward, same))})
    else:
        found = (
            render_text(diagnosis(ward, same), columns(), room()) if options.verbose else screen(ward, same, columns())
        )
        write(f"\n{found}")
    return 1 if any(finding.level is Level.BAD for finding in findings) else 0


def told_lines(finding: Finding, *, verbose: bool, width: int = 100) -> list[str]:
    """Lines of so many columns at most; what mends it stays whole, to be copied, and of what is well one suffices."""
    line = f"{finding.level.value:<4}  {finding.name:<9}  {finding.what}"
    if verbose:
        return [*_folded(line, width), *([f"{_BELOW}next: {finding.mend}"] if finding.mend else [])]
    if finding.mend and len(f"{line} > {finding.mend}") <= width:
        return [f"{line} > {finding.mend}"]
    if finding.mend:
        return [*_folded(line, width), f"{_BELOW}> {finding.mend}"]
    return _folded(line, width) if len(line) <= width or finding.level.value != "ok" else [f"{line[: width - 2]} …"]


def _folded(line: str, width: int) -> list[str]:
    return textwrap.wrap(line, width, subsequent_indent=_BELOW, break_long_words=False, break_on_hyphens=False)


def _machine(project: Project, seconds: float) -> tuple[Ward, tuple[float, float] | None]:
    """What was looked at, and the same call against itself."""
    from pytest_perfgate.app.diagnosis import same_against_same
    from pytest_perfgate.wiring import devices, ward

    same = None
    if seconds > 0:
        same = same_against_same(devices.reference_call(), devices.host_runtime(), devices.host_timer(), seconds)
    return ward(project.root), same
