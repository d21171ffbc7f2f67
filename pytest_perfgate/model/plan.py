"""Plans, cases, limits and policies, all known before a run."""

from __future__ import annotations

import enum
import math
from fnmatch import fnmatchcase

from pytest_perfgate.model.metric import Labels
from pytest_perfgate.model.values import Dimension, regex, value


class Mode(str, enum.Enum):
    """How much the gate does."""

    FULL = "full"
    QUICK = "quick"
    OFF = "off"


class ClockPolicy(str, enum.Enum):
    LOCK = "lock"
    TRY = "try-lock"
    """Lock if this process may, else observe; for projects on machines of several kinds."""
    OBSERVE = "observe"
    OFF = "off"


class Cache(str, enum.Enum):
    COLD = "cold"
    WARM = "warm"


@value
class Plan:
    """How one case is measured: command line over marker over configuration over defaults."""

    timer: str = "auto"
    leaning: str = ""
    """The timer that ``auto`` chose for this call before, which it keeps if the choice is close."""
    runtime: str = "auto"
    cache: Cache = Cache.WARM
    clocks: ClockPolicy = ClockPolicy.OBSERVE
    data: str = "user"
    """Data policy and seed, part of the identity."""
    calls: int = 0
    """Calls per sample; 0 lets the timer choose."""
    rounds: int = 3
    """Fresh processes."""
    min_samples: int = 20
    least_samples: int = 0
    """Samples that the test requested, which a budget does not reduce."""
    max_samples: int = 2000
    warmup_ns: float = 200e6
    settle_ns: float = 0.0
    """The least load before the first sample, which a device at its power limit needs to settle."""
    budget_ns: float = 1e9
    """Sampling time per process and case."""
    spread: float = 0.005
    captures: tuple[str, ...] = ()
    figures: tuple[str, ...] = ()
    """Requested figures other than time: ``peak_memory``, ``q=99%``."""
    devices: int = 1
    device: str = ""
    """Index or name of the device to measure on; empty means the first."""
    floor_ns: float = 0.0
    """The smallest absolute difference that counts as slower."""
    anchor: str = ""
    against: str = ""
    in_turns: bool = False
    """Whether the host's timer reads the thread's CPU time with each sample."""
    one_core: bool = False
    """Whether a process of a pair keeps to the core of both for these samples."""
    waits: bool = False
    """Whether the call ends with a wait for the devices in use, because it leaves work to them in one of two builds."""


@value
class Case:
    """One gated test item, as collected."""

    nodeid: str
    limits: tuple[Limit, ...]
    plan: Plan
    path: str = ""
    """The test file relative to the root, with forward slashes."""
    marked: bool = True
    params: tuple[tuple[str, str], ...] = ()
    location: str = ""
    """``file:line`` for messages."""
    family: str = ""
    """The node id without its parameters, over which ``geomean`` runs."""
    unreached: tuple[str, str] = ("", "")
    """Why its calls cannot reach perfgate, such as a fixture of the same name in a conftest, and the fix."""

    @property
    def function(self) -> str:
        """The function with its class, without the file and parameters."""
        return CaseKey(nodeid=self.nodeid).function


OF_FILE = "file"
"""The suffix after the path in the name of a case that is a file."""


@value
class CaseKey:
    """Names one measurement: the node id, and the ``name=`` of the fixture's call if given."""

    nodeid: str
    name: str = ""

    def __str__(self) -> str:
        return f"{self.nodeid}#{self._written_name()}" if self.name else self.nodeid

    def _written_name(self) -> str:
        """Return the name with ``]`` as ``%5D``, since after parameters the last ``]`` is theirs."""
        if "[" not in self.test_id or not _TO_ESCAPE.search(self.name):
            return self.name
        return self.name.replace("%", "%25").replace("]", "%5D")

    @property
    def test_id(self) -> str:
        """The node id without its file."""
        return _in_file(self.nodeid)[1]

    @property
    def path(self) -> str:
        return self.nodeid.partition("::")[0]

    @property
    def of_file(self) -> bool:
        """Whether it names a file that limits were checked on, and no test."""
        return self.test_id == OF_FILE

    @property
    def test(self) -> str:
        """The part after the file, which is the key inside its baseline file."""
        return str(self).partition("::")[2]

    @property
    def function(self) -> str:
        """The function with its class: ``test`` without parameters and the call's name."""
        return self.test.partition("#")[0].partition("[")[0]

    @property
    def family(self) -> str:
        """The node id without its parameters, and the call's name if it has one."""
        family = self.nodeid.partition("[")[0]
        return f"{family}#{self.name}" if self.name else family


