"""A failing test shows the user's frames; ours stand only where nothing else tells what happened."""

from __future__ import annotations

import traceback
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_perfgate import work
from pytest_perfgate.adapters.devices.host import probe_host
from pytest_perfgate.adapters.runtimes.host import HostRuntime
from pytest_perfgate.adapters.timers.host import HostTimer
from pytest_perfgate.compat import Benchmark
from pytest_perfgate.core.render.words import significant
from pytest_perfgate.core.stats.summary import Stopping, WarmUp
from pytest_perfgate.model.plan import Case, CaseKey, Plan
from pytest_perfgate.plugin.benches import Bench
from pytest_perfgate.plugin.calls import Asked
from pytest_perfgate.plugin.controller import ControllerRole
from pytest_perfgate.plugin.fixture import Gate
from pytest_perfgate.plugin.reporting import UsersFrames
from pytest_perfgate.plugin.xdist import WorkerRole


def kernel(x: int) -> float:
    return 1 / x


def refuse(_: object) -> None:
    raise ValueError("wrong")


def leave(by: Any) -> None:
    by("pytest's own words")


def gate() -> Gate:
    return Gate(
        Case(nodeid="t.py::test_a", limits=(), plan=Plan()), Bench(Case(nodeid="t.py::test_a", limits=(), plan=Plan()))
    )


def timed(*args: Any) -> None:
    asked = Asked(CaseKey(nodeid="t.py::test_a"), kernel, args)
    HostTimer(Stopping(), WarmUp()).measure(asked.timed(), Plan(), HostRuntime(probe_host))


def benchmarked() -> None:
    node = SimpleNamespace(get_closest_marker=lambda name: None, name="a", nodeid="t.py::a")
    Benchmark(gate(), node).pedantic(kernel, setup=lambda: ((0,), {}))


def shown(act: Any, *, full: bool = False) -> list[str]:
    """The functions of the traceback, below the test itself."""
    config: Any = SimpleNamespace(option=SimpleNamespace(fulltrace=full))
    with pytest.raises((Exception, pytest.fail.Exception, pytest.skip.Exception)) as caught:
        with UsersFrames(config):
            act()
    names = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    return names[len(names) - names[::-1].index("shown") :]


@pytest.mark.parametrize(
    ("act", "frames"),
    [
        (lambda: timed(0), ["<lambda>", "timed", "kernel"]),
        (lambda: gate()(kernel, 0), ["<lambda>", "kernel"]),
        (lambda: gate()(kernel, 1, check=refuse), ["<lambda>", "refuse"]),
        (lambda: gate()(kernel, setup=lambda: kernel(0)), ["<lambda>", "<lambda>", "kernel"]),
        (benchmarked, ["benchmarked", "kernel"]),
        (timed, ["timed"]),
        (lambda: gate()(leave, pytest.fail), ["<lambda>", "leave", "__call__"]),
        (lambda: gate()(leave, pytest.skip), ["<lambda>", "leave", "__call__"]),
        (lambda: gate()(int, "x"), ["<lambda>"]),
        (lambda: work.gemm(1, 2, 3, dtype="odd"), ["<lambda>"]),
        (lambda: significant("odd", 3), ["<lambda>", "significant"]),
    ],
    ids=[
        "measured",
        "called",
        "check",
        "setup",
        "compat",
        "wrong arguments",
        "failed",
        "skipped",
        "a builtin",
        "work",
        "a fault of ours",
    ],
)
def test_the_users_frames_are_what_is_seen(act: Any, frames: list[str]) -> None:
    assert shown(act) == frames


def test_full_trace_keeps_every_frame() -> None:
    frames = shown(lambda: gate()(kernel, 0), full=True)
    assert (frames[:2], frames[-1]) == (["<lambda>", "__call__"], "kernel")
    assert len(frames) > 4


def test_a_fault_without_a_frame_of_the_users_shows_none_of_ours() -> None:
    config: Any = SimpleNamespace(option=SimpleNamespace(fulltrace=False))
    with pytest.raises(ValueError, match="health") as caught:
        with UsersFrames(config):
            raise ValueError("health check")
    assert {Path(str(entry.path)).name for entry in caught.traceback.filter(caught)} == {"test_frames.py"}
    for role in (ControllerRole, WorkerRole):
        assert "__tracebackhide__" in role.pytest_runtest_call.__code__.co_varnames
