"""Error codes of artifacts and of the commands that look into them."""

from __future__ import annotations

from pytest_perfgate.model.codes.family import Code, Family

CODES: tuple[Code, ...] = (
    Code(
        name="limit-missing",
        family=Family.USAGE,
        title="Files were to be checked against no limit",
        why="a check without a limit would pass in silence",
        mend='perfgate check FILE... "METRIC <= VALUE"...   (to look without a limit: perfgate inspect FILE...)',
    ),
)
