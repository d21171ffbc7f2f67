"""The project as values: its settings, its run of CI, and git's settings for its baselines."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath

from pytest_perfgate.model.plan import ANCHOR
from pytest_perfgate.model.values import value


@value
class ConfigPattern:
    """Settings for the tests whose node ids a pattern matches; of several, later ones are closer."""

    pattern: str
    limits: tuple[str, ...] = ()
    on: tuple[str, ...] = ()
    timer: str = ""
    capture: tuple[str, ...] = ()
    rounds: int = 0
    budget: float = 0.0
    place: str = ""


@value
class ConfigProject:
    """One package of the repository that an arm builds."""

    path: str
    build: str = ""
    """Its own build command; by default the project's ``build``, else pip."""


@value
class Config:
    """The project's settings, with defaults for what the file leaves out."""

    limits: tuple[str, ...] = ()
    """Limits of every gated test; empty means ``slowdown <= 3%``."""
    tables: tuple[str, ...] = ()
    tests: tuple[ConfigPattern, ...] = ()
    mode: str = ""
    rounds: int = 0
    budget: float = 0.0
    warmup: float = -1.0
    samples: int = 0
    timer: str = ""
    runtime: str = ""
    cache: str = ""
    clocks: str = ""
    data: str = ""
    floor: float = -1.0
    capture: tuple[str, ...] = ()
    policy: tuple[tuple[str, str], ...] = ()
    devices: tuple[str, ...] = ()
    """Patterns of devices whose baselines are committed."""
    baselines: str = "baselines"
    history: str = ""
    launcher: tuple[str, ...] = ()
    timeout: float = 600.0
    """Seconds that a child may be silent."""
    plugins: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    """Import names of the packages under test, by which arms are checked."""
    editable: tuple[str, ...] = ()
    arms: str = ""
    build: str = ""
    projects: tuple[ConfigProject, ...] = ()
    """Packages that an arm builds, if it is not the repository's only one."""
    test_paths: tuple[str, ...] = ()
    """What a worktree arm takes from the working copy besides the test files and their conftests."""
    confirmation: str = ""
    tuning: str = ""
    preload: str = ""
    target: str = ""
    anchor: float = ANCHOR
    """How far accepted steps may take a line from its oldest time of ninety days, as a fraction."""
    anchor_revision: str = ""
    communication: tuple[str, ...] = ()
    device: tuple[tuple[str, object], ...] = ()
    """(name, table) of the project's own data sheets."""
    nsys: tuple[tuple[str, str], ...] = ()
    """(option, text) for reading exports of Nsight Systems."""
    source: str = ""
    """The file it was read from."""
    facts: str = ""
    """How closely versions must agree with those of the baseline."""


@value
class ConfigKey:
    """One key of the table: its form and its meaning."""

    name: str
    kind: str
    doc: str
    default: str = ""
    choices: tuple[str, ...] = ()


_MODES, _CLOCKS = ("full", "quick", "off"), ("lock", "try-lock", "observe", "off")

DEPENDENCIES = "project: dependencies"
"""The settings' name for the project's declared dependencies, as a list in JSON."""


def _key(name: str, kind: str, doc: str, default: str = "", choices: tuple[str, ...] = ()) -> ConfigKey:
    return ConfigKey(name=name, kind=kind, doc=doc, default=default, choices=choices)


TEST_KEYS: tuple[ConfigKey, ...] = (
    _key("pattern", "text", "glob over node ids"),
    _key("limits", "texts", "limits of these tests"),
    _key("on", "texts", "devices on which these limits apply"),
    _key("timer", "text", "their timer"),
    _key("capture", "texts", "captures of these tests"),
    _key("rounds", "count", "fresh processes for each case"),
    _key("budget", "seconds", "sampling time of a case in one process"),
)  # fmt: skip

