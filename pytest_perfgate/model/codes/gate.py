"""Error codes of limits, markers, configuration and baselines."""

from __future__ import annotations

from pytest_perfgate.model.codes.family import Code, Family

CODES: tuple[Code, ...] = (
    Code(
        name="limit-syntax",
        family=Family.USAGE,
        title="A limit does not read as METRIC[(SCOPE)] OP VALUE[UNIT]",
        why="a limit that cannot be read cannot be kept",
        mend="write it as METRIC OP VALUE[UNIT], such as time <= 2ms; docs/limits.md has the grammar",
    ),
    Code(
        name="limit-unknown-metric",
        family=Family.USAGE,
        title="A limit names a metric that nothing produces",
        why="a limit on a metric that does not exist would pass in silence",
        mend="name a metric of docs/limits.md, or declare your own with the hook pytest_perfgate_metrics",
    ),
    Code(
        name="limit-unit",
        family=Family.USAGE,
        title="A limit's unit does not fit its metric",
        why="the number would be compared with something else",
        mend="use a unit of the metric's dimension: docs/limits.md lists them",
    ),
    Code(
        name="limit-scope",
        family=Family.USAGE,
        title="A limit's scope is unknown to its metric or matches nothing",
        why="a scope that matches nothing would pass in silence",
        mend="use a scope that the metric has (docs/limits.md) and a value that the measurement holds",
    ),
    Code(
        name="limit-number",
        family=Family.USAGE,
        title="A limit's number is missing or cannot be meant",
        why="a limit without a number that the metric can reach holds nothing",
        mend="write a number that the metric can reach: mfu >= 55%, time <= 2ms",
    ),
    Code(
        name="limit-direction",
        family=Family.USAGE,
        title="A limit points the wrong way",
        why="a limit that demands the opposite of what is meant fails good work or passes bad",
        mend="turn the sign around: <= for what should be small, >= for what should be large",
    ),
    Code(
        name="policy-unknown",
        family=Family.USAGE,
        title="A policy names an outcome or a choice that does not exist",
        why="a policy that is not understood would be ignored, and an outcome would pass that should fail",
        mend="use a key and a choice of the table in docs/outcomes.md: --perfgate-policy undecided=fail",
    ),
    Code(
        name="bad-timing",
        family=Family.RECORD,
        title="A sample is zero, negative or not a number",
        why="no statistic of such samples means anything",
        mend="measure again; when it persists, the timer is too coarse for this call: raise calls=",
    ),
    Code(
        name="no-samples",
        family=Family.RECORD,
        title="Every sample was discarded, or none was taken",
        why="a median of nothing would be a silent zero",
        mend="look at why the instrument discarded them, and measure again",
    ),
    Code(
        name="above-peak",
        family=Family.RECORD,
        title="The measurement is faster than the hardware can be",
        why="the work count, the peak or the timer is wrong, and nothing tells which",
        mend="check work=, the dtype, and whether the timed call waits for the device",
    ),
)
