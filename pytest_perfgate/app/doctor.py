"""A list of checks, each asked in turn; one that fails says so and stops no other."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.refusals import refusal, speaks_of_a_file
from pytest_perfgate.model.values import value


class Level(str, enum.Enum):
    GOOD = "ok"
    NOTE = "note"
    BAD = "bad"


@value
class Finding:
    """One thing that a check found out."""

    name: str
    level: Level
    what: str
    mend: str = ""


Check = Callable[[Any], Iterable[Finding]]
"""Takes the project, gives what it found."""


def examined(checks: Sequence[tuple[str, Check]], project: Any) -> tuple[Finding, ...]:
    """What every check found, in their order."""
    found: list[Finding] = []
    for name, check in checks:
        found += [one for one in _asked(name, check, project) if one.level is not Level.BAD or not _told_of(one, found)]
    return tuple(found)


def _told_of(finding: Finding, before: Sequence[Finding]) -> bool:
    """A fault that two checks met is one fault."""
    return any((one.level, one.what) == (finding.level, finding.what) for one in before)


def _asked(name: str, check: Check, project: Any) -> Iterable[Finding]:
    try:
        return tuple(check(project))
    except PerfgateError as error:
        return (_told(name, error),)
    except (OSError, ValueError, ImportError) as fault:
        if isinstance(fault, OSError) and speaks_of_a_file(fault):
            return (_told(name, refusal(fault)),)
        return (Finding(name=name, level=Level.BAD, what=f"{type(fault).__name__}: {fault}"),)


def _told(name: str, error: PerfgateError) -> Finding:
    where = f"{error.place}: " if error.place else ""
    return Finding(name=name, level=Level.BAD, what=f"{where}{error.what}  [{error.code.name}]", mend=error.mend)


def brief(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """What is well in one line a check, with the number of further ones."""
    good: dict[str, list[Finding]] = {}
    told: list[Finding] = []
    for finding in findings:
        if finding.level is not Level.GOOD:
            told.append(finding)
        elif finding.name in good:
            good[finding.name].append(finding)
        else:
            good[finding.name] = [finding]
            told.append(finding)
    return tuple(_counted(finding, good.get(finding.name, [finding])) for finding in told)


def _counted(finding: Finding, like: Sequence[Finding]) -> Finding:
    if finding is not like[0] or len(like) == 1:
        return finding
    return replace(finding, what=f"{finding.what}; {len(like) - 1} more")
