"""A program without a GPU: which of its operators stand for the work, and when it is idle."""

from __future__ import annotations

import pytest

from pytest_perfgate.core.render.text import render_text
from pytest_perfgate.wiring import built_ins

from .generated import host, written


@pytest.fixture(scope="module")
def kineto():
    return next(i for i in built_ins.BuiltIns().pytest_perfgate_inspectors() if i.name == "kineto")


def times(kineto, folder, events, **options):
    """Microseconds by operator, and the analysis."""
    analysis = kineto.inspect([written(folder / "t.json", events)], options)
    named = [(dict(m.labels).get("op"), m.value / 1000) for m in analysis.metrics.find("op_time")]
    found = {name: value for name, value in named if name}
    return found, analysis


def linear(at):
    """As PyTorch calls it on a processor: the product is in addmm itself, between and behind what that calls."""
    return [
        host("aten::linear", at, 100),
        host("aten::t", at + 2, 3),
        host("aten::transpose", at + 3, 1),
        host("aten::addmm", at + 6, 90),
        host("aten::expand", at + 7, 2),
        host("aten::as_strided", at + 8, 0.5),
        host("aten::copy_", at + 10, 4),
        host("aten::resolve_conj", at + 15, 1),
    ]


def test_a_product_has_the_time_that_it_takes_and_not_that_of_its_views(kineto, tmp_path) -> None:
    found, analysis = times(kineto, tmp_path, [*linear(0), *linear(200)])
    assert found["aten::addmm"] == 180
    assert "aten::copy_" not in found
    assert "aten::linear" not in found
    (count,) = analysis.metrics.find("op_count", (("op", "aten::addmm"),))
    assert count.value == 2
    (idle,) = analysis.metrics.find("idle")
    assert idle.value == pytest.approx(100 / 300)
    assert "operators run" in render_text(analysis.views["report"]())


def test_what_has_no_model_and_only_allocates_stands_for_itself(kineto, tmp_path) -> None:
    """An operator of a library of one's own."""
    events = [host("mine::scan", 0, 50), host("aten::empty", 1, 2), host("aten::relu", 60, 10)]
    assert times(kineto, tmp_path, events)[0] == {"mine::scan": 50, "aten::relu": 10}


def test_what_only_calls_others_does_not_stand_for_them(kineto, tmp_path) -> None:
    events = [
        host("mine::step", 0, 100),
        host("aten::matmul", 5, 40), host("aten::mm", 6, 38), host("aten::mul", 50, 10),
        host("aten::zeros", 70, 20), host("aten::empty", 71, 2), host("aten::zero_", 75, 12), host("aten::fill_", 76, 10),
    ]  # fmt: skip
    found, analysis = times(kineto, tmp_path, events)
    assert found == {"aten::mm": 38, "aten::mul": 10, "aten::empty": 2, "aten::fill_": 10}
    assert analysis.metrics.find("idle")[0].value == 0


def test_a_step_mark_without_operators_says_that(kineto, tmp_path) -> None:
    events = [host("aten::mm", 0, 50), host("ProfilerStep#1", 60, 1, cat="user_annotation")]
    _, analysis = times(kineto, tmp_path, events)
    assert "marks 1 step, and no operator lies in one of them." in render_text(analysis.views["steps"]())
    _, nowhere = times(kineto, tmp_path, events, window="55us..58us")
    assert nowhere.metrics.missing("idle").why == "no operator lies in this window"
