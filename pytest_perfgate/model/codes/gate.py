"""Error codes: limits, verdicts, revisions, arms."""

from __future__ import annotations

from pytest_perfgate.model.codes import codes_of

GATE_CODES = codes_of(
    USAGE={
        "limit-syntax": (
            "A limit is not of the form METRIC[(SCOPE)] OP VALUE[UNIT]",
            "perfgate cannot check a limit that it cannot read",
            "write it as METRIC OP VALUE[UNIT], such as time <= 2ms; docs/limits.md has the grammar",
        ),
        "limit-unknown-metric": (
            "A limit names a metric that nothing produces",
            "a limit on a metric that does not exist would pass without a check",
            (
                "name a metric of docs/limits.md; for a figure of the test's own, call "
                'perfgate.metric("loss", value) in it; '
                "a plugin declares metrics with the hook pytest_perfgate_metrics"
            ),
        ),
        "limit-unit": (
            "A limit's unit does not fit its metric",
            "the number would be compared with another quantity",
            "use a unit of the metric's dimension: docs/limits.md lists them",
        ),
        "limit-scope": (
            "A limit's scope is unknown to its metric or matches nothing",
            "a limit on a scope that matches nothing would pass without a check",
            "use a scope that the metric has (docs/limits.md) and a value that the measurement holds",
        ),
        "limit-number": (
            "A limit's number is missing or impossible",
            "a limit that no measurement can reach always passes or always fails",
            "write a number that the metric can reach: mfu >= 55%, time <= 2ms",
        ),
        "limit-direction": (
            "A limit points the wrong way",
            "the limit would fail better code and pass worse code",
            "reverse the sign: <= for a metric that should be small, >= for one that should be large",
        ),
        "reference-changed": (
            "A call cannot be made again beside its reference",
            (
                "both are timed in turns after the test has called the second one; with inputs that changed by then, "
                "the speed-up would compare two different problems"
            ),
            (
                "pass the inputs as arguments, perfgate(fn, a, b, name=...), or do not change the variable until both "
                "were measured"
            ),
        ),
        "policy-unknown": (
            "A policy names an outcome or a choice that does not exist",
            "without the policy, an outcome could pass that should fail",
            "use a key and a choice of the table in docs/outcomes.md: --perfgate-policy undecided=fail",
        ),
    },
    ARTIFACT={
        "reference-missing": (
            "A file does not hold the reference time of a speed-up",
            "without it nothing is compared, and the limit would pass without a check",
            (
                "give the path from where pytest starts, and the benchmark after a #: over='file:cublas.json#gemm'; "
                "perfgate inspect FILE lists the benchmarks"
            ),
        ),
    },
    RECORD={
        "reference-unlike": (
            "A call and its reference were timed by different instruments",
            "a kernel's own time has no launch in it, and a host time has; their ratio is not a speed-up",
            'time both alike: @pytest.mark.perfgate(..., timer="host")',
        ),
        "bad-timing": (
            "A sample is zero, negative or not a number",
            "no statistics can be computed from such samples",
            "measure again; if it persists, the timer is too coarse for this call: raise calls=",
        ),
        "no-samples": (
            "Every sample was discarded, or none was taken",
            "without samples there is no time",
            "read why the timer discarded them, then measure again",
        ),
        "above-peak": (
            "The measurement is faster than the hardware can be",
            "the work count, the peak or the timer is wrong, and nothing shows which",
            "check work=, the dtype, and whether the timed call waits for the device",
        ),
    },
)

ARM_CODES = codes_of(
    REPOSITORY={
        "no-repository": (
            "There is no git repository here",
            "the base of a comparison is a revision in a repository",
            "run inside the repository, or judge against the accepted baseline without --perfgate-against",
        ),
        "revision-missing": (
            "A revision is not in this clone",
            "perfgate cannot check out the base to compare with",
            "git fetch REMOTE REVISION, or name one that is here: git log --oneline --all",
        ),
        "revision-shallow": (
            "A revision lies beyond the end of a shallow clone",
            "the base to compare with was never fetched",
            "git fetch --unshallow   (in CI: fetch-depth: 0)",
        ),
        "git-failed": (
            "A git command that a comparison needs failed",
            "git checks out the base and reads the working copy",
            "run that git command by hand and fix what it reports",
        ),
        "lfs-missing": (
            "A build has pointers of git-lfs instead of files",
            "a package built or run with pointers is not the package of that revision",
            "git lfs install && git lfs fetch --all, then run again",
        ),
        "submodule-missing": (
            "A submodule of the revision could not be checked out",
            "a package built without its submodule is not the package of that revision",
            "git submodule update --init --recursive (a shallow one: git -C PATH fetch --unshallow), then run again",
        ),
    },
    BUILD={
        "arm-no-project": (
            "There is no package at a revision",
            "a build without a package would measure whatever else is installed",
            (
                'name its folder or its modules: projects = ["path"] or packages = ["name"] in [tool.perfgate]; where '
                'tests load a library by its path, build = "make" or the like'
            ),
        ),
        "arm-build-failed": (
            "The package could not be built for the base or the head",
            "both sides must be built the same way before they can be compared",
            'fix the build, or set build = "COMMAND" in [tool.perfgate]',
        ),
        "arm-busy": (
            "Another run is still making the same build",
            "two runs that make one build at once would spoil it",
            "end that process, or wait for it, then run again",
        ),
        "arm-no-room": (
            "The disk was full during a build",
            "base and head each need room for a checkout, an environment and a build",
            "free space and run again; rm -r .perfgate/arms removes all builds, TMPDIR=FOLDER builds elsewhere",
        ),
        "arm-not-made": (
            "The folder of a build could not be made",
            "base and head each have a checkout and an environment under .perfgate/arms",
            "fix what the system reports; rm -r .perfgate/arms starts afresh",
        ),
        "arm-empty": (
            "A build installed no importable module",
            "the tests would import whatever else is on the path",
            "let the build command install into {site}",
        ),
    },
    CHILD={
        "arm-foreign-module": (
            "Base or head loaded modules of another build",
            "both would measure the same code, and the verdict would mean nothing",
            (
                "remove every path into the working copy: sys.path.insert in a conftest, or a variable with a "
                "path of the build; where tests and package cannot be separated, "
                'set arms = "worktree" in [tool.perfgate]; for a library that is compiled on import '
                "(pyximport), set build"
            ),
        ),
    },
)

VERDICT_CODES = codes_of(
    REPOSITORY={
        "arm-no-commit": (
            "A baseline names no commit",
            "a suspect is confirmed by a comparison with the commit that was accepted",
            "accept it again inside the repository: perfgate accept NODEID --reason TEXT",
        ),
        "arm-no-merge-base": (
            "There is no merge base with a target branch",
            "--perfgate-against without a revision compares with it",
            "name a revision: --perfgate-against main; or fetch the target branch",
        ),
    },
    RECORD={
        "calibration-wrong": (
            "A calibration has too few rounds, or could not measure",
            "rates from so few rounds would be too uncertain",
            "perfgate calibrate --minutes 20",
        ),
        "judging-failed": (
            "perfgate itself failed while it judged one case",
            "the case has no verdict, so it fails; the others are judged, and its samples are in the record",
            "this is a fault of perfgate: report it with the record (pytest --perfgate-json PATH)",
        ),
        "showing-failed": (
            "perfgate itself, or a plugin, failed while it showed or wrote a result",
            "the outcome still counts, and everything else is shown",
            "this is a fault of perfgate or of a plugin: report it with the record (pytest --perfgate-json PATH)",
        ),
    },
)
