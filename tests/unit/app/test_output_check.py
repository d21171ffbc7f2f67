"""Tests of app/output_check."""

from __future__ import annotations

import functools
import math
import types

import numpy as np
import pytest

from pytest_perfgate.adapters.runtimes import arrays
from pytest_perfgate.adapters.runtimes.arrays import ArrayContents
from pytest_perfgate.app.output_check import (
    CONSTANT,
    PATTERNS,
    UNCHECKED,
    OutputCheck,
    Subject,
    constant_inputs,
    pattern,
    unexplained_share,
)
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.measurement import Samples, Stop
from pytest_perfgate.model.metric import Finding
from pytest_perfgate.model.plan import CaseKey
from pytest_perfgate.plugin.calls import MeasuredCall

SAMPLES = Samples(durations=(1.0,), timer="fake", stop=Stop.COUNT)


def codes(fn, *args, setup=None, check=lambda result: True, calls=5) -> list[str]:
    """The problems of a call that a timer calls so many times."""
    measured_call = MeasuredCall(CaseKey(nodeid="t.py::t"), fn, args, setup=setup, check=check)
    call = measured_call.with_last_result()

    def take() -> Samples:
        for _ in range(calls):
            measured_call.prepare()
            call()
        return SAMPLES

    subject = Subject(
        once=measured_call.called,
        last=lambda: call.last,
        check=measured_call.judge,
        reach=(fn, args),
        prepared=(setup,),
    )
    return [problem.code for problem in OutputCheck(subject, ArrayContents()).scrutinised(take).problems]


def noted(fn, *args) -> list[str]:
    findings: list[Finding] = []
    subject = Subject(once=lambda: fn(*args), last=lambda: fn(*args), check=lambda result: None, reach=(fn, args))
    assert OutputCheck(subject, ArrayContents(), findings).scrutinised(lambda: SAMPLES).problems == ()
    assert {finding.title for finding in findings} <= {UNCHECKED}
    return [finding.detail.partition(":")[0] for finding in findings]


def test_an_output_that_cannot_be_filled_is_named() -> None:
    fixed = np.ones(4)
    fixed.setflags(write=False)
    assert noted(lambda: fixed) == ["float64[4], read-only"]
    assert noted(lambda: np.broadcast_to(fixed, (3, 4))) == ["float64[3, 4], read-only"]
    assert noted(lambda: [np.array([None]), np.ones(2)]) == ["ndarray object"]
    assert noted(lambda: np.ones(3) + 1) == noted(lambda: np.empty(0)) == []


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore")  # of torch, on what it will remove
def test_tensors_whose_bytes_are_not_read_are_named() -> None:
    torch = pytest.importorskip("torch")
    assert noted(lambda: torch.eye(3).to_sparse()) == ["Tensor float32 sparse_coo"]
    assert noted(lambda: torch.quantize_per_tensor(torch.ones(4), 0.1, 0, torch.quint8)) == ["Tensor quint8 strided"]
    rows = [torch.ones(2, 3), torch.ones(4, 3)]
    assert noted(lambda: torch.nested.nested_tensor(rows, layout=torch.jagged)) == ["NestedTensor float32 jagged"]
    assert noted(lambda: torch.ones(3) + 1) == []


def inputs():
    return np.random.default_rng(0).standard_normal((2, 16, 16))


def test_a_fresh_output_each_time_is_honest() -> None:
    a, b = inputs()
    assert codes(lambda: a @ b, check=lambda c: np.allclose(c, a @ b)) == []


def test_an_output_that_is_written_over_is_honest_and_keeps_its_value() -> None:
    a, b = inputs()
    out = np.empty_like(a)
    assert codes(lambda: np.matmul(a, b, out=out), check=lambda c: np.allclose(c, a @ b)) == []
    assert np.allclose(out, a @ b)


def test_several_outputs_and_other_values_are_honest() -> None:
    a, b = inputs()
    assert codes(lambda: {"product": a @ b, "sum": [a + b], "count": 3}) == []


def test_a_call_without_arrays_is_only_checked() -> None:
    assert codes(sorted, [3, 1, 2], check=lambda result: result == [1, 2, 3]) == []


def test_in_place_on_fresh_inputs_is_honest() -> None:
    def double(x):
        x *= 2
        return x

    assert codes(double, setup=lambda: np.ones(64), check=lambda x: (x == 2).all()) == []


def test_in_place_on_its_own_data_is_left_alone() -> None:
    total = np.zeros(64)

    def count():
        total.__iadd__(1)
        return total

    assert codes(count) == []
    assert total[0] == 9  # three to learn from, five that were timed, one more behind them


