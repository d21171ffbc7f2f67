"""Error codes of arms, rounds, calibration and history."""

from __future__ import annotations

from pytest_perfgate.model.codes.family import Code

CODES: tuple[Code, ...] = ()
