"""Error codes of Nsight Systems exports."""

from __future__ import annotations

from pytest_perfgate.model.codes.family import Code

CODES: tuple[Code, ...] = ()
