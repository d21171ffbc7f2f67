"""Error codes: a table for each subject, joined in ``errors``; families of errors, each with its exit code."""

from __future__ import annotations

import enum
from collections.abc import Mapping

from pytest_perfgate.model.values import value


class Family(enum.Enum):
    """A family of errors and the exit code of the command line."""

    USAGE = 2
    CONFIGURATION = 10
    BASELINE = 11
    RECORD = 12
    ARTIFACT = 13
    TOOL = 14
    CHILD = 15
    BUILD = 16
    DEVICE = 17
    PERMISSION = 18
    REPOSITORY = 19
    DELIVERY = 20
    HISTORY = 21

    @property
    def exit(self) -> int:
        return self.value


@value
class ErrorCode:
    """One error code: its name is its anchor on the page of errors."""

    name: str
    family: Family
    title: str
    why: str = ""
    fix: str = ""


def codes_of(**families: Mapping[str, tuple[str, str, str]]) -> tuple[ErrorCode, ...]:
    """Return the codes of families by name: a title that says what happened, why it matters, the next step."""
    return tuple(
        ErrorCode(name=name, family=Family[family], title=title, why=why, fix=fix)
        for family, codes in families.items()
        for name, (title, why, fix) in codes.items()
    )
