"""Metrics of what a device did with its time: the kinds every profile shares."""

from __future__ import annotations

from dataclasses import replace

from pytest_perfgate.model.metric import MetricKind
from pytest_perfgate.model.quantity import Better, Dimension

SCOPES = ("stage", "rank", "gpu", "stream", "step", "kernel", "op", "category", "pid")
_LAUNCHED = (*SCOPES, "launcher")
_SOURCE = "a trace or an nsys export"
_LOW, _HIGH, _EITHER = Better.LOWER, Better.HIGHER, Better.NEITHER
_TIME, _PART = Dimension.TIME, Dimension.FRACTION


def profile_kind(name: str, dimension: Dimension, better: Better, doc: str, positional: str = "stage") -> MetricKind:
    """A kind that a profile produces, with the scopes all profiles share."""
    return MetricKind(
        name=name, dimension=dimension, better=better, doc=doc, scopes=SCOPES, positional=positional, source=_SOURCE
    )


KINDS: tuple[MetricKind, ...] = (
    profile_kind("overlap", _PART, _HIGH, "communication time that computation covers, by union of what runs at once"),
    profile_kind("overlap_sum", _PART, _HIGH, "the same, summed per communication kernel"),
    profile_kind("overlap_min", _PART, _HIGH, "the least covered communication kernel"),
    profile_kind("overlap_max", _PART, _HIGH, "the best covered communication kernel"),
    profile_kind("exposed_comm", _TIME, _LOW, "communication that no computation covers, by union"),
    profile_kind("exposed_sum", _TIME, _LOW, "the same, summed per communication kernel"),
    profile_kind("exposed_share", _PART, _LOW, "exposed communication as a fraction of the window"),
    profile_kind("exposed_memcpy", _TIME, _LOW, "copies that neither computation nor communication covers", "rank"),
    profile_kind("exposed_memset", _TIME, _LOW, "memory sets that nothing else covers", "rank"),
    profile_kind("idle", _PART, _LOW, "fraction of the window in which the device does nothing", "rank"),
    profile_kind("idle_time", _TIME, _LOW, "time in the window in which the device does nothing", "rank"),
    profile_kind("busy", _PART, _HIGH, "fraction of the window in which the device does anything", "rank"),
    profile_kind("busy_time", _TIME, _EITHER, "time in the window in which the device does anything", "rank"),
    profile_kind("computation", _PART, _HIGH, "fraction of the window in which a compute kernel runs", "rank"),
    profile_kind("computation_time", _TIME, _LOW, "time in which a compute kernel runs, by union", "rank"),
    profile_kind("communication", _PART, _LOW, "fraction of the window in which communication runs", "rank"),
    profile_kind("communication_time", _TIME, _LOW, "time in which communication runs, by union", "rank"),
    profile_kind("total_time", _TIME, _LOW, "the window: from the first start to the last end", "rank"),
    replace(profile_kind("kernel_time", _TIME, _LOW, "time in kernels, summed", "kernel"), scopes=_LAUNCHED),
    replace(profile_kind("kernel_count", Dimension.COUNT, _LOW, "kernels launched", "kernel"), scopes=_LAUNCHED),
)
