"""What an analysis of Nsight Systems exports is made of: ranks, windows, lanes and their rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_perfgate.model.nsys import Activity, ApiTotal, ExportFacts, Preset
from pytest_perfgate.model.values import array_value, value

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

COMPUTE, COMMUNICATION = "compute", "communication"
MIXED, UNKNOWN = "mixed", "unknown"


@value
class Reading:
    """How the exports of a job are read: what the options came to."""

    preset: Preset
    anchor: str = ""
    """The user's own; one that matches nothing is an error."""
    span: tuple[int, int] | None = None
    """``--start`` and ``--end`` in nanoseconds."""
    original: bool = False
    """As PithTrain's own scripts: kernels wholly inside the window, summed per kernel."""


@value
class Rank:
    """One process on one device, by the name its job gives it."""

    name: str
    pid: int
    device: int
    file: int = 0
    """Which of the files it is from."""
    mesh: tuple[tuple[str, int, int], ...] = ()
    """(dimension, coordinate, size)."""
    settings: tuple[tuple[str, int], ...] = ()
    label: str = ""
    """The range or the thread that named it; empty when the order of devices did."""


@value
class Window:
    """The span that every figure is from, and how it was chosen."""

    start: int
    end: int
    how: str

    @property
    def length(self) -> int:
        return self.end - self.start

    def __str__(self) -> str:
        return f"{self.start}..{self.end}"


@array_value
class Lane:
    """One rank inside its window: kernels clipped to it, each with what is known about it."""

    rank: Rank
    window: Window
    kernels: Activity
    names: tuple[str, ...]
    """By the index in ``kernels.name``."""
    talks: NDArray[np.bool_]
    """Whether a kernel is communication."""
    stage: Ints
    """Index into ``stages``, or -1."""
    stages: tuple[str, ...]
    purpose: Ints
    """Index into ``purposes``, or -1."""
    purposes: tuple[str, ...]
    linked: NDArray[np.bool_]
    """Whether the launch on the host was found."""
    copies: Activity
    cut: int = 0
    """Kernel time outside the window that clipping took away, or of kernels left out."""
    straddlers: int = 0
    faults: tuple[str, ...] = ()
    """What makes its kernels none that a device ran."""
    unnamed: int = 0
    """Kernels in the window whose name the table of strings does not hold."""


@value
class StreamRow:
    """One stream that is active in the window."""

    stream: int
    kind: str
    purpose: str
    kernels: int
    busy_ns: int
    """By union."""
    barrier_ns: int
    """Communication on a stream that computes."""
    detail: str = ""
    """What the kernels said where they disagree."""


@value
class OverlapRow:
    """Communication of one (rank, stage), or of one purpose outside the stages."""

    stage: str
    outside: bool
    kernels: int
    total_ns: int
    """By union."""
    exposed_ns: int
    total_sum: int
    exposed_sum: int
    least: float
    most: float

    @property
    def overlap(self) -> float:
        return 1 - self.exposed_ns / self.total_ns if self.total_ns else float("nan")

    @property
    def overlap_sum(self) -> float:
        return 1 - self.exposed_sum / self.total_sum if self.total_sum else float("nan")


@value
class TimeRow:
    """What a rank's device did with its window; the parts sum to it."""

    computation_ns: int
    communication_ns: int
    exposed_comm_ns: int
    exposed_copies_ns: int
    busy_ns: int
    idle_ns: int
    window_ns: int


@array_value
class RankResult:
    """Everything about one rank."""

    lane: Lane
    streams: tuple[StreamRow, ...]
    overlaps: tuple[OverlapRow, ...]
    whole: OverlapRow | None
    """All communication of the window; ``None`` when there is none."""
    time: TimeRow
    compute: tuple[tuple[str, int], ...]
    """(stage, compute by union)."""
    api: tuple[ApiTotal, ...] = ()

    @property
    def rank(self) -> Rank:
        return self.lane.rank


@array_value
class Job:
    """All ranks of one job, from one file or several."""

    reading: Reading
    files: tuple[ExportFacts, ...]
    ranks: tuple[RankResult, ...]
    notes: tuple[str, ...] = ()
    """What was left out, and why."""