KEYS: tuple[ConfigKey, ...] = (
    _key("limits", "texts", "limits of every gated test", "`slowdown <= 3%` for a test without any limit"),
    _key("tests", "tests",
         f"settings per node-id pattern: `[[tool.perfgate.tests]]` with {', '.join(key.name for key in TEST_KEYS)}"),
    _key("tables", "texts", "pairs of parameters as `--perfgate-table` takes them", "none"),
    _key("mode", "choice", "when to measure", "full in CI, else quick", _MODES),
    _key("rounds", "count", "fresh processes for each case in full mode", "3"),
    _key("budget", "seconds", "sampling time of a case in one process", "1 s"),
    _key("warmup", "seconds", "longest warm-up of a case in one process", "200 ms"),
    _key("samples", "count", "fewest samples of a case in one process", "20"),
    _key("timer", "text", "timer: events, cupti, blocking, graph, host", "auto"),
    _key("runtime", "text", "library whose work is timed", "auto"),
    _key("cache", "choice", "cache before each call", "warm", ("cold", "warm")),
    _key("clocks", "choice", "how to treat the clocks", "observe", _CLOCKS),
    _key("facts", "choice",
         "how closely versions of driver, toolkit, framework and ptxas must agree with the baseline's", "shown",
         ("off", "shown", "major", "minor", "exact")),
    _key("data", "text", "name of what inputs hold, part of the identity", "user"),
    _key("floor", "seconds",
         "smallest difference between timed samples that counts as slower; 0 sets no such difference", "0"),
    _key("capture", "texts", "captures of every gated test", "none"),
    _key("policy", "policy", "effects of outcomes: `[tool.perfgate.policy]`, see outcomes"),
    _key("devices", "texts", "devices whose baselines are committed", "none"),
    _key("baselines", "text", "folder of the baselines", "baselines"),
    _key("history", "text", "file of the history, or an address of PostgreSQL", ".perfgate/history.db"),
    _key("launcher", "words", "command in front of every measuring process", "none"),
    _key("timeout", "seconds", "silence after which a measuring process is ended", "10 min"),
    _key("plugins", "texts", "modules with hooks, for the commands; pytest has its own `pytest_plugins`", "none"),
    _key("packages", "texts", "import names of the packages under test", "found"),
    _key("editable", "texts", "editable dependencies that base and head share", "none"),
    _key("arms", "choice", "how to separate builds", "package", ("package", "worktree")),
    _key("build", "commands", "commands that build base and head, one a line", "pip"),
    _key("projects", "projects",
         "folders of the packages to build; a table `{path = ..., build = ...}` has its own command",
         "the repository"),
    _key("test_paths", "texts",
         'files and folders that `arms = "worktree"` takes from the working copy beside the tests',
         "the tests and their conftests"),
    _key("confirmation", "choice",
         "what confirms a slowdown: rounds of base and head, or the prediction interval of the accepted runs",
         "paired where base and head can be built", ("paired", "interval")),
    _key("tuning", "choice", "whether each process tunes kernels anew, or all use the first choice", "free",
         ("free", "pinned")),
    _key("preload", "choice",
         "whether rounds of two builds on a device may be forked, once a calibration showed no more noise", "auto",
         ("auto", "off")),
    _key("target", "text", "branch that changes are merged into; the lines of the merge base with it judge", "found"),
    _key("anchor", "share",
         "how far accepted steps may move a line from its oldest time of ninety days, such as 10%; or off", "10%"),
    _key("anchor_revision", "text", "revision whose baselines are a second, fixed anchor; or none",
         "the last release tag"),
    _key("communication", "texts", "patterns of the project's communication kernels"),
    _key("nsys", "options",
         "how exports are read: `[tool.perfgate.nsys]`: preset (pithtrain, megatron, ddp), anchor, stage and others"),
    _key("device", "tables", "data sheets of your own devices: `[tool.perfgate.device.NAME]`"),
)  # fmt: skip

POLICIES: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("missing", ("fail", "warn", "record"), "no baseline for this device"),
    ("unused", ("fail", "warn", "ignore"), "a baseline without a test, or a test that is gone"),
    ("improved", ("ignore", "warn", "fail"), "faster than the baseline"),
    ("undecided", ("warn", "fail"), "the interval spans the limit"),
    ("suspect", ("warn", "fail"), "slower, and not confirmed"),
    ("moved", ("warn", "fail"), "slower than accepted, and no slower than the base"),
    ("unmeasured", ("warn", "fail"), "collected and not measured"),
    (
        "no_base",
        ("warn", "fail"),
        "in CI, no merge base, so the change's own baselines judged; a merge request fails by default",
    ),
    ("moved_by_change", ("warn", "fail"), "MOVED, and the change edits a pin, a lock file or a toolchain"),
    ("own_gate", ("warn", "fail"), "in CI, the change edits limits, marks, lines, settings or tests that judge it"),
)
"""(key, values, meaning) of the policy."""

