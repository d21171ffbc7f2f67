"""Error codes of children, records, stores and commands."""

from __future__ import annotations

from pytest_perfgate.model.codes.family import Code, Family

CODES: tuple[Code, ...] = (
    Code(
        name="rounds-differ",
        family=Family.CHILD,
        title="The rounds of one sitting did not measure the same thing",
        why="their processes cannot be summed up into one figure",
        mend="make the call, its notes and its threads the same in every process",
    ),
    Code(
        name="config-unreadable",
        family=Family.CONFIGURATION,
        title="The configuration file cannot be read",
        why="limits may be written in it, and they would be lost in silence",
        mend="mend the file at the line that is named; python -m tomllib < pyproject.toml reads it too",
    ),
    Code(
        name="config-unknown-key",
        family=Family.CONFIGURATION,
        title="[tool.perfgate] has a key that nothing reads",
        why="a setting that nobody reads does nothing, in silence",
        mend="use a key of docs/options.md, or delete the line",
    ),
    Code(
        name="config-value",
        family=Family.CONFIGURATION,
        title="A setting of [tool.perfgate] has the wrong form",
        mend="write it as docs/options.md shows for this key",
    ),
    Code(
        name="run-overruled",
        family=Family.USAGE,
        title="A failed run in CI was ended as if it had passed",
        why="the check would be green over limits that were missed",
        mend="say in [tool.perfgate.policy] what an outcome does",
    ),
    Code(
        name="run-listed",
        family=Family.USAGE,
        title="In CI the project's own settings made pytest list something and run no test",
        why="no gated test was run, and the check would be green over limits that nobody looked at",
        mend="take it out of addopts; on the command line it lists as ever",
    ),
    Code(
        name="marker-wrong",
        family=Family.USAGE,
        title="A perfgate marker has an argument that it does not know",
        why="what it was meant to do would not be done",
        mend="positional texts are limits; keywords: on, capture, timer, runtime, cache, clocks, data, "
        "rounds, budget, devices",
    ),
    Code(
        name="test-outside",
        family=Family.USAGE,
        title="A gated test lies outside the rootdir",
        why="the rootdir's settings and baselines are not its own, and a child of that project cannot find it",
        mend="run each project by itself, from its own folder; a pytest.ini above both makes them one project",
    ),
    Code(
        name="call-wrong",
        family=Family.USAGE,
        title="The perfgate fixture was used in a way that cannot be measured",
        mend="call it as perfgate(fn, *args, work=..., name=...): docs/fixture.md",
    ),
    Code(
        name="check-failed",
        family=Family.USAGE,
        title="check= refused what the call returned",
        why="a fast kernel that is wrong is no achievement",
        mend="mend the kernel, or the check",
    ),
    Code(
        name="not-measured",
        family=Family.USAGE,
        title="A metric was read that this run did not measure",
        why="nothing is measured under --perfgate=off, and a metric that does not exist has no value",
        mend="guard the line with `if perfgate.measures:`, or use --perfgate=quick",
    ),
    Code(
        name="option-wrong",
        family=Family.USAGE,
        title="A perfgate option has a value that it does not take",
        mend="pytest --help lists the values under perfgate",
    ),
    Code(
        name="device-other",
        family=Family.DEVICE,
        title="A case ran on another device than --perfgate-device names",
        why="its figures would be compared with those of the device that was asked for",
        mend="name the device that the test uses, or make the test use the one that is named",
    ),
    Code(
        name="child-start",
        family=Family.CHILD,
        title="A measuring child could not be started",
        mend="check the launcher in [tool.perfgate] and the interpreter",
    ),
    Code(
        name="child-crashed",
        family=Family.CHILD,
        title="A measuring child died",
        why="the case it was in has no measurement; the others went on in a new child",
        mend="run the test alone with --perfgate=off to see it die",
    ),
    Code(
        name="child-hung",
        family=Family.CHILD,
        title="A measuring child fell silent",
        why="it was ended with everything it had started",
        mend="raise timeout in [tool.perfgate], or find what waits",
    ),
    Code(
        name="child-garbled",
        family=Family.CHILD,
        title="A measuring child sent something that is no message",
        why="nothing after it can be trusted",
        mend="look for what the test writes to descriptors of its own, and report it with the record",
    ),
    Code(
        name="child-orphan",
        family=Family.CHILD,
        title="A measuring child found no parent",
        why="PERFGATE_CHANNEL is set by the parent and is no setting of yours",
        mend="unset PERFGATE_CHANNEL",
    ),
)
