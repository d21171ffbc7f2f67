"""Every error code: one table for each subject, joined here; a test keeps names unique and documented."""

from __future__ import annotations

from pytest_perfgate.model.codes import device, gate, run, store
from pytest_perfgate.model.codes import gate as arms
from pytest_perfgate.model.codes import gate as verdict
from pytest_perfgate.model.codes import profiles as kernel
from pytest_perfgate.model.codes import profiles as nsys
from pytest_perfgate.model.codes import profiles as trace
from pytest_perfgate.model.codes import run as artifact
from pytest_perfgate.model.codes.family import Code, Family

__all__ = ["CODES", "Code", "Family"]

_TABLES = (
    gate.GATE_CODES,
    run.RUN_CODES,
    store.STORE_CODES,
    device.DEVICE_CODES,
    trace.TRACE_CODES,
    nsys.NSYS_CODES,
    kernel.KERNEL_CODES,
    verdict.VERDICT_CODES,
    arms.ARM_CODES,
    artifact.ARTIFACT_CODES,
)

CODES: dict[str, Code] = {code.name: code for table in _TABLES for code in table}
