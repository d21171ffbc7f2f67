"""Error codes of limits, markers, configuration and baselines."""

from __future__ import annotations

from pytest_perfgate.model.codes.family import Code, Family

CODES: tuple[Code, ...] = (
    Code(
        name="limit-syntax",
        family=Family.USAGE,
        title="A limit does not read as METRIC[(SCOPE)] OP VALUE[UNIT]",
        why="a limit that cannot be read cannot be kept",
    ),
    Code(
        name="limit-unknown-metric",
        family=Family.USAGE,
        title="A limit names a metric that nothing produces",
        why="a limit on a metric that does not exist would pass in silence",
    ),
    Code(
        name="limit-unit",
        family=Family.USAGE,
        title="A limit's unit does not fit its metric",
        why="the number would be compared with something else",
    ),
    Code(
        name="limit-scope",
        family=Family.USAGE,
        title="A limit's scope is unknown to its metric or matches nothing",
        why="a scope that matches nothing would pass in silence",
    ),
)
