"""What a type checker must refuse; each line says with which error, and no other line has one."""

from __future__ import annotations

from pytest_perfgate import Perfgate, PerfgateError, work
from pytest_perfgate.model import Better, Device, Dimension, MetricKind, Runtime, Timer
from pytest_perfgate.testing import FakeRuntime


class Sundial:
    name = "sundial"


def refused(perfgate: Perfgate) -> None:
    perfgate(3)  # refused: arg-type
    perfgate(sum, [1], calls="two")  # refused: arg-type
    perfgate(sum, [1], work=1e9)  # refused: arg-type
    perfgate(sum, [1], reverse=True)  # refused: arg-type
    perfgate.region(limits=[3])  # refused: list-item
    perfgate.record(["1 us"])  # refused: list-item
    perfgate.record([1.0], unit=1e-6)  # refused: arg-type
    perfgate.read(3)  # refused: arg-type
    perfgate.measure(sum)  # refused: attr-defined
    work.gemm(64, 64, dtype="bf16")  # refused: call-arg
    work.attention(2, 32, 4096, 128, dtype="bf16", causally=True)  # refused: call-arg
    work.matmul(64, 64)  # refused: attr-defined
    PerfgateError("call-wrong")  # refused: call-arg
    Device(key="a", name="A")  # refused: call-arg
    MetricKind(name="a", dimension="count", better=Better.LOWER, doc="a")  # refused: arg-type
    MetricKind(name="a", dimension=Dimension.COUNT, better=Better.LOWER, doc="a").name = "b"  # refused: misc
    FakeRuntime(5_000.0)  # refused: arg-type


def ports() -> tuple[Runtime, Timer]:
    return Sundial(), Sundial()  # refused: return-value
