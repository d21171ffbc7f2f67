"""Metrics of a profile of many kernels: overlap, exposure, idle time."""

from __future__ import annotations

from pytest_perfgate.model.metric import MetricKind

KINDS: tuple[MetricKind, ...] = ()
