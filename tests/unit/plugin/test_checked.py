"""What a check may say of a result: yes, no, or nothing; whatever else it says is no yes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.plan import CaseKey
from pytest_perfgate.plugin.asked import Asked

NAN = np.array([1.0, np.nan])


def asked(check: Any) -> Asked:
    return Asked(CaseKey(nodeid="t"), lambda: NAN, check=check)


@pytest.mark.parametrize("said", [True, None, np.True_, np.array(True)])
def test_content(said) -> None:
    asked(lambda found: said).once()


@pytest.mark.parametrize(
    "said", [False, np.False_, np.array(False), 0.0, 1.0, float("nan"), "yes", np.array([True, True]), object()]
)
def test_not_content(said) -> None:
    with pytest.raises(PerfgateError, match="check= returned") as refused:
        asked(lambda found: said).once()
    form = refused.value.mend != refused.value.code.mend
    assert form is (str(said) != "False"), "a plain no is no mistake in the form"


def test_what_is_not_a_number_never_passes() -> None:
    with pytest.raises(PerfgateError, match=r"check= returned False"):
        asked(lambda found: np.abs(found - 1.0).max() <= 1e-3).once()


def test_truths_of_torch() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed", exc_type=ImportError)
    asked(lambda found: torch.tensor(True)).once()
    for said in (torch.tensor(False), torch.tensor([True]), torch.tensor(0.5)):
        with pytest.raises(PerfgateError, match="check= returned"):
            asked(lambda found, said=said: said).once()
