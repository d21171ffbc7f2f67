"""A call that is slowed by a part takes that part longer, on a clock of the test's own."""

from __future__ import annotations

import pytest

from pytest_perfgate.clock import HOST_CLOCK
from pytest_perfgate.plugin import measuring as slowing


class Clock:
    """Each look takes 50 ns, each call what it says."""

    def __init__(self, call_ns: int) -> None:
        self.now, self.call_ns, self.calls = 0, call_ns, 0

    def thread_time_ns(self) -> int:
        self.now += 50
        return self.now

    def call(self) -> str:
        self.now += self.call_ns
        self.calls += 1
        return "done"


@pytest.mark.parametrize(("call_ns", "calls"), [(400, 20000), (20_000, 1000), (3_000_000, 40)])
@pytest.mark.parametrize("by", [0.02, 0.10])
def test_it_waits_in_proportion(monkeypatch: pytest.MonkeyPatch, call_ns: int, calls: int, by: float) -> None:
    spent = {}
    for part in (0.0, by):
        clock = Clock(call_ns)
        monkeypatch.setattr(slowing, "HOST_CLOCK", HOST_CLOCK._replace(thread=clock.thread_time_ns))
        slow = slowing.slowed(clock.call, part)
        assert [slow() for _ in range(calls)] == ["done"] * calls
        assert clock.calls == calls
        spent[part] = clock.now
    assert spent[by] / spent[0.0] - 1 == pytest.approx(by, rel=0.25)


def test_a_process_is_told_by_its_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(slowing.VARIABLE, raising=False)
    assert slowing.asked_for() is None
    monkeypatch.setenv(slowing.VARIABLE, "0.0")
    assert slowing.asked_for() == 0.0
    monkeypatch.setenv(slowing.VARIABLE, "0.05")
    assert slowing.asked_for() == 0.05
