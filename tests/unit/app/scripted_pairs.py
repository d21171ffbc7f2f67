from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from pytest_perfgate.app.compare_arms import Comparison
from pytest_perfgate.app.lockstep import Stage
from pytest_perfgate.app.screening import Screening, ToDecide
from pytest_perfgate.core.judge.rounds import Design
from pytest_perfgate.core.metric_kinds import own_reading
from pytest_perfgate.model.device import Device
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.measurement import Discard, Identity, Samples, Stop
from pytest_perfgate.model.plan import Case, CaseKey, Plan
from pytest_perfgate.model.protocol import (
    Bye,
    Capture,
    ChildJob,
    ChildSpec,
    Collected,
    Entered,
    Finish,
    Finished,
    Go,
    Measure,
    Ready,
    Skip,
    Taken,
    Waits,
)
from pytest_perfgate.model.verdict import Arm

DEVICE = Device(key="host-x", name="x", kind="host")


@dataclass
class World:
    """What the arms hold."""

    time: Callable[[str, str, int], float]
    """Nanoseconds of (arm, node id, round)."""
    missing: dict[str, set[str]] = field(default_factory=dict)
    dies: set[tuple[str, str]] = field(default_factory=set)
    errors: tuple[str, ...] = ()
    """What an arm says that misses a test."""
    raises: set[tuple[str, str, bool]] = field(default_factory=set)
    """(arm, node id, whether from the head's file) of calls that raise."""
    failing: dict[str, set[int]] = field(default_factory=dict)
    """Rounds in which the head's call of a test raises."""
    static: set[str] = field(default_factory=set)
    """Tests that hand over machine code and call nothing."""
    modules: dict[str, tuple[tuple[str, str], ...]] = field(default_factory=dict)
    beside: dict[str, tuple[tuple[str, str], ...]] = field(default_factory=dict)
    own: bool = False
    """Whether an arm finds everything once it has its own test files."""
    unloadable: str = ""
    """The error of the head's conftest in the base."""
    turns: list[tuple[str, str]] = field(default_factory=list)
    finished: list[tuple[str, bool]] = field(default_factory=list)
    """Which arm was told to end its call, and whether it is to take turns with its references first."""
    retaken: set[int] = field(default_factory=set)
    """Which of these an instrument found invalid the first time."""
    spawned: list[ChildSpec] = field(default_factory=list)
    shown: list[tuple[str, int, str]] = field(default_factory=list)
    """What somebody who waits was shown."""
    start_s: float = 0.0
    """What starting one child takes on this world's clock."""
    test_s: float = 0.0
    """What a test takes in both arms."""
    long: dict[str, float] = field(default_factory=dict)
    """The same of tests that take another time."""
    now: float = 0.0
    waits: bool = False
    """Whether each turn waits for another process first."""
    device: Device = DEVICE
    untouched: bool = False
    """Whether an arm has left the device alone once it has collected."""
    timer: str = "host"
    border: tuple[str, ...] = ()
    """The timers that processes choose, one after the other, of a call near the border between them."""
    begun: list[tuple[int, int]] = field(default_factory=list)
    """The seed of each process, and the turns that were over when it started."""
    open: int = 0
    """Processes that nobody has ended."""
    leased: list[list[str]] = field(default_factory=list)
    loss: Callable[[str, int], float] | None = None
    """A figure of (arm, round) that each call takes."""
    within: float = 0.0
    """How far the samples of a process reach above their least."""

    def spawn(self, spec: ChildSpec) -> ScriptedChild:
        self.spawned.append(spec)
        self.begun.append((int(dict(spec.env)["PYTHONHASHSEED"]), len(self.turns)))
        self.open += 1
        self.now += self.start_s
        return ScriptedChild(spec, self)


