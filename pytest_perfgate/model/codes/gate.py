"""Error codes: limits, verdicts, revisions, arms."""

from __future__ import annotations

from pytest_perfgate.model.codes import ErrorCode, Family

GATE_CODES: tuple[ErrorCode, ...] = (
    ErrorCode(
        name="limit-syntax",
        family=Family.USAGE,
        title="A limit is not of the form METRIC[(SCOPE)] OP VALUE[UNIT]",
        why="perfgate cannot check a limit that it cannot read",
        fix="write it as METRIC OP VALUE[UNIT], such as time <= 2ms; docs/limits.md has the grammar",
    ),
    ErrorCode(
        name="limit-unknown-metric",
        family=Family.USAGE,
        title="A limit names a metric that nothing produces",
        why="a limit on a metric that does not exist would pass without a check",
        fix="name a metric of docs/limits.md; for a figure of the test's own, call "
        'perfgate.metric("loss", value) in it; '
        "a plugin declares metrics with the hook pytest_perfgate_metrics",
    ),
    ErrorCode(
        name="limit-unit",
        family=Family.USAGE,
        title="A limit's unit does not fit its metric",
        why="the number would be compared with another quantity",
        fix="use a unit of the metric's dimension: docs/limits.md lists them",
    ),
    ErrorCode(
        name="limit-scope",
        family=Family.USAGE,
        title="A limit's scope is unknown to its metric or matches nothing",
        why="a limit on a scope that matches nothing would pass without a check",
        fix="use a scope that the metric has (docs/limits.md) and a value that the measurement holds",
    ),
    ErrorCode(
        name="limit-number",
        family=Family.USAGE,
        title="A limit's number is missing or impossible",
        why="a limit that no measurement can reach always passes or always fails",
        fix="write a number that the metric can reach: mfu >= 55%, time <= 2ms",
    ),
    ErrorCode(
        name="limit-direction",
        family=Family.USAGE,
        title="A limit points the wrong way",
        why="the limit would fail better code and pass worse code",
        fix="reverse the sign: <= for a metric that should be small, >= for one that should be large",
    ),
    ErrorCode(
        name="reference-changed",
        family=Family.USAGE,
        title="A call cannot be made again beside its reference",
        why="both are timed in turns after the test has called the second one; with inputs that changed by then, the "
        "speed-up would compare two different problems",
        fix="pass the inputs as arguments, perfgate(fn, a, b, name=...), or do not change the variable until both "
        "were measured",
    ),
    ErrorCode(
        name="reference-missing",
        family=Family.ARTIFACT,
        title="A file does not hold the reference time of a speed-up",
        why="without it nothing is compared, and the limit would pass without a check",
        fix="give the path from where pytest starts, and the benchmark after a #: over='file:cublas.json#gemm'; "
        "perfgate inspect FILE lists the benchmarks",
    ),
    ErrorCode(
        name="reference-unlike",
        family=Family.RECORD,
        title="A call and its reference were timed by different instruments",
        why="a kernel's own time has no launch in it, and a host time has; their ratio is not a speed-up",
        fix='time both alike: @pytest.mark.perfgate(..., timer="host")',
    ),
    ErrorCode(
        name="policy-unknown",
        family=Family.USAGE,
        title="A policy names an outcome or a choice that does not exist",
        why="without the policy, an outcome could pass that should fail",
        fix="use a key and a choice of the table in docs/outcomes.md: --perfgate-policy undecided=fail",
    ),
    ErrorCode(
        name="bad-timing",
        family=Family.RECORD,
        title="A sample is zero, negative or not a number",
        why="no statistics can be computed from such samples",
        fix="measure again; if it persists, the timer is too coarse for this call: raise calls=",
    ),
    ErrorCode(
        name="no-samples",
        family=Family.RECORD,
        title="Every sample was discarded, or none was taken",
        why="without samples there is no time",
        fix="read why the timer discarded them, then measure again",
    ),
    ErrorCode(
        name="above-peak",
        family=Family.RECORD,
        title="The measurement is faster than the hardware can be",
        why="the work count, the peak or the timer is wrong, and nothing shows which",
        fix="check work=, the dtype, and whether the timed call waits for the device",
    ),
)