_TO_ESCAPE = regex(r"\]|%5D|%25")

_ESCAPED = regex(r"%5D|%25")

_MEANT = {"%5D": "]", "%25": "%"}


def parse_case_key(text: str) -> CaseKey:
    """Return the key that ``str`` wrote; a ``#`` inside brackets belongs to a parameter."""
    file, test = _in_file(text)
    bare, hash_sign, name = test.partition("#")
    if "[" not in bare:
        return CaseKey(nodeid=file + bare, name=name)
    head, bracket, tail = test.rpartition("]")
    node, hash_sign, name = tail.partition("#") if bracket else (bare, hash_sign, name)
    return CaseKey(nodeid=f"{file}{head}{bracket}{node}", name=_ESCAPED.sub(lambda sign: _MEANT[sign[0]], name))


def _in_file(nodeid: str) -> tuple[str, str]:
    """Return the file with its ``::``, whatever characters it contains, and the rest."""
    path, colons, test = nodeid.partition("::")
    return (path + colons, test) if colons else ("", nodeid)


class Compare(str, enum.Enum):
    """What a limit compares with its bound: a figure, or its change from the accepted value."""

    FIGURE = ""
    RELATIVE = "relative"
    """The change as a fraction of the accepted value."""
    ABSOLUTE = "absolute"
    """The change in the figure's own unit; for a percentage in points."""


class Operator(str, enum.Enum):
    """How a metric is compared with its limit."""

    AT_MOST = "<="
    AT_LEAST = ">="
    LESS = "<"
    MORE = ">"
    EQUAL = "=="


_SAME = 1e-12
"""The difference between numbers that arithmetic alone can cause."""


@value
class Limit:
    """``METRIC[(SCOPE)] OP VALUE[UNIT]`` as a value; the bound is in internal units."""

    metric: str
    labels: Labels
    operator: Operator
    bound: float
    dimension: Dimension
    text: str
    source: str = "marker"
    """Where it was written: marker, fixture, configuration, command line, default."""
    on: tuple[str, ...] = ()
    """Device patterns on which it applies; empty means everywhere."""
    except_on: tuple[str, ...] = ()
    """Device patterns on which a closer limit replaces it."""
    compare: Compare = Compare.FIGURE

    @property
    def key(self) -> tuple[str, Labels]:
        return (self.title, self.labels)

    def change(self, now: float, then: float) -> float:
        """Return the change of a figure from its accepted value; from 0, any rise is infinite as a fraction."""
        if math.isclose(now, then, rel_tol=_SAME):
            return 0.0
        if self.compare is Compare.ABSOLUTE:
            return now - then
        return (now - then) / abs(then) if then else math.copysign(math.inf, now)

    @property
    def title(self) -> str:
        """What it limits, without its scope: ``registers``, or ``change(registers)``."""
        return self.metric if self.compare is Compare.FIGURE else f"change({self.metric})"


class Outcome(str, enum.Enum):
    """The result of a limit; never a bool. The order is from best to worst."""

    PASSED = "passed"
    IMPROVED = "improved"
    ACCEPTED = "accepted"
    NOT_APPLICABLE = "not applicable"
    MOVED = "moved"
    SUSPECT = "suspect"
    UNSTABLE = "unstable"
    UNDECIDED = "undecided"
    UNBASELINED = "unbaselined"
    NOT_MEASURED = "not measured"
    INVALID = "invalid"
    REGRESSED = "regressed"
    BROKEN = "broken"


class Decision(str, enum.Enum):
    """The result of the pairs for the head against its base."""

    SLOWER = "slower"
    NOT_SLOWER = "not slower"
    UNDECIDED = "undecided"


class Effect(str, enum.Enum):
    """What an outcome does to the test, by the policy."""

    PASS = "pass"  # noqa: S105 - an effect, not a secret
    WARN = "warn"
    FAIL = "fail"


