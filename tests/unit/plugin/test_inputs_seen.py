"""A GPU's inputs are looked at once, before the first call; a host's are not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_perfgate.adapters.devices.host import probe_host
from pytest_perfgate.adapters.runtimes.fake import FakeRuntime
from pytest_perfgate.adapters.runtimes.host import HostRuntime
from pytest_perfgate.adapters.timers.host import HostTimer
from pytest_perfgate.core.stats.stopping import Stopping, WarmUp
from pytest_perfgate.model.metric import MetricSet
from pytest_perfgate.model.plan import CaseKey, Plan
from pytest_perfgate.model.tools import Instruments
from pytest_perfgate.plugin.asked import Asked
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