ARM_CODES: tuple[ErrorCode, ...] = (
    ErrorCode(
        name="no-repository",
        family=Family.REPOSITORY,
        title="There is no git repository here",
        why="the base of a comparison is a revision in a repository",
        fix="run inside the repository, or judge against the accepted baseline without --perfgate-against",
    ),
    ErrorCode(
        name="revision-missing",
        family=Family.REPOSITORY,
        title="A revision is not in this clone",
        why="perfgate cannot check out the base to compare with",
        fix="git fetch origin REVISION",
    ),
    ErrorCode(
        name="revision-shallow",
        family=Family.REPOSITORY,
        title="A revision lies beyond the end of a shallow clone",
        why="the base to compare with was never fetched",
        fix="git fetch --unshallow   (in CI: fetch-depth: 0)",
    ),
    ErrorCode(
        name="git-failed",
        family=Family.REPOSITORY,
        title="A git command that a comparison needs failed",
        why="git checks out the base and reads the working copy",
        fix="run that git command by hand and fix what it reports",
    ),
    ErrorCode(
        name="lfs-missing",
        family=Family.REPOSITORY,
        title="A build has pointers of git-lfs instead of files",
        why="a package built or run with pointers is not the package of that revision",
        fix="git lfs install && git lfs fetch --all, then run again",
    ),
    ErrorCode(
        name="submodule-missing",
        family=Family.REPOSITORY,
        title="A submodule of the revision could not be checked out",
        why="a package built without its submodule is not the package of that revision",
        fix="git submodule update --init --recursive (a shallow one: git -C PATH fetch --unshallow), then run again",
    ),
    ErrorCode(
        name="arm-no-project",
        family=Family.BUILD,
        title="There is no package at a revision",
        why="a build without a package would measure whatever else is installed",
        fix='name its folder or its modules: projects = ["path"] or packages = ["name"] in [tool.perfgate]; where '
        'tests load a library by its path, build = "make" or the like',
    ),
    ErrorCode(
        name="arm-build-failed",
        family=Family.BUILD,
        title="The package could not be built for the base or the head",
        why="both sides must be built the same way before they can be compared",
        fix='fix the build, or set build = "COMMAND" in [tool.perfgate]',
    ),
    ErrorCode(
        name="arm-busy",
        family=Family.BUILD,
        title="Another run is still making the same build",
        why="two runs that make one build at once would spoil it",
        fix="end that process, or wait for it, then run again",
    ),
    ErrorCode(
        name="arm-no-room",
        family=Family.BUILD,
        title="The disk was full during a build",
        why="base and head each need room for a checkout, an environment and a build",
        fix="free space and run again; rm -r .perfgate/arms removes all builds, TMPDIR=FOLDER builds elsewhere",
    ),
    ErrorCode(
        name="arm-not-made",
        family=Family.BUILD,
        title="The folder of a build could not be made",
        why="base and head each have a checkout and an environment under .perfgate/arms",
        fix="fix what the system reports; rm -r .perfgate/arms starts afresh",
    ),
    ErrorCode(
        name="arm-empty",
        family=Family.BUILD,
        title="A build installed no importable module",
        why="the tests would import whatever else is on the path",
        fix="let the build command install into {site}",
    ),
    ErrorCode(
        name="arm-foreign-module",
        family=Family.CHILD,
        title="Base or head loaded modules of another build",
        why="both would measure the same code, and the verdict would mean nothing",
        fix="remove every path into the working copy: sys.path.insert in a conftest, or a variable with a "
        'path of the build; where tests and package cannot be separated, set arms = "worktree" in [tool.perfgate]',
    ),
)

VERDICT_CODES: tuple[ErrorCode, ...] = (
    ErrorCode(
        name="arm-no-commit",
        family=Family.REPOSITORY,
        title="A baseline names no commit",
        why="a suspect is confirmed by a comparison with the commit that was accepted",
        fix="accept it again inside the repository: perfgate accept NODEID --reason TEXT",
    ),
    ErrorCode(
        name="arm-no-merge-base",
        family=Family.REPOSITORY,
        title="There is no merge base with a target branch",
        why="--perfgate-against without a revision compares with it",
        fix="name a revision: --perfgate-against main; or fetch the target branch",
    ),
    ErrorCode(
        name="calibration-wrong",
        family=Family.RECORD,
        title="A calibration has too few rounds, or could not measure",
        why="rates from so few rounds would be too uncertain",
        fix="perfgate calibrate --minutes 20",
    ),
    ErrorCode(
        name="judging-failed",
        family=Family.RECORD,
        title="perfgate itself failed while it judged one case",
        why="the case has no verdict, so it fails; the others are judged, and its samples are in the record",
        fix="this is a fault of perfgate: report it with the record (pytest --perfgate-json PATH)",
    ),
    ErrorCode(
        name="showing-failed",
        family=Family.RECORD,
        title="perfgate itself, or a plugin, failed while it showed or wrote a result",
        why="the outcome still counts, and everything else is shown",
        fix="this is a fault of perfgate or of a plugin: report it with the record (pytest --perfgate-json PATH)",
    ),
)
