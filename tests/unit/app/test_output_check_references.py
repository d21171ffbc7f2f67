"""Tests of app/output_check: outputs against those of a reference."""

from __future__ import annotations

import numpy as np
import pytest

from pytest_perfgate.app.output_check import (
    SameOutput,
    unequal,
)
from pytest_perfgate.model.errors import PerfgateError


def _reference(rows: list[float]) -> list[float]:
    return [2 * row for row in rows]


@pytest.mark.parametrize(
    ("result", "expected", "fault"),
    [
        ([1.0, 2.0], [1.0, 2.0], ""),
        ([1.0, 2.0], (1.0, 2.0), ""),
        (3, 3.0, ""),
        (np.float32([1, 2]), np.float64([1, 2]) + 1e-7, ""),
        (np.float32([1, 2]), np.float32([1, 2.1]), "1 of 2 elements"),
        (np.zeros((2, 3)), np.zeros((3, 2)), "the shape (2, 3)"),
        (np.array([1, 2**62]), np.array([1, 2**62 + 1]), "1 of 2 elements"),
        (np.array([1, 2]), np.array([1, 3]), "most at [1]: 2, and the reference 3"),
        (np.array([np.nan, 1.0]), np.array([np.nan, 1.0]), ""),
        (np.array([np.nan, 1.0]), np.array([0.0, 1.0]), "most at [0]: nan"),
        (np.array([np.inf]), np.array([1.0]), "most at [0]: inf"),
        (np.array([1.0]), np.array([np.inf]), "most at [0]: 1, and the reference inf"),
        (np.array([-np.inf, 0.0]), np.array([np.inf, 0.0]), "1 of 2 elements"),
        (np.array([np.inf, -np.inf]), np.array([np.inf, -np.inf]), ""),
        (np.array([1e308]), np.array([-1e308]), "1 of 1 elements"),
        (np.array([1], "m8[s]"), np.array([2], "m8[s]"), "is not"),
        (np.array([1, "NaT"], "m8[s]"), np.array([1, "NaT"], "m8[s]"), ""),
        (np.array(["NaT"], "M8[s]"), np.array(["NaT"], "M8[s]"), ""),
        (np.array(["NaT"], "M8[s]"), np.array(["2026-01-01"], "M8[s]"), "is not"),
        (np.array([True]), np.array([False]), "1 of 1 elements"),
        (np.array([1 + 1j]), np.array([1 + 2j]), "1 of 1 elements"),
        ([np.zeros(2), np.ones(2)], [np.zeros(2), np.zeros(2)], "[1] 2 of 2 elements"),
        ([np.zeros(2)], [np.zeros(2), np.zeros(2)], "1 parts, and the reference 2"),
        ({"a": np.ones(1)}, {"a": np.zeros(1)}, "['a'] 1 of 1"),
        ({"a": 1}, {"b": 1}, "has the keys a"),
        ("yes", "yes", ""),
        ("yes", "no", "'yes' is not 'no'"),
        (np.array(["yes", "yes"]), np.array(["yes"]), "is not"),
        (np.array([], object), np.array(["yes"]), "is not"),
        (None, None, ""),
        (None, 1.0, "None is not 1.0"),
    ],
)
def test_outputs_are_held_against_those_of_a_reference(result: object, expected: object, fault: str) -> None:
    what = unequal(result, expected)
    assert bool(what) is bool(fault)
    assert fault in what


@pytest.mark.parametrize(
    ("kind", "apart", "agree"),
    [("float16", 9e-4, True), ("float16", 3e-3, False), ("float32", 9e-7, True), ("float32", 1e-4, False),
     ("float64", 1e-8, True), ("float64", 1e-4, False)],
)  # fmt: skip
def test_how_far_they_may_be_apart_goes_by_the_coarser_type(kind: str, apart: float, agree: bool) -> None:
    expected = np.array([1.0, 64.0])
    result = (expected * (1 + apart)).astype(kind)
    assert (unequal(result, expected) == "") is agree
    assert unequal(result, expected, rtol=0.01) == ""
    assert unequal(result, expected, atol=1.0) == ""


class Brain:
    """A tensor of a type that numpy does not have, on a device of its own."""

    dtype = "torch.bfloat16"

    def __init__(self, numbers: list[float]) -> None:
        self._numbers = numbers

    def float(self) -> Brain:
        return self

    def detach(self) -> Brain:
        return self

    def cpu(self) -> np.ndarray:
        return np.float32(self._numbers)


def test_a_tensor_of_a_device_is_fetched_and_widened() -> None:
    assert unequal(Brain([1.0, 2.0]), np.float32([1.01, 2.0])) == ""
    assert "1 of 2" in unequal(Brain([1.0, 2.0]), np.float32([1.1, 2.0]))


def test_the_reference_is_asked_once_with_the_inputs_of_the_call() -> None:
    inputs: list[list[float]] = []

    def reference(rows: list[float]) -> list[float]:
        inputs.append(rows)
        return _reference(rows)

    check = SameOutput(reference, None, None).on_inputs(lambda: ([1.0, 2.0],))
    assert check([2.0, 4.0]) is True
    with pytest.raises(PerfgateError) as caught:
        check([2.0, 4.5])
    assert (caught.value.code.name, inputs) == ("check-failed", [[1.0, 2.0]])


@pytest.mark.torch
def test_lazy_views_and_sparse_tensors_are_compared_by_their_numbers() -> None:
    torch = pytest.importorskip("torch")
    numbers = torch.arange(1, 5) * (1 + 2j)
    assert not unequal(numbers.conj(), numbers.conj().resolve_conj())
    assert not unequal(numbers.conj().imag, -numbers.imag)
    assert not unequal(torch.eye(3).to_sparse(), torch.eye(3))
    assert unequal(torch.eye(3).to_sparse(), torch.ones(3, 3))
    assert unequal(numbers.conj(), numbers)


def _of_unusual_types(torch, fill: float):
    rows = [torch.full((2, 3), fill), torch.full((4, 3), fill)]
    return {
        "complex32": torch.full((4,), fill, dtype=torch.complex32),
        "float4": torch.full((4,), int(16 * fill), dtype=torch.uint8).view(torch.float4_e2m1fn_x2),
        "quantized": torch.quantize_per_tensor(torch.full((4,), fill), 0.5, 0, torch.quint8),
        "jagged": torch.nested.nested_tensor(rows, layout=torch.jagged),
        "nested": torch.nested.nested_tensor(rows),
        "sparse": torch.diag(torch.full((3,), fill)).to_sparse_csr(),
    }


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["complex32", "float4", "quantized", "jagged", "nested", "sparse"])
def test_tensors_that_numpy_cannot_hold_are_compared(kind: str) -> None:
    torch = pytest.importorskip("torch")
    one, other = (_of_unusual_types(torch, fill)[kind] for fill in (1.0, 2.0))
    assert unequal(one, one) == ""
    assert "elements by more than" in unequal(one, other)


def test_rows_of_fields_are_compared() -> None:
    rows = np.array([(1.5, 2)], dtype=[("a", "f4"), ("b", "i2")])
    assert unequal(rows, rows.copy()) == ""
    assert "is not" in unequal(rows, np.zeros_like(rows))


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore")
def test_a_type_that_cannot_be_compared_has_a_code() -> None:
    torch = pytest.importorskip("torch")
    bits = torch.zeros(4, dtype=torch.uint8).view(torch.bits8)
    with pytest.raises(PerfgateError) as refused:
        unequal(bits, bits)
    assert refused.value.code.name == "check-failed"
