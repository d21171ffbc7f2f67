"""What wiring hands to the use cases of the gate: ports, gathered."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pytest_perfgate.model.children import Nursery
from pytest_perfgate.model.device import Device
from pytest_perfgate.model.measurement import Environment
from pytest_perfgate.model.metric import MetricKind
from pytest_perfgate.model.plan import Case, CaseKey
from pytest_perfgate.model.ports import (
    BaselineStore,
    Clocks,
    Contents,
    HistoryStore,
    Inspector,
    Lease,
    Profiler,
    RecordStore,
    Repository,
    Runtime,
    Timer,
)
from pytest_perfgate.model.values import array_value
from pytest_perfgate.model.verdict import CaseReport

DEPENDENCIES = "project: dependencies"
"""Under this name settings have what the project declares to depend on, as a list in JSON."""


def _none(call: object) -> str:
    """No library has a pool of its own."""
    del call
    return ""


@array_value
class Instruments:
    """What measures in one process."""

    runtimes: tuple[Runtime, ...]
    """The host is the last."""
    timers: tuple[Timer, ...]
    """In the order of preference."""
    threads: Callable[[], str]
    """What this process was told of thread pools."""
    affinity: Callable[[], str]
    inspectors: Sequence[Inspector] = ()
    profilers: Sequence[Profiler] = ()
    clocks: Clocks | None = None
    """What watches or locks the clocks of a device while it is measured."""
    leases: Lease | None = None
    contents: Contents | None = None
    """What reads and overwrites arrays, where a call's output is checked."""
    pools: Callable[[object], str] = _none
    """What libraries that a call uses were told of theirs, whatever else has loaded them."""


Convict = Callable[[Mapping[CaseKey, CaseReport], Mapping[str, Case]], Mapping[CaseKey, CaseReport]]
"""Tries suspects against their baseline's own commit and returns the reports that changed."""


@array_value
class GateTools:
    """What judging asks of the world."""

    kinds: Mapping[str, MetricKind]
    nursery: Nursery
    environment: Callable[[], Environment]
    roofed: Callable[[Device], Device]
    """The device with its data sheet and measured ceilings, where they are known."""
    baselines: BaselineStore | None = None
    committed: Callable[[str], bool] = bool
    """Whether a device's baselines belong to the project: then only accepting writes them."""
    records: RecordStore | None = None
    history: HistoryStore | None = None
    repository: Repository | None = None
    convict: Convict | None = None
    settings: Callable[[str], Mapping[str, str]] = lambda _revision: {}
    """Settings by their path, of a revision or, without one, of what is here."""
    here: Callable[[], Sequence[str]] = tuple
    """Patterns of the keys that this machine's devices have, asked where nothing was measured on them."""
