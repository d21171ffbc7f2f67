"""Error codes of cubins, Nsight Compute and AMD counters."""

from __future__ import annotations

from pytest_perfgate.model.codes.family import Code

CODES: tuple[Code, ...] = ()
