"""What version control says of the revision whose accepted lines judge."""

from __future__ import annotations

from pytest_perfgate.model.values import value


@value
class Base:
    """The revision before the change under test, or why there is none."""

    commit: str = ""
    """Empty where no revision can be asked."""
    name: str = ""
    """What it is to the commit under test: ``the merge base with origin/main``."""
    why: str = ""
    """Why there is none; of one that was guessed, why it may not be what was there before."""
    mend: str = ""
