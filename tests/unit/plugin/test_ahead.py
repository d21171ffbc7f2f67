"""What measuring will cost, said beforehand, and how a budget cuts it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pytest_perfgate.core.gate.grammar import parse_limit
from pytest_perfgate.core.gate.rounds import Design
from pytest_perfgate.model.plan import Case, Plan
from pytest_perfgate.plugin.ahead import affordable, cost_line, sampled, seconds_of, suspicion_line
from pytest_perfgate.plugin.trying import triable, trying_line
from tests.unit.core.gate.bench import KINDS

CASES = [Case(nodeid=f"t.py::test_{at}", limits=(), plan=Plan(warmup_ns=0.2e9, budget_ns=1e9)) for at in range(10)]


def test_costs_are_those_of_last_time_where_they_are_known() -> None:
    assert seconds_of(CASES, {}) == (3.0, pytest.approx(36.0))
    assert seconds_of(CASES, {case.nodeid: 0.1 for case in CASES}) == (3.0, pytest.approx(3.0))
    assert seconds_of([], {}) == (0, 0)
    assert cost_line(CASES, {}) == "10 cases, 3 rounds, at most about 39 s"


@pytest.mark.parametrize(
    ("left_s", "part"), [(float("inf"), 1.0), (39.0, 1.0), (21.0, 0.5), (4.0, 0.1), (0.0, 0.1), (-5.0, 0.1)]
)
def test_a_budget_cuts_sampling_and_never_to_nothing(left_s: float, part: float) -> None:
    assert affordable(CASES, {}, left_s) == pytest.approx(part)


def test_a_cut_is_said_and_done() -> None:
    assert cost_line(CASES, {}, 0.5) == "10 cases, 3 rounds, at most about 21 s; sampling cut to 50% by the budget"
    half = sampled(CASES[0], 0.5).plan
    assert (half.warmup_ns, half.budget_ns) == (0.1e9, 0.5e9)
    assert sampled(CASES[0], 1.0) is CASES[0]


def test_what_suspects_would_cost_is_said_beforehand() -> None:
    assert trying_line(0, Design()) == ""
    assert trying_line(1, Design()) == "; if one is suspected, about 31 s more"
    assert trying_line(38, Design()) == "; if one is suspected, about 31 s more; if all 38 are, 5 min 4 s"
    held = parse_limit("slowdown <= 3%", kinds=KINDS)
    assert triable([*CASES, Case(nodeid="t.py::test_b", limits=(held,), plan=Plan())]) == 1


@pytest.mark.parametrize(
    ("devices", "convicts", "said"),
    [(("host-x",), True, "; if one is suspected, about 31 s more"), ((), True, ""), (("host-x",), False, "")],
)
def test_nobody_is_suspected_without_a_baseline_or_where_nobody_is_tried(
    devices: tuple[str, ...], convicts: bool, said: str
) -> None:
    tools = SimpleNamespace(convict=dict if convicts else None, baselines=SimpleNamespace(devices=lambda: devices))
    held = Case(nodeid="t.py::test_b", limits=(parse_limit("slowdown <= 3%", kinds=KINDS),), plan=Plan())
    session: Any = SimpleNamespace(court=SimpleNamespace(tools=tools))
    assert suspicion_line(session, [held]) == said