class Choice(str, enum.Enum):
    """What to do about an outcome."""

    IGNORE = "ignore"
    RECORD = "record"
    WARN = "warn"
    FAIL = "fail"


_EFFECTS = {
    Choice.IGNORE: Effect.PASS,
    Choice.RECORD: Effect.WARN,
    Choice.WARN: Effect.WARN,
    Choice.FAIL: Effect.FAIL,
}


@value
class Policy:
    """One choice for each outcome that a policy decides; ``core.judge.policy`` has the defaults."""

    ci: bool = False
    missing: Choice = Choice.RECORD
    """No baseline for a slowdown limit."""
    unused: Choice = Choice.WARN
    """Missing baselines and tests."""
    improved: Choice = Choice.WARN
    undecided: Choice = Choice.WARN
    suspect: Choice = Choice.WARN
    """Slower, and no second arm could show whether the code is."""
    moved: Choice = Choice.WARN
    unmeasured: Choice = Choice.WARN
    """Collected, but never measured."""
    no_base: Choice = Choice.WARN
    """Committed lines judged in CI without a merge base whose lines could."""
    moved_by_change: Choice = Choice.WARN
    """MOVED, and the change itself edits what is installed: a pin, a lock file, a toolchain."""
    own_gate: Choice = Choice.WARN
    """In CI, the change edits limits, marks, lines, settings or tests by which it is judged."""

    @property
    def records(self) -> bool:
        """Return whether a missing baseline is made from the measurement."""
        return self.missing is Choice.RECORD

    def effect(self, key: str) -> Effect:
        """Return the effect of the choice of this name."""
        return _EFFECTS[getattr(self, key)]


@value
class Rule:
    """One row of the table of outcomes."""

    outcome: Outcome
    meaning: str
    key: str = ""
    """The policy that decides; "" if none does."""
    effect: Effect = Effect.PASS
    """The effect if no policy decides."""
    exit: int = 0
    """The exit code of the command if the effect is to fail."""


SPEEDUP = "speedup"
"""The metric of a call beside its reference."""

ANCHOR = 0.10
"""How far accepted steps may take a line from its oldest time of ninety days, however small each is."""


@value
class Base:
    """The revision before the change under test, or why there is none."""

    commit: str = ""
    """"" if no revision is available."""
    name: str = ""
    """Its relation to the commit under test: ``the merge base with origin/main``."""
    why: str = ""
    """Why there is none, or why a guessed one may be wrong."""
    fix: str = ""
    unversioned: bool = False
    """Whether there is no repository here, or no commit in it, so that no revision can be named."""


CHANGES = frozenset({"slowdown"})
"""Metrics of change: a lower bound on them would demand a regression."""


LEAST = 7
"""Rounds below which nothing is cleared: six are all below the limit by chance once in 64."""


@value
class Reach:
    """Where pytest looked for tests; paths are those of node ids, relative to the root."""

    beneath: tuple[str, ...] = ()
    """Named folders, files and node ids; empty for the whole project."""
    without: tuple[str, ...] = ()
    """Excluded paths and patterns."""
    unknown: str = ""
    """The option because of which it is unknown where pytest looked."""

    def holds(self, nodeid: str) -> bool:
        """Return whether a test of this name would have been collected."""
        if self.leaves_out(nodeid):
            return False
        places = _places(nodeid.partition("::")[0])
        return not self.beneath or any(named in places or _is_below(nodeid, named) for named in self.beneath)

    def leaves_out(self, nodeid: str) -> bool:
        """Return whether pytest was told not to look there."""
        places = _places(nodeid.partition("::")[0])
        return any(place == out or fnmatchcase(place, out) for place in places for out in self.without)


def _places(path: str) -> list[str]:
    """Return the file itself and every folder above, the root of the project last."""
    parts = path.split("/")
    return ["/".join(parts[:end]) for end in range(len(parts), 0, -1)] + ["."]


def _is_below(nodeid: str, named: str) -> bool:
    """Return whether one node id contains another: the test, one of its parameters, or a test of its class."""
    return nodeid == named or nodeid.startswith((f"{named}[", f"{named}::"))
