from __future__ import annotations

import pytest

from pytest_perfgate.core.changes.tests import Reach

TEST = "tests/bench/test_k.py::TestK::test_one[2]"


@pytest.mark.parametrize(
    ("reach", "holds"),
    [
        (Reach(), True),
        (Reach(beneath=("tests/bench",)), True),
        (Reach(beneath=("tests", "kern")), True),
        (Reach(beneath=(".",)), True),
        (Reach(beneath=("tests/bench/test_k.py",)), True),
        (Reach(beneath=("tests/ben", "kern")), False),
        (Reach(beneath=("tests/bench/test_k.py::TestK",)), True),
        (Reach(beneath=("tests/bench/test_k.py::TestK::test_one",)), True),
        (Reach(beneath=(TEST,)), True),
        (Reach(beneath=("tests/bench/test_k.py::TestK::test_on",)), False),
        (Reach(without=("docs",)), True),
        (Reach(without=("tests/bench",)), False),
        (Reach(without=("*bench*",)), False),
        (Reach(without=("tests/bench/test_k.py",)), False),
        (Reach(beneath=("tests",), without=("tests/bench/slow",)), True),
    ],
)
def test_what_a_run_could_have_collected(reach: Reach, *, holds: bool) -> None:
    assert reach.holds(TEST) is holds
