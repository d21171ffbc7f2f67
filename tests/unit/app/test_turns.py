"""The turns of a process as one process's samples."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_perfgate.app.lockstep import joined
from pytest_perfgate.model.measurement import Samples, Stop

TURN = Samples(durations=(1.0, 2.0), cpu=(1.0, 1.5), timer="host", stop=Stop.BUDGET, unqueued=1.0, others=0.5)


@pytest.mark.parametrize(("unqueued", "mean"), [(3.0, 2.0), (None, None)])
def test_what_was_queued_is_that_of_all_turns_or_of_none(unqueued: float | None, mean: float | None) -> None:
    whole = joined([TURN, replace(TURN, durations=(4.0,), cpu=(3.0,), unqueued=unqueued, others=1.5)])
    assert (whole.durations, whole.cpu, whole.turns) == ((1.0, 2.0, 4.0), (1.0, 1.5, 3.0), (2, 1))
    assert (whole.unqueued, whole.others) == (mean, 1.0)
