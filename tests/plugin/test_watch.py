"""What stands around a profiled call: whom it wants, what it notes, and event mode."""

from __future__ import annotations

import shlex
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from pytest_perfgate.adapters.profilers.in_process import EventTimes
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.measurement import Identity
from pytest_perfgate.model.metric import Problem
from pytest_perfgate.model.plan import CaseKey, Plan
from pytest_perfgate.model.protocol import Assignment, Capture, external, parse_assignment
from pytest_perfgate.model.values import Work
from pytest_perfgate.plugin.calls import MeasuredCall
from pytest_perfgate.plugin.profiled import Watch
from pytest_perfgate.wiring import built_ins
from tests.unit.core.judge.bench import GPU, HOST, KEY, samples


class Clocks:
    """Locks nothing and says what it would have seen."""

    @contextmanager
    def hold(self, device, plan):
        self.asked = plan.clocks.value
        yield SimpleNamespace(
            clock_hz=lambda: (1.5e9,),
            problems=lambda: (Problem(code="throttled", what="it was throttled"),),
            facts=lambda: (("power", "300 W"),),
        )


class Measuring:
    def __init__(self, problems=()) -> None:
        self.instruments = SimpleNamespace(leases=None, clocks=Clocks())
        self.problems = problems

    def device(self, plan, call=None):
        return GPU

    def capture(self, call, plan):
        assert plan.timer == "events"
        identity = Identity(device=GPU.key, timer="events")
        taken = samples(1e6, timer="events", problems=self.problems)
        return Capture(key=call.key, samples=(taken,), device=GPU, identity=identity, work=call.work)


def watch(out: Path, measuring: Measuring, **fields) -> Watch:
    return Watch(Assignment(mode="event", out=str(out), **fields), measuring, (("n", "4"),))


def test_device_clocks_and_parameters_are_noted(tmp_path: Path) -> None:
    measuring = Measuring()
    watching = watch(tmp_path, measuring, clocks="lock")
    with watching.over(None, Plan(), Work(flops=1.0, dtype="bf16")):
        pass
    facts = watching.facts()
    assert watching.entered == 1
    assert measuring.instruments.clocks.asked == "lock"
    assert facts["parameters"] == {"n": "4"}
    assert facts["device"]["name"] == "NVIDIA H200"
    assert facts["dtype"] == "bf16"
    clocks = {"hz": [1.5e9], "problems": ["it was throttled"], "power": "300 W"}
    assert facts["clocks"] == {"policy": "lock", **clocks}


def test_the_named_call_alone_is_wanted(tmp_path: Path) -> None:
    named = watch(tmp_path, Measuring(), call="bwd")
    assert named.watches(CaseKey(nodeid="t", name="bwd"))
    assert not named.watches(CaseKey(nodeid="t"))
    assert watch(tmp_path, Measuring()).watches(CaseKey(nodeid="t", name="any"))
    asleep = Watch(Assignment(mode="nsys", out=str(tmp_path)), Measuring(), (), awake=False)
    assert not asleep.watches(CaseKey(nodeid="t"))


def test_event_mode_leaves_a_record_with_the_time(tmp_path: Path) -> None:
    watch(tmp_path, Measuring()).times(MeasuredCall(KEY, int), Plan())
    (artifact,) = EventTimes().artifacts(tmp_path)
    path = Path(artifact.path)
    inspectors = built_ins.BuiltIns().pytest_perfgate_inspectors()
    inspector = next(one for one in inspectors if one.recognises(path, path.read_bytes()[:4096]))
    (time,) = inspector.inspect([path], {}).metrics.find("time")
    assert time.value == pytest.approx(1e6)


def test_event_mode_needs_a_device_with_events(tmp_path: Path) -> None:
    measuring = Measuring()
    measuring.device = lambda plan, call=None: HOST
    with pytest.raises(PerfgateError, match="this mode needs a GPU"):
        watch(tmp_path, measuring).times(MeasuredCall(KEY, int), Plan())


def test_event_mode_refuses_what_it_cannot_see(tmp_path: Path) -> None:
    escaped = Problem(code="work-escaped", what="work ran on another stream, out of sight")
    with pytest.raises(PerfgateError, match="refused: work ran on another stream"):
        watch(tmp_path, Measuring((escaped,))).times(MeasuredCall(KEY, int), Plan())
    with pytest.raises(PerfgateError, match="no call was timed"):
        EventTimes().artifacts(tmp_path)


def test_an_assignment_travels_as_a_text() -> None:
    assignment = Assignment(mode="nsys", out="/a b", call="x", options=(("size", "[1, 2]"),), markers=("slow: 'x'",))
    assert parse_assignment(assignment.text()) == assignment
    assert external(("event", "torch", "cubin", "nsys", "torch")) == ("torch", "nsys")


def test_a_child_carries_its_assignment_and_its_folder_through_any_launcher(tmp_path: Path) -> None:
    from pytest_perfgate.wiring.profiling import profile_tools

    (tmp_path / "pyproject.toml").write_text('[tool.perfgate]\nlauncher = "ssh node7 srun -N1"\n')
    tools = profile_tools(tmp_path)
    inside = Assignment(mode="torch", out="/out put")
    command = list(tools.command("t.py::t[a b]", inside))
    assert command[:4] == ["ssh", "node7", "srun", "-N1"], "an instrument inside the child has the launcher before it"
    words = shlex.split(command[4])
    code = words[words.index("-c") + 1]
    assert f"os.chdir({str(tmp_path)!r})" in code
    assert repr(inside.text()) in code
    assert words[words.index("t.py::t[a b]") :][1:] == ["-q", "--no-header", "-p", "no:cacheprovider"]
    plain = list(tools.command("t.py::t", Assignment(mode="nsys", out="/out")))
    assert "ssh" not in plain, "nsys puts the launcher before itself"
