from __future__ import annotations

import pytest

from pytest_perfgate.core.limits.merge import matching, named, spelled
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.plan import CaseKey

GEMM = CaseKey(nodeid="tests/gpu/test_gemm.py::TestSquare::test_gemm[4096-bf16]", name="fwd")
OTHER = CaseKey(nodeid="tests/cpu/test_norm.py::test_norm")


@pytest.mark.parametrize(
    "name",
    [
        *("tests/gpu/test_gemm.py", "tests", "tests/gpu", "tests/gpu/", "tests\\gpu", " tests/gpu "),
        *(GEMM.nodeid, str(GEMM), "tests/gpu/test_gemm.py::TestSquare::test_gemm", f" {GEMM.nodeid} "),
        *("TestSquare::test_gemm[4096-bf16]", "TestSquare::test_gemm"),
    ],
)
def test_what_names_a_case(name: str) -> None:
    assert named([name])(GEMM)
    assert not named([name])(OTHER) or name.strip() == "tests"
    assert named(["nobody", name])(GEMM)


@pytest.mark.parametrize("name", ["tests/g", "test_gem", "gpu", "tests/gpu/test_gemm.py::TestSquare", "tests\\gpu::x"])
def test_what_names_none(name: str) -> None:
    assert not named([name])(GEMM)
    assert not named([])(GEMM)


def test_of_several_names_one_is_enough() -> None:
    for pick in (named, spelled):
        assert pick([GEMM.nodeid, OTHER.nodeid])(GEMM)
        assert pick([GEMM.nodeid, OTHER.nodeid])(OTHER)
        assert not pick([OTHER.nodeid])(GEMM)


def test_a_backslash_in_a_parameter_is_its_own() -> None:
    odd = CaseKey(nodeid="tests/test_a.py::test_a[x\\d]")
    assert named(["tests/test_a.py::test_a[x\\d]"])(odd)
    assert not named(["tests/test_a.py::test_a[x/d]"])(odd)


@pytest.mark.parametrize(
    ("expression", "gemm", "norm"),
    [
        ("gemm", True, False),
        ("GEMM and BF16", True, False),
        ("gemm and fp16", False, False),
        ("gemm or norm", True, True),
        ("not gemm", False, True),
        ("not not gemm", True, False),
        ("(gemm)", True, False),
        ("not (gemm or nothing)", False, True),
        ("gemm and (fp16 or bf16) and square", True, False),
        ("nothing or gemm and not fp16", True, False),
        ("nothing or neither or norm", False, True),
    ],
)
def test_expressions(expression: str, gemm: bool, norm: bool) -> None:
    selects = matching(expression)
    assert (selects(GEMM), selects(OTHER)) == (gemm, norm)


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("", "it ends where a name is expected"),
        ("gemm and", "it ends where a name is expected"),
        ("not", "it ends where a name is expected"),
        ("(gemm", "a bracket is not closed"),
        ("(gemm norm", "a bracket is not closed"),
        ("gemm)", "')' is not expected"),
        ("gemm norm", "'norm' is not expected"),
        ("or gemm", "'or' is not expected"),
        ("and", "'and' is not expected"),
        ("()", "')' is not expected"),
    ],
)
def test_what_is_no_expression(expression: str, said: str) -> None:
    with pytest.raises(PerfgateError) as caught:
        matching(expression)
    assert caught.value.what == f"-k '{expression}': {said}"
