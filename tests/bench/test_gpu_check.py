"""Without a GPU the check says so, in both of its files and by its exit code."""

from __future__ import annotations

import contextlib
import json
import runpy
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from pytest_perfgate.adapters.bindings.cupti import KernelRecord
from pytest_perfgate.adapters.runtimes.simulated import SimulatedGpu
from pytest_perfgate.adapters.runtimes.torch import TorchRuntime
from pytest_perfgate.adapters.timers.bench import Rules
from pytest_perfgate.adapters.timers.blocking import BlockingTimer
from pytest_perfgate.adapters.timers.cupti import CuptiTimer
from pytest_perfgate.adapters.timers.events import EventsTimer
from pytest_perfgate.adapters.timers.graph import GraphTimer
from pytest_perfgate.model.device import Availability
from pytest_perfgate.model.plan import Plan
from pytest_perfgate.model.samples import Stop

ROOT = Path(__file__).resolve().parents[2]


def test_not_run_is_said_and_no_pass(tmp_path) -> None:
    if TorchRuntime().availability().usable:
        pytest.skip("a GPU is here")
    command = [sys.executable, str(ROOT / "ci" / "gpu-check"), "--out", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 4, done.stderr
    assert "Not run: " in (tmp_path / "gpu-check.md").read_text()
    result = json.loads((tmp_path / "gpu-check.json").read_text())
    assert result["why"]
    assert result["parts"] == {}


# The check itself, on a simulated card: its arithmetic and its verdicts.


class Tensor:
    """Launches a kernel of the simulated card for whatever is asked of it."""

    T = property(lambda self: self)

    def __init__(self, gpu) -> None:
        self.gpu = gpu
        self.shape, self.copy_, self.add_ = (4096, 4096), self._long, self._short

    def to(self, kind):
        return self

    def t(self):
        return self

    def contiguous(self):
        return self

    def _long(self, *given):
        self.gpu.kernel(100_000)

    def _short(self, *given):
        self.gpu.kernel(2_000)


class Torch:
    """The names of torch that the check uses."""

    float32, bfloat16, float8_e4m3fn = "float32", "bfloat16", "float8_e4m3fn"

    def __init__(self, gpu) -> None:
        self.gpu = gpu
        self.current = 0
        matmul = SimpleNamespace(allow_tf32=False)
        self.backends = SimpleNamespace(cuda=SimpleNamespace(matmul=matmul))
        self.cuda = SimpleNamespace(
            Stream=object, stream=self._stream, _sleep=lambda cycles: gpu.kernel(cycles / 1.5, self.current)
        )

    @contextlib.contextmanager
    def _stream(self, stream):
        self.current = 1
        yield
        self.current = 0

    def randn(self, *shape, device):
        return Tensor(self.gpu)

    empty_like = softmax = mm = None

    def ones(self, *given, **named):
        return Tensor(self.gpu)


class FakeRecorder:
    """Reads the records off the simulated card."""

    def __init__(self, gpu) -> None:
        self.gpu, self.calls = gpu, {}

    def availability(self):
        return Availability(name="cupti", usable=True)

    @contextlib.contextmanager
    def opened(self, size):
        yield self

    def push(self, call):
        self.call, self.first = call, len(self.gpu.executed)

    def pop(self):
        self.calls[self.call] = self.gpu.executed[self.first :]

    def drain(self):
        calls, self.calls = self.calls, {}
        return [
            KernelRecord(start=int(start), end=int(end), stream=stream, device=0, call=call)
            for call, work in calls.items()
            for start, end, stream in work
        ]

    def dropped(self):
        return 0

    def counts_drops(self, call):
        call()
        return True


@pytest.fixture
def check():
    module = runpy.run_path(str(ROOT / "ci" / "gpu-check"))
    gpu = SimulatedGpu()
    torch = Torch(gpu)
    torch.empty_like = lambda tensor: Tensor(gpu)
    torch.softmax = torch.mm = torch._scaled_mm = lambda *given, **named: gpu.kernel(60_000)
    rules = Rules(
        stop=lambda durations, spent, plan: Stop.COUNT if len(durations) >= 20 else None,
        warm=lambda medians, calls, spent, plan: calls >= 5,
        clock=gpu.clock,
    )
    made = object.__new__(module["Check"])
    made.runtime, made.plan, made.begun = gpu, Plan(), 0.0
    made.timers = {
        "events": EventsTimer(rules), "graph": GraphTimer(rules), "blocking": BlockingTimer(rules),
        "cupti": CuptiTimer(rules, FakeRecorder(gpu)),
    }  # fmt: skip
    made.runtime_module = lambda: torch
    return module, made


def test_timers_are_held_against_kernel_records(check) -> None:
    module, made = check
    rows = list(module["agreement"](made))
    copy = {row["timer"]: row for row in rows if row["what"] == "copy 256 MB"}
    assert copy["events"]["held"] is True
    assert abs(copy["events"]["off"]) < 0.001
    short = {row["timer"]: row for row in rows if row["what"] == "short kernel"}
    assert short["events"]["refused"] == "timer-too-coarse"
    assert short["graph"]["held"] is True


def test_a_timer_that_is_off_is_not_held(check) -> None:
    module, made = check
    made.timers["events"] = WrongTimer(made.timers["events"])
    rows = list(module["agreement"](made))
    (copy,) = [row for row in rows if row["what"] == "copy 256 MB" and row["timer"] == "events"]
    assert copy["held"] is False


class WrongTimer:
    """Reads two percent too much."""

    def __init__(self, inner) -> None:
        self.inner = inner

    def measure(self, *given):
        samples = self.inner.measure(*given)
        return replace(samples, durations=tuple(1.02 * d for d in samples.durations))


def test_slowdowns_streams_and_products(check) -> None:
    module, made = check
    seen = {row["what"]: row for row in module["slowdowns"](made)}
    assert (seen["+0 %"]["seen"], seen["+2 %"]["seen"]) == (0, module["TRIALS"])
    assert seen["+2 %"]["held"] is True
    first, second = module["overlap"](made)
    assert first["held"] is True
    assert "ns" in second
    rows = list(module["ladder"](made))
    assert len(rows) == 16
    page = module["page"]({"device": "x", "facts": {}, "why": "", "parts": {"Products": rows}})
    assert "| bf16 8192 |" in page