POLICY_KEYS = tuple(
    ConfigKey(name=name, kind="choice", doc=f"decides about: {text}", choices=values) for name, values, text in POLICIES
)


FACT = "ci run"
"""The name of a CI run among the facts of a record's environment."""

_NAMES = (
    "GITHUB_RUN_ID", "CI_PIPELINE_ID", "BUILD_BUILDID", "BUILDKITE_BUILD_ID", "CIRCLE_WORKFLOW_ID",
    "BITBUCKET_PIPELINE_UUID", "CODEBUILD_BUILD_ID", "BUILD_TAG",
)  # fmt: skip
"""Variables shared by all jobs of a run, since one may measure and another deliver."""


SERVERS = ("JENKINS_URL", "TF_BUILD", "TEAMCITY_VERSION", "CODEBUILD_BUILD_ID")
"""Variables of Jenkins, Azure Pipelines, TeamCity and CodeBuild, which do not set ``CI``."""


def earlier_file(files: Mapping[str, bool], device: str, path: str, below: str) -> str:
    """Return the file that held the lines of a test file before, or ""; in a sibling folder, only a removed one.

    A root above ``below``, this root's path from the top of the repository, would name the test by a longer path.
    """
    ending, parts = f"/{device}/{path}.yaml", PurePosixPath(below).parts
    above = tuple(f"/{device}/{'/'.join(parts[at:])}/{path}.yaml" for at in range(len(parts)))
    fitting = (file for file, here in files.items() if file.endswith(above) or (not here and file.endswith(ending)))
    return next(fitting, "")


def with_ci(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment with ``CI`` if a server sets a variable of its own; an existing ``CI`` stays."""
    server = any(environment.get(name) for name in SERVERS)
    return {**({"CI": "true"} if server else {}), **environment}


def ci_run(environment: Mapping[str, str]) -> str:
    """Return the name of the run; "" outside of CI, and if CI gives none."""
    inside = with_ci(environment).get("CI")
    return next((environment[name] for name in _NAMES if inside and environment.get(name)), "")


REQUEST = "ci request"
"""The name of a request's target branch among the facts of a record's environment."""

_TARGETS = (
    "GITHUB_BASE_REF", "CI_MERGE_REQUEST_TARGET_BRANCH_NAME", "CHANGE_TARGET", "BUILDKITE_PULL_REQUEST_BASE_BRANCH",
    "BITBUCKET_PR_DESTINATION_BRANCH", "SYSTEM_PULLREQUEST_TARGETBRANCH", "CI_COMMIT_TARGET_BRANCH",
    "CIRRUS_BASE_BRANCH", "CODEBUILD_WEBHOOK_BASE_REF", "DRONE_TARGET_BRANCH", "SEMAPHORE_GIT_BRANCH", "TRAVIS_BRANCH",
)  # fmt: skip
_STARTS = {"CODEBUILD_WEBHOOK_BASE_REF": "CODEBUILD_WEBHOOK_EVENT", "DRONE_TARGET_BRANCH": "DRONE_BUILD_EVENT",
           "SEMAPHORE_GIT_BRANCH": "SEMAPHORE_GIT_REF_TYPE", "TRAVIS_BRANCH": "TRAVIS_EVENT_TYPE"}  # fmt: skip
"""Variables that name a target in a request only, with the variable that tells requests from pushes and merges."""
_REQUESTS = ("pull_request", "pull-request", *(f"PULL_REQUEST_{word}" for word in ("CREATED", "UPDATED", "REOPENED")))


def targets(environment: Mapping[str, str]) -> list[str]:
    """Return the target branch of a pull or merge request, as CI names it; empty if this is not one."""
    names = (name for name in _TARGETS if environment.get(_STARTS.get(name, ""), _REQUESTS[0]) in _REQUESTS)
    return [environment[name] for name in names if environment.get(name)]


@value
class Merging:
    """Git's settings for merging baselines."""

    attribute: bool = False
    """Whether an attribute of the files names our driver."""
    driver: str = ""
    """The command of the driver in this clone."""