class ScriptedChild:
    def __init__(self, spec: ChildSpec, world: World) -> None:
        self.label, self._world = spec.label, world
        self._round = int(dict(spec.env)["PYTHONHASHSEED"])
        self._out: deque[object] = deque()
        self._left: deque[str] = deque()
        self._key: CaseKey | None = None
        self._own = False
        self._error = ""
        self._taken: list[Samples] = []
        self.closed = False

    def send(self, command: object) -> None:
        if isinstance(command, ChildJob):
            if self.label == "base" and "conftest.py" not in dict(command.files):
                self._error = self._world.unloadable
            missing = self._world.missing.get(self.label, set())
            missing = set() if self._world.own and command.files else missing
            nodeids = [c.nodeid for c in command.cases if c.nodeid not in missing]
            self._left, self._own = deque(nodeids), bool(command.files)
            errors = self._world.errors if missing else ()
            self._out.append(Collected(nodeids=tuple(nodeids), errors=errors, untouched=self._world.untouched))
            self._next()
        elif isinstance(command, Go):
            self._key, self._taken = CaseKey(nodeid=self._left[0]), []
            if self._key.nodeid in self._world.static:
                self._world.turns.append((self.label, self._key.nodeid))
                self._end("cubin")
            else:
                self._out.append(Entered(key=self._key))
        elif isinstance(command, Skip):
            self._left.popleft()
            self._next()
        elif isinstance(command, Measure) and self._fails():
            self._fail()
        elif isinstance(command, Measure):
            self._measure(command.plan)
        elif isinstance(command, Finish):
            self._world.finished.append((self.label, command.references))
            self._end()

    def receive(self, timeout_s: float) -> object:
        if self._error:
            raise PerfgateError("child-crashed", f"the {self.label} build ended with exit code 4: {self._error}")
        if self._key and (self.label, self._key.nodeid) in self._world.dies:
            raise PerfgateError("child-crashed", f"{self.label} died of SIGSEGV")
        return self._out.popleft()

    def close(self) -> None:
        self._world.open -= not self.closed
        self.closed = True

    def tail(self) -> str:
        return ""

    def _measure(self, plan: Plan) -> None:
        assert self._key is not None
        lost = (Discard(reason="throttled", count=5),) if len(self._world.turns) in self._world.retaken else ()
        self._world.turns.append((self.label, self._key.nodeid))
        time = self._world.time(self.label, self._key.nodeid, self._round)
        times = tuple(time * (1 + self._world.within * step / 4) for step in range(5))
        near = self._world.border[self._round % len(self._world.border)] if self._world.border else "host"
        samples = Samples(
            durations=times,
            cpu=times,
            timer=plan.earlier_timer or near,
            stop=Stop.BUDGET,
            batch=plan.calls or 1,
            discarded=lost,
        )
        self._taken.append(samples)
        if self._world.waits:
            self._out.append(Waits(text="process 7 measures on GPU-1"))
        self._out.append(Taken(key=self._key, samples=samples))

    def _end(self, timer: str = "") -> None:
        assert self._key is not None
        loss, device, timer = self._world.loss, self._world.device, timer or self._world.timer
        readings = (own_reading("loss", loss(self.label, self._round)),) if loss else ()
        timer = self._taken[-1].timer if self._world.border else timer
        identity = Identity(device=device.key, timer=timer)
        capture = Capture(
            key=self._key, samples=tuple(self._taken), device=device, readings=readings, identity=identity
        )
        nodeid = self._left.popleft()
        took_s = self._world.long.get(nodeid[-1], self._world.test_s)
        self._world.now += took_s / 2
        done = Finished(nodeid=nodeid, outcome="passed", captures=(capture,), seconds=took_s)
        self._out.append(done)
        self._key = None
        self._next()

    def _fails(self) -> bool:
        always = (self.label, self._left[0], not self._own) in self._world.raises
        return always or (self.label == "head" and self._round in self._world.failing.get(self._left[0], set()))

    def _fail(self) -> None:
        self._out.append(Finished(nodeid=self._left.popleft(), outcome="failed", text="call: TypeError: exact"))
        self._key = None
        self._next()

    def _next(self) -> None:
        self._out.append(
            Ready(nodeid=self._left[0])
            if self._left
            else Bye(modules=self._world.modules.get(self.label, ()), loaded=self._world.beside.get(self.label, ()))
        )


def arm(name: str, content: str = "") -> Arm:
    return Arm(
        name=name, revision=f"{name}-revision", tree=name, dirty=False, mode="overlay", python="python", launch=("python",),
        environment=(), cwd=".", root=f"/{name}", modules=("kern",), digest=f"{name}-digest",
        content=content,
    )  # fmt: skip


def spec(of: Arm, cases: Sequence[Case], seed: int) -> ChildSpec:
    return ChildSpec(argv=(), python=of.launch, cwd=Path(), env=(("PYTHONHASHSEED", str(seed)),), label=of.name)


def cases(count: int) -> list[Case]:
    return [Case(nodeid=f"t.py::test_{at}", limits=(), plan=Plan(), path="t.py") for at in range(count)]


PROOF = {"base": (("/base/kern.py", "1"),), "head": (("/head/kern.py", "2"),)}


def staged(world: World, lines: list[str], counts: list[int], budget_s: float = 0.0) -> Stage:
    @contextmanager
    def hold(devices: Sequence[str]) -> Iterator[None]:
        world.leased.append(list(devices))
        yield

    return Stage(
        early=True,
        hold=hold,
        spawner=world,
        spec=spec,
        job=ChildJob(cases=()),
        timeout_s=1,
        say=lines.append,
        keep=lambda rounds: counts.append(len(rounds)),
        clock=lambda: world.now,
        budget_s=budget_s,
        show=lambda *arguments: world.shown.append(arguments),
    )


def heard(comparison: Comparison, *, among: int = 0, to_decide: ToDecide | None = None, expected=None):
    screening = Screening(comparison, lambda key: 0.03, among, lambda key: to_decide or ToDecide(), expected or {})
    screening.decide()
    return screening.paired(revision=not among)


def compared(
    world: World,
    count: int = 3,
    *,
    among: int = 0,
    budget_s: float = 0.0,
    content=("", ""),
    to_decide=None,
    expected=None,
):
    lines: list[str] = []
    counts: list[int] = []
    world.modules = world.modules or PROOF
    stage = staged(world, lines, counts, budget_s)
    comparison = Comparison((arm("base", content[0]), arm("head", content[1])), cases(count), stage, Design())
    results = heard(comparison, among=among, to_decide=to_decide, expected=expected)
    return comparison, {key.nodeid[-1]: paired for key, paired in results.items()}, lines


def slower(which: str, by: float):
    def time(side: str, nodeid: str, number: int) -> float:
        noise = 1 + 0.002 * ((number * 7 + len(side)) % 5)
        return 1e6 * noise * (1 + by if side == "head" and nodeid.endswith(which) else 1)

    return time
