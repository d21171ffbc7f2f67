"""Every error code: one table a room, joined here; a test keeps names unique and documented."""

from __future__ import annotations

from pytest_perfgate.model.codes import arms, artifact, device, gate, kernel, nsys, run, store, trace, verdict
from pytest_perfgate.model.codes.family import Code, Family

__all__ = ["CODES", "Code", "Family"]

_ROOMS = (gate, run, store, device, trace, nsys, kernel, verdict, arms, artifact)
CODES: dict[str, Code] = {code.name: code for room in _ROOMS for code in room.CODES}
