"""The GPU check on a simulated card: a card, a torch that launches on it, and the script itself over both.

Run as a program, with the root of the project on PYTHONPATH, it stands for ``ci/gpu-check``: its parts run in processes of their own, which are this one again.
"""

from __future__ import annotations

import contextlib
import sys
import time
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import SimpleNamespace

from ci.gpu import parts, processes, truth
from pytest_perfgate.adapters.bindings.cupti import KernelRecord
from pytest_perfgate.adapters.timers.auto import AutoTimer, GraphTimer
from pytest_perfgate.adapters.timers.bench import Rules
from pytest_perfgate.adapters.timers.cupti import CuptiTimer
from pytest_perfgate.adapters.timers.events import BlockingTimer, EventsTimer
from pytest_perfgate.model.device import Availability
from pytest_perfgate.model.measurement import Stop
from pytest_perfgate.model.plan import ClockPolicy, Plan
from pytest_perfgate.testing import SimulatedGpu

ROOT = Path(__file__).resolve().parents[2]


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

    def __matmul__(self, other):
        self.gpu.kernel(60_000)

    def _long(self, *arguments):
        self.gpu.kernel(100_000)

    def _short(self, *arguments):
        self.gpu.kernel(2_000)


class Torch:
    """The names of torch that the check uses."""

    float32, bfloat16, float8_e4m3fn = "float32", "bfloat16", "float8_e4m3fn"

    def __init__(self, gpu) -> None:
        self.gpu = gpu
        self.current = 0
        matmul = SimpleNamespace(allow_tf32=False)
        self.backends = SimpleNamespace(cuda=SimpleNamespace(matmul=matmul))
        functional = SimpleNamespace(scaled_dot_product_attention=lambda *arguments: gpu.kernel(155_000))
        self.nn = SimpleNamespace(functional=functional)
        self.cuda = SimpleNamespace(
            Stream=object, stream=self._stream, _sleep=lambda cycles: gpu.kernel(cycles / 1.5, self.current)
        )

    @contextlib.contextmanager
    def _stream(self, stream):
        self.current = 1
        yield
        self.current = 0

    def randn(self, *shape, device):
        made = Tensor(self.gpu)
        made.deep = shape[-1]
        return made

    empty_like = softmax = mm = None

    def ones(self, *arguments, **named):
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


class SimulatedCheck(parts.Check):
    """The same over a simulated card."""

    def __init__(self, clocks: str = "off", seconds: float = 3600.0) -> None:
        gpu = self.runtime = SimulatedGpu()
        gpu.event = lambda: Pair(SimulatedGpu.event(gpu))
        torch = self.torch = Torch(gpu)
        torch.empty_like = lambda tensor: Tensor(gpu)
        torch.softmax = torch._scaled_mm = lambda *arguments, **named: gpu.kernel(60_000)
        torch.mm = lambda a, b: gpu.kernel(63_000 if a.deep == 4304 else 60_000)
        rules = Rules(
            stop=lambda durations, spent, plan: Stop.COUNT if len(durations) >= 20 else None,
            warm=lambda medians, calls, spent, plan: calls >= 5,
            clock=gpu.clock,
        )
        self.plan, self.ends = Plan(clocks=ClockPolicy(clocks)), time.monotonic() + seconds
        timers = [EventsTimer(rules), CuptiTimer(rules, FakeRecorder(gpu)), BlockingTimer(rules), GraphTimer(rules)]
        self.timers = {timer.name: timer for timer in (*timers, AutoTimer(rules, timers))}

    def runtime_module(self):
        return self.torch


class Pair:
    """An event with the library's own inside."""

    def __init__(self, inner) -> None:
        self.inner, self.record = inner, inner.record
        self.inner.elapsed_time = lambda later: later.since(inner) / 1e6

    @property
    def stamp(self):
        return self.inner.stamp

    def since(self, earlier):
        return self.inner.since(earlier.inner)


def one_run(shift: float, *problems: str) -> processes.Run:
    return processes.Run([100.0 * shift] * 40, list(problems))


def script():
    """``ci/gpu-check`` as a module."""
    loader = SourceFileLoader("gpu_check", str(ROOT / "ci" / "gpu-check"))
    module = module_from_spec(spec_from_loader("gpu_check", loader))
    loader.exec_module(module)
    return module


def main() -> int:
    """The script with this file in its place, so that its parts come back here."""
    module = script()
    module.PARTS = {name: (title, 20 * seconds, part) for name, (title, seconds, part) in module.PARTS.items()}
    module.BUDGET_S *= 20  # a host that is slow says nothing of the card
    parts.Check, processes.ROUNDS = SimulatedCheck, processes.LEAST_ROUNDS
    module.__file__ = processes.SCRIPT = truth.SCRIPT = __file__
    parts.truths, parts.proof_failure = lambda clocks: ({"copy 256 MB": 100_000.0}, "no other"), lambda: ""
    return module.main()


if __name__ == "__main__":
    sys.exit(main())
