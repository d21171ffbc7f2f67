from __future__ import annotations

import pytest

from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.measurement import Identity


def test_an_error_says_what_why_and_next() -> None:
    error = PerfgateError("limit-unit", "cannot read 'mfu >= 55 ns'", mend="write mfu >= 55%", place="test_a.py:7")
    what, why, mend = str(error).splitlines()
    assert what == "test_a.py:7: cannot read 'mfu >= 55 ns'  [limit-unit]"
    assert why.startswith("  why   ")
    assert mend == "  next  write mfu >= 55%"
    assert error.exit == 2


def test_an_unknown_code_is_a_mistake_of_ours() -> None:
    with pytest.raises(KeyError):
        PerfgateError("no-such-code", "anything")


def test_identities_say_what_differs() -> None:
    here = Identity(device="host-a", clocks="off", notes=(("tile", "64"),))
    there = Identity(device="host-a", clocks="lock", notes=(("tile", "128"),))
    assert here.differences(here) == ()
    assert [field for field, _, _ in here.differences(there)] == ["clocks", "notes"]
