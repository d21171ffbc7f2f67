"""Error codes of devices, runtimes, timers and clocks."""

from __future__ import annotations

from pytest_perfgate.model.codes.family import Code

CODES: tuple[Code, ...] = ()
