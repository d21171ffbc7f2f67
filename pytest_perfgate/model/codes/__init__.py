"""Every error code: one table for each subject, joined here; a test keeps names unique and documented."""

from __future__ import annotations

from pytest_perfgate.model.codes import device, gate, profiles, run, store
from pytest_perfgate.model.codes.family import Code, Family

__all__ = ["CODES", "Code", "Family"]

_TABLES = (
    gate.GATE_CODES,
    run.RUN_CODES,
    store.STORE_CODES,
    device.DEVICE_CODES,
    profiles.TRACE_CODES,
    profiles.NSYS_CODES,
    profiles.KERNEL_CODES,
    gate.VERDICT_CODES,
    gate.ARM_CODES,
    run.ARTIFACT_CODES,
)

CODES: dict[str, Code] = {code.name: code for table in _TABLES for code in table}
