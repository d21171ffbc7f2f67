"""Error codes: limits, verdicts, revisions, arms."""

from __future__ import annotations

from pytest_perfgate.model.codes import Code, Family

GATE_CODES: tuple[Code, ...] = (
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
        name="reference-changed",
        family=Family.USAGE,
        title="A call cannot be made again beside its reference",
        why="both take turns after the test has called the second of them: with other inputs by then, the speed-up "
        "would be of two different problems",
        mend="hand the inputs over as arguments, perfgate(fn, a, b, name=...), or leave the variable alone until both "
        "were measured",
    ),
    Code(
        name="reference-missing",
        family=Family.ARTIFACT,
        title="A file does not hold the figure that a call is to be faster than",
        why="without it nothing is compared, and the limit would pass in silence",
        mend="name the file from where pytest starts, and the benchmark behind a #: over='file:cublas.json#gemm'; "
        "perfgate inspect FILE lists those there are",
    ),
    Code(
        name="reference-unlike",
        family=Family.RECORD,
        title="A call and its reference were timed by different instruments",
        why="a kernel's own time over a time of the host is no speed-up: the one has no launch in it",
        mend='time both alike: @pytest.mark.perfgate(..., timer="host")',
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

ARM_CODES: tuple[Code, ...] = (
    Code(
        name="no-repository",
        family=Family.REPOSITORY,
        title="There is no git repository here",
        why="an arm is a revision of the package, and revisions live in a repository",
        mend="run inside the repository, or judge against the accepted baseline without --perfgate-against",
    ),
    Code(
        name="revision-missing",
        family=Family.REPOSITORY,
        title="A revision is not in this clone",
        why="the arm to compare with cannot be checked out",
        mend="git fetch origin REVISION",
    ),
    Code(
        name="revision-shallow",
        family=Family.REPOSITORY,
        title="A revision lies beyond the end of a shallow clone",
        why="the arm to compare with was never fetched",
        mend="git fetch --unshallow   (in CI: fetch-depth: 0)",
    ),
    Code(
        name="git-failed",
        family=Family.REPOSITORY,
        title="Git did not do what an arm needs",
        why="an arm is checked out by git, and the working copy is read by it",
        mend="run that git command by hand and mend what it says",
    ),
    Code(
        name="lfs-missing",
        family=Family.REPOSITORY,
        title="An arm has pointers of git-lfs instead of files",
        why="a package built or run with pointers is not the package of that revision",
        mend="git lfs install && git lfs fetch --all, then run again",
    ),
    Code(
        name="submodule-missing",
        family=Family.REPOSITORY,
        title="A submodule of the revision could not be checked out",
        why="a package built without its submodule is not the package of that revision",
        mend="git submodule update --init --recursive, then run again",
    ),
    Code(
        name="arm-no-project",
        family=Family.BUILD,
        title="There is no package at a revision",
        why="an arm that has no package of its own would measure whatever else is installed",
        mend='name its folder or its modules: projects = ["path"] or packages = ["name"] in [tool.perfgate]',
    ),
    Code(
        name="arm-build-failed",
        family=Family.BUILD,
        title="The package could not be built for one arm",
        why="both sides must be built the same way before they can be compared",
        mend='mend the build, or set build = "COMMAND" in [tool.perfgate]',
    ),
    Code(
        name="arm-busy",
        family=Family.BUILD,
        title="Another run does not finish making an arm",
        why="two runs that make one arm at once would spoil it",
        mend="end that process, or wait for it, then run again",
    ),
    Code(
        name="arm-no-room",
        family=Family.BUILD,
        title="The disk was full while an arm was made",
        why="an arm needs room for a checkout, an environment and a build",
        mend="make room and run again; rm -r .perfgate/arms removes all arms, TMPDIR=FOLDER builds elsewhere",
    ),
    Code(
        name="arm-not-made",
        family=Family.BUILD,
        title="The folder of an arm could not be made",
        why="an arm is a checkout and an environment under .perfgate/arms",
        mend="mend what the system says; rm -r .perfgate/arms starts afresh",
    ),
    Code(
        name="arm-empty",
        family=Family.BUILD,
        title="A build installed no importable module",
        why="the arm would import whatever else lies on the path",
        mend="let the build command install into {site}",
    ),
    Code(
        name="arm-foreign-module",
        family=Family.CHILD,
        title="An arm loaded modules that are not its own",
        why="both sides would measure the same code; the verdict would mean nothing",
        mend="let nothing name a folder of the working copy: no sys.path.insert in a conftest, no variable with a "
        'path of the build; where tests and package cannot be separated, set arms = "worktree" in [tool.perfgate]',
    ),
)

VERDICT_CODES: tuple[Code, ...] = (
    Code(
        name="arm-no-commit",
        family=Family.REPOSITORY,
        title="A baseline names no commit",
        why="a suspect is confirmed beside the commit that was accepted",
        mend="accept it again inside the repository: perfgate accept NODEID --reason TEXT",
    ),
    Code(
        name="arm-no-merge-base",
        family=Family.REPOSITORY,
        title="There is no merge base with a target branch",
        why="--perfgate-against without a revision compares with it",
        mend="name a revision: --perfgate-against main; or fetch the target branch",
    ),
    Code(
        name="calibration-wrong",
        family=Family.RECORD,
        title="A calibration has too little to judge by, or could not measure",
        why="rates of few rounds say nothing",
        mend="perfgate calibrate --minutes 20",
    ),
    Code(
        name="judging-failed",
        family=Family.RECORD,
        title="perfgate itself failed while it judged one case",
        why="the case has no verdict, so it fails; the others are judged, and its samples are in the record",
        mend="this is a fault of perfgate: report it with the record (pytest --perfgate-json PATH)",
    ),
    Code(
        name="showing-failed",
        family=Family.RECORD,
        title="perfgate itself, or a plugin, failed while it showed or wrote something",
        why="what it came to counts all the same, and everything else is shown",
        mend="this is a fault of perfgate or of a plugin: report it with the record (pytest --perfgate-json PATH)",
    ),
)
