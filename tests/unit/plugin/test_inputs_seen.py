"""A GPU's inputs are looked at once, before the first call; a host's are not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_perfgate.adapters.devices.host import probe_host
from pytest_perfgate.adapters.runtimes.fakes import FakeRuntime
from pytest_perfgate.adapters.runtimes.host import HostRuntime
from pytest_perfgate.adapters.timers.host import HostTimer
from pytest_perfgate.core.stats.summary import Stopping, WarmUp
from pytest_perfgate.model.metric import MetricSet
from pytest_perfgate.model.plan import CaseKey, Plan
from pytest_perfgate.model.ports import Instruments
from pytest_perfgate.plugin.calls import Asked
from pytest_perfgate.plugin.measuring import Measuring


class Zeros:
    """Two arrays within reach of anything, until a call has written them."""

    def __init__(self) -> None:
        self.looks, self.written = 0, False

    def within(self, *things):
        self.looks += 1
        return ("a", "b")

    def level(self, array):
        return "" if self.written else "0"

    def name(self, array):
        return array


@pytest.mark.parametrize("gpu", [True, False])
def test_constant_inputs_are_a_note_of_the_capture(gpu) -> None:
    contents, fake = Zeros(), FakeRuntime([2e6])
    instruments = Instruments(
        runtimes=(fake if gpu else HostRuntime(probe_host),), timers=(HostTimer(Stopping(), WarmUp()),),
        threads=str, affinity=str, contents=contents,
    )  # fmt: skip
    measuring = Measuring(instruments, lambda capture: MetricSet())

    def call() -> None:
        contents.written = True
        fake.kernel()

    plan = replace(Plan(), runtime="fake" if gpu else "host", warmup_ns=1.0, budget_ns=1.0)
    asked = Asked(CaseKey(nodeid="t.py::test_a"), call)
    captures = [measuring.capture(asked, plan) for _ in range(2)]
    assert contents.looks == gpu
    titles = [[finding.title for finding in capture.findings] for capture in captures]
    assert titles == [["constant inputs"] * gpu] * 2


@pytest.mark.parametrize(("made", "titles"), [(("zeros", "zeros"), ["constant inputs"]), (("data", "zeros"), [])])
def test_what_a_set_up_makes_is_looked_at_once_before_a_call_writes_it(made, titles) -> None:
    fake, made_of = FakeRuntime([2e6]), []

    class Kinds(Zeros):
        """Arrays are the names of what they hold."""

        def within(self, *things):
            self.looks += 1
            return things[-1]

        def level(self, array):
            return "" if self.written or array == "data" else "0"

    contents = Kinds()
    instruments = Instruments(
        runtimes=(fake,), timers=(HostTimer(Stopping(), WarmUp()),), threads=str, affinity=str, contents=contents,
    )  # fmt: skip

    def prepare():
        contents.written = False
        made_of.append(1)
        return made

    def call(one, other) -> None:
        contents.written = True
        fake.kernel()

    asked = Asked(CaseKey(nodeid="t.py::test_a"), call, setup=prepare)
    measuring = Measuring(instruments, lambda capture: MetricSet())
    plan = replace(Plan(), runtime="fake", warmup_ns=1.0, budget_ns=1.0)
    captures = [measuring.capture(asked, plan) for _ in range(2)]
    assert [[finding.title for finding in capture.findings] for capture in captures] == [titles] * 2
    assert (contents.looks, len(made_of) > 1) == (1, True)
