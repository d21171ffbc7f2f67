"""Options that a suite of pytest-benchmark brings along."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from pytest_perfgate.plugin.benchmark_compat import Seat, add_inherited, idle_lines, intruder, limit_of, take_seats


def parsed(*given: str) -> SimpleNamespace:
    parser = pytest.Parser(_ispytest=True)
    add_inherited(parser)
    return SimpleNamespace(**vars(parser.parse(list(given))))


@pytest.mark.parametrize(
    ("expression", "limit"),
    [("mean:5%", "slowdown <= 5%"), ("12.5%", "slowdown <= 12.5%"), ("median:.5%", "slowdown <= .5%")],
)
def test_a_share_that_must_not_be_lost_is_a_limit(expression: str, limit: str) -> None:
    assert limit_of(expression) == limit


@pytest.mark.parametrize("expression", ["mean:0.001", "stddev:5%", "", "mean:5%%"])
def test_what_cannot_be_held_is_refused_with_what_can(expression: str) -> None:
    with pytest.raises(pytest.UsageError, match="--perfgate-limit"):
        limit_of(expression)


def test_options_without_a_meaning_are_named_by_their_reason() -> None:
    option = parsed(
        "--benchmark-warmup=true", "--benchmark-sort", "name", "--benchmark-autosave", "--codspeed-max-time=1"
    )
    assert list(idle_lines(option)) == [
        "idle: --benchmark-warmup, --codspeed-max-time (perfgate's own rule decides how often a call runs)",
        "idle: --benchmark-autosave (every run is kept under .perfgate/)",
        "idle: --benchmark-sort (the report is perfgate's own)",
    ]


def test_nothing_is_said_of_options_that_nobody_passed_or_that_are_heeded() -> None:
    assert not list(idle_lines(parsed()))
    assert not list(
        idle_lines(parsed("--benchmark-only", "--benchmark-json=a.json", "--benchmark-compare-fail", "mean:5%"))
    )


def test_who_asks_for_their_plugin_finds_somebody() -> None:
    manager = pytest.PytestPluginManager()
    take_seats(manager)
    assert isinstance(manager.get_plugin("benchmark"), Seat)
    assert intruder(manager) == ""


def test_their_plugin_that_was_there_before_is_named() -> None:
    manager = pytest.PytestPluginManager()
    manager.register(object(), "benchmark")
    take_seats(manager)
    assert intruder(manager) == "benchmark"