@pytest.mark.parametrize("step", [lambda a: a.sort(), lambda a: a[::-1].sort(), lambda a: a.clip(-1, 1, out=a)])
def test_in_place_and_the_same_at_every_call_is_left_alone(step) -> None:
    a = inputs()[0].ravel()
    expected = a.copy()
    step(expected)

    def call():
        step(a)
        return a

    assert codes(call, check=lambda result: (result == expected).all()) == []
    assert (a == expected).all()


def test_state_beside_an_array_that_changes_never_meets_the_poison() -> None:
    weights, copies = np.ones(64), []

    def step():
        copies.append(weights.copy())
        weights.__imul__(0.5)
        return weights

    assert codes(step) == []
    assert [w[0] for w in copies] == [0.5**n for n in range(len(copies))]


def test_a_number_of_results_that_varies_is_only_checked() -> None:
    made = []

    def call():
        made.append(1)
        return [np.ones(3)] * (1 + len(made) % 2) + [np.zeros(len(made))]

    assert codes(call) == []


def test_random_results_are_honest() -> None:
    generator = np.random.default_rng(3)
    assert codes(lambda: generator.integers(0, 256, 4096, dtype=np.uint8)) == []


def test_a_setup_that_fills_a_buffer_of_the_call_is_honest() -> None:
    generator, x = np.random.default_rng(3), np.empty(64)

    def fill() -> None:
        x[:] = generator.standard_normal(64)

    assert codes(lambda: x + 1, setup=fill) == []


def test_a_result_out_of_a_cache_is_caught() -> None:
    a, b = inputs()
    assert codes(functools.cache(lambda: a @ b)) == ["output-not-written"]


def test_an_output_that_is_written_only_at_first_is_caught() -> None:
    a, b = inputs()
    out, written = np.empty_like(a), []

    def call():
        if len(written) < 4:
            np.matmul(a, b, out=out)
        written.append(1)
        return out

    assert codes(call) == ["output-not-written"]


def test_half_an_output_is_caught_and_the_share_is_said() -> None:
    a, b = inputs()
    out = a @ b

    def call():
        np.matmul(a[:8], b, out=out[:8])
        return out

    measured_call = MeasuredCall(CaseKey(nodeid="t.py::t"), call, check=lambda c: np.allclose(c, a @ b))
    timed = measured_call.with_last_result()
    subject = Subject(once=measured_call.called, last=lambda: timed.last, check=measured_call.judge, reach=(call,))
    scrutiny = OutputCheck(subject, ArrayContents())
    samples = scrutiny.scrutinised(lambda: timed() is None or SAMPLES)
    assert "50 % of the output float64[16, 16]" in samples.problems[0].what
    assert np.allclose(out, a @ b)


def test_a_changed_input_is_caught_and_named() -> None:
    a, b = inputs()
    history = np.zeros(4)

    def call():
        history[0] += 1
        return a @ b

    assert codes(call) == ["input-changed"]


def test_a_wrong_output_of_the_timed_calls_is_an_error_though_the_first_was_right() -> None:
    a, b = inputs()
    made = []

    def call():
        made.append(1)
        return a @ b if len(made) < 3 else a + b

    with pytest.raises(PerfgateError, match="check-failed"):
        codes(call, check=lambda c: np.allclose(c, a @ b))


def test_a_check_that_raises_fails_the_measurement() -> None:
    def refuse(result) -> None:
        raise AssertionError("not a number in it")

    with pytest.raises(AssertionError, match="not a number"):
        codes(lambda: np.ones(3), check=refuse)


@pytest.mark.parametrize("form", ["timed", "with_last_result"])
def test_a_call_is_bound_to_one_making_of_its_setup(form) -> None:
    numbers = iter(range(1, 9))
    measured_call = MeasuredCall(
        CaseKey(nodeid="t"), lambda x, y: x + y, (10,), setup=lambda: next(numbers), check=bool
    )
    call = getattr(measured_call, form)()
    one, two = (call.bind(measured_call.prepare()) for _ in range(2))
    measured_call.prepare()
    assert [one(), two(), call(), one()] == [11, 12, 13, 11]
    assert form == "timed" or call.last == 11


HELD, SPACE = np.ones(64), types.ModuleType("space")
SPACE.held = np.ones(64)


def spoils_a_global():
    HELD[0] += 1
    return HELD[1:] * 2


def spoils_a_part_of_a_module():
    SPACE.held[0] += 1
    return SPACE.held[1:] * 2


def closed_over():
    nested = {"a": [np.ones(64)]}

    def call():
        return [np.add(x, 1, out=x) and None for x in ()] or (nested["a"][0].__iadd__(1)[1:] * 2)

    return call


