"""Rooflines by hand."""

from __future__ import annotations

import pytest

from pytest_perfgate import work
from pytest_perfgate.core.analysis.roofline import band, bound, ideal_ns, place, ridge
from pytest_perfgate.model.device import Basis, Roof

ROOF = Roof(basis=Basis.DATASHEET, compute=(("bf16", 1e15),), bandwidth=4e12, cache_bytes=50e6)


def test_a_large_product_is_held_against_compute():
    at = place(work.gemm(8192, 8192, 8192, dtype="bf16"), 2e6, ROOF)
    assert at.bound == "compute"
    assert at.compute == pytest.approx(2 * 8192**3 / 2e-3 / 1e15)
    assert at.fraction == at.compute


def test_a_stream_beyond_the_cache_is_held_against_memory():
    w = work.copy(400e6)
    assert bound(w, ROOF) == "memory"
    assert ideal_ns(w, ROOF) == pytest.approx(200e3)
    assert place(w, 400e3, ROOF).memory == pytest.approx(0.5)


def test_a_working_set_inside_the_cache_never_meets_the_memory_roof():
    at = place(work.copy(1e6), 1e3, ROOF)
    assert (at.cached, at.memory, at.bound, at.ideal_ns) == (True, None, "cache", None)


def test_what_the_roof_does_not_say_stays_unknown():
    at = place(work.gemm(64, 64, 64, dtype="fp8"), 1e3, ROOF)
    assert at.compute is None
    assert at.bound == ""


def test_the_ridge_lies_where_both_bind():
    assert ridge(ROOF, "bf16") == 250
    assert ridge(ROOF, "fp8") is None


@pytest.mark.parametrize(
    ("part", "word"), [(0.9, "excellent"), (0.6, "good"), (0.5, "acceptable"), (0.1, "needs investigation")]
)
def test_bands_have_words(part, word):
    assert band(part) == word
