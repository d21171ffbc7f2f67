"""Metrics of one kernel: counters and machine code."""

from __future__ import annotations

from pytest_perfgate.model.metric import MetricKind

KINDS: tuple[MetricKind, ...] = ()