def of_an_object():
    class Layer:
        def __init__(self) -> None:
            self.weight = np.ones(64)

        def __call__(self):
            self.weight += 1
            return self.weight * 2

    return Layer()


@pytest.mark.parametrize(
    "make", [lambda: spoils_a_global, lambda: spoils_a_part_of_a_module, closed_over, of_an_object]
)
def test_a_changed_array_is_caught_wherever_the_function_holds_it(make) -> None:
    assert codes(make()) == ["input-changed"]


@pytest.mark.torch
@pytest.mark.parametrize("host", [frozenset({"cpu"}), frozenset()], ids=["on the host", "as on a device"])
def test_a_tensor_in_a_closure_is_caught(monkeypatch, host) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed", exc_type=ImportError)
    monkeypatch.setattr(arrays, "_HOST", host)
    x = torch.ones(64)
    assert codes(lambda: x.add_(1) * 2) == ["input-changed"]
    assert codes(lambda: x * 2) == []
    out = torch.empty(64)
    assert codes(functools.partial(lambda array: array, out.add_(0))) == ["output-not-written"]
    a, b = torch.randn(2, 16, 16, generator=torch.Generator().manual_seed(1))
    whole = torch.empty(16, 32)
    assert codes(lambda: torch.matmul(a, b, out=whole[:, ::2]), check=lambda c: torch.allclose(c, a @ b)) == []
    assert codes(functools.cache(lambda: a @ b)) == ["output-not-written"]
    half = a @ b

    def first_half():
        torch.matmul(a[:8], b, out=half[:8])
        return half

    assert codes(first_half) == ["output-not-written"]
    holes = torch.full((64,), float("nan"))
    assert codes(lambda: holes * 2) == []
    assert codes(lambda: holes.add_(1)[1:] * 2) == [], "not a number stays as it was, to the bit"
    total = torch.zeros(64)
    assert codes(lambda: total.add_(1)) == []
    assert codes(lambda x: x.mul_(2), setup=lambda: torch.ones(64), check=lambda x: (x == 2).all()) == []


class Arrays:
    """Contents of which each thing is an array with a level."""

    def within(self, *things):
        return tuple(thing for thing in things if isinstance(thing, tuple))

    def level(self, array):
        return array[1]

    def name(self, array):
        return array[0]


A, B = ("float16[64, 64]", "0"), ("float32[4096]", "1")


def constants(*things) -> str:
    finding = constant_inputs(Arrays(), things)
    return finding.detail if finding else ""


def test_constants_are_named_with_what_it_means() -> None:
    assert constants(A, B).startswith("float16[64, 64] is all 0, float32[4096] is all 1: a GPU draws less power")
    assert constant_inputs(Arrays(), (A, B)).title == CONSTANT
    assert "is all 0 and 2 more: " in constants(A, B, A, A, B)


@pytest.mark.parametrize(
    "things",
    [
        (),
        (A,),  # may be what the call fills
        (A, B, ("float32[64]", "")),  # data, beside a mask or an output that is still zero
        (A, ("bool[4096]", None)),
        (A, 3.5, "text"),
    ],
)
def test_nothing_is_said_where_data_may_count(things) -> None:
    assert constants(*things) == ""


@pytest.mark.parametrize(("turn", "sign"), [(0, -1), (1, 1)])
def test_poison_is_near_one_in_the_formats_of_kernels(turn: int, sign: int) -> None:
    poison = np.full(4, pattern(turn), dtype=np.uint8)
    half, single = poison[:2].view(np.float16)[0], poison.view(np.float32)[0]
    brain = (poison[:2].view(np.uint16).astype(np.uint32) << 16).view(np.float32)[0]
    for number in (half, single, brain):
        assert math.copysign(1, number) == sign
        assert 0.3 < abs(number) < 1.9


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
def test_poison_is_a_finite_number(kind) -> None:
    for turn in range(len(PATTERNS)):
        assert np.isfinite(np.full(64, pattern(turn), dtype=np.uint8).view(kind)).all()


def test_turns_alternate() -> None:
    assert [pattern(turn) for turn in range(4)] == [*PATTERNS, *PATTERNS]


@pytest.mark.parametrize(("itemsize", "chance", "more"), [(1, 0.1, 0.11), (2, 0.004, 0.005), (4, 1e-5, 2e-5)])
def test_what_chance_leaves_is_no_finding(itemsize: int, chance: float, more: float) -> None:
    assert (unexplained_share(chance, itemsize), unexplained_share(more, itemsize)) == (0.0, more)
