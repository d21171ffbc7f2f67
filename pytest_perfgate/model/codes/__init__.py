"""Every error code: one table for each subject, joined here; a test keeps names unique and documented."""

from __future__ import annotations

from pytest_perfgate.model.codes import arms, artifact, device, gate, kernel, nsys, run, store, trace, verdict
from pytest_perfgate.model.codes.family import Code, Family

__all__ = ["CODES", "Code", "Family"]

_TABLES = (
    gate.CODES,
    run.CODES,
    store.CODES,
    device.CODES,
    trace.CODES,
    nsys.CODES,
    kernel.CODES,
    verdict.CODES,
    arms.CODES,
    artifact.CODES,
)
CODES: dict[str, Code] = {code.name: code for table in _TABLES for code in table}
