"""Samples beside a record: all of them, in order, in few bytes."""

from __future__ import annotations

import sys
import zlib
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import replace

from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.measurement import Measurement
from pytest_perfgate.model.samples import Samples
from pytest_perfgate.model.verdict import CaseReport, RunReport

MAGIC = b"perfgate samples 1\n"
Counts = list[list[list[int]]]
"""For each case, for each process: how many durations, cycles and clocks."""


def render_samples(report: RunReport) -> bytes:
    """Every number that a timer saw, as compressed doubles."""
    numbers = array("d")
    for samples in _processes(report):
        for column in (samples.durations, samples.cycles, samples.clock_hz):
            numbers.extend(column)
    return MAGIC + zlib.compress(_little(numbers).tobytes(), 6)


def counts(report: RunReport) -> Counts:
    return [
        [
            [len(s.durations), len(s.cycles), len(s.clock_hz)]
            for s in (case.measurement.processes if case.measurement else ())
        ]
        for case in report.cases
    ]


def without_samples(report: RunReport) -> RunReport:
    """The report with its samples taken out."""
    return _mapped(report, (replace(s, durations=(), cycles=(), clock_hz=()) for s in _processes(report)))


def with_samples(report: RunReport, data: bytes, table: Counts, place: str) -> RunReport:
    """The report with its samples put back."""
    if not data.startswith(MAGIC):
        raise PerfgateError("record-unreadable", "these are no samples of a record", place=place)
    flat = [triple for case in table for triple in case]
    most = 8 * sum(map(sum, flat)) + 1
    try:
        unpacking, numbers = zlib.decompressobj(), array("d")
        numbers.frombytes(unpacking.decompress(data[len(MAGIC) :], most))
    except (zlib.error, ValueError) as fault:
        raise PerfgateError("record-unreadable", f"the samples are damaged: {fault}", place=place) from fault
    processes = list(_processes(report))
    if not unpacking.eof or len(flat) != len(processes) or sum(map(sum, flat)) != len(numbers):
        raise PerfgateError("record-unreadable", "the samples belong to another record", place=place)
    return _mapped(report, _filled(processes, flat, _little(numbers)))


def _filled(processes: Iterable[Samples], flat: Iterable[list[int]], numbers: array[float]) -> Iterator[Samples]:
    at = 0
    for samples, triple in zip(processes, flat):
        columns = []
        for count in triple:
            columns.append(tuple(numbers[at : at + count]))
            at += count
        durations, cycles, clock_hz = columns
        yield replace(samples, durations=durations, cycles=cycles, clock_hz=clock_hz)


def _processes(report: RunReport) -> Iterator[Samples]:
    return (s for case in report.cases if case.measurement for s in case.measurement.processes)


def _mapped(report: RunReport, processes: Iterator[Samples]) -> RunReport:
    def measured(measurement: Measurement) -> Measurement:
        return replace(measurement, processes=tuple(next(processes) for _ in measurement.processes))

    def case(old: CaseReport) -> CaseReport:
        return replace(old, measurement=measured(old.measurement)) if old.measurement else old

    return replace(report, cases=tuple(case(old) for old in report.cases))


def _little(numbers: array[float]) -> array[float]:
    if sys.byteorder == "big":
        numbers = array("d", numbers)
        numbers.byteswap()
    return numbers
