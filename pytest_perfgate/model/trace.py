"""A profile of many kernels as columns: one row an event, times relative to the earliest."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import TYPE_CHECKING, Union

from pytest_perfgate.model.values import array_value, value

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Small = NDArray[np.int32]
    Bytes = NDArray[np.uint8]


class Category(enum.IntEnum):
    """What a row is; the value is what the column holds."""

    OTHER = 0
    OPERATOR = 1
    ANNOTATION = 2
    PYTHON = 3
    RUNTIME = 4
    KERNEL = 5
    MEMCPY = 6
    MEMSET = 7
    GPU_ANNOTATION = 8


GPU = (Category.KERNEL, Category.MEMCPY, Category.MEMSET)
HOST = (Category.OPERATOR, Category.ANNOTATION, Category.PYTHON, Category.RUNTIME)


@value
class Thread:
    """Where host rows ran."""

    process: Union[int, str]
    thread: Union[int, str]
    rank: int | None = None
    process_name: str = ""
    process_label: str = ""
    name: str = ""


@value
class Queue:
    """Where GPU rows ran."""

    device: int
    stream: Union[int, str]
    rank: int | None = None


@value
class Message:
    """What the profiler recorded of a collective."""

    collective: str
    group: str = ""
    ranks: int | None = None
    sent: float | None = None
    """Bytes of the input of this rank."""
    received: float | None = None
    dtype: str = ""


@array_value
class Trace:
    """One file of one or more ranks. All columns have one length; -1 stands for not recorded."""

    path: str
    start: Ints
    end: Ints
    category: Bytes
    name: Small
    place: Small
    """Row of ``threads`` for host rows, of ``queues`` for GPU rows."""
    correlation: Ints
    external: Ints
    sequence: Ints
    forward_thread: Ints
    size: Ints
    """Bytes of a copy or fill."""
    argument: Small
    """Row of ``arguments``."""
    index: Ints
    """The event's number in the file, counting every event of any kind."""
    names: tuple[str, ...]
    threads: tuple[Thread, ...]
    queues: tuple[Queue, ...]
    arguments: tuple[tuple[bytes, bytes, bytes, bytes], ...]
    """Dims, types, strides and concrete inputs as JSON, decoded by whoever needs them."""
    messages: Mapping[int, Message]
    """By row."""
    rank: int | None
    world: int | None
    devices: tuple[str, ...]
    base_ns: int
    """What the relative zero is on the file's clock."""
    shapes: bool
    dropped: Mapping[str, int]
    """Events left out, by reason."""
    stamps: tuple[object, object] | None = None
    """Start and duration in the file's own microseconds, as floats: what compatibility needs."""
    flows: frozenset[int] = frozenset()
    """Correlations whose launch starts an arrow to the GPU."""
    events: int = 0
    """Every event of the file, of any kind."""

    guessed: tuple[int, ...] = ()
    """GPU rows whose duration was negative or overflowed: they end where the next one starts."""
    untimed: int = 0
    """GPU events left out since nothing tells how long they took."""
    device_memory: bool = False
    """Whether memory of a device was taken or given back: then there is one, whether or not its work was recorded."""
    foreign: tuple[tuple[str, int], ...] = ()
    """Categories that nothing here knows, and how many events each has: they may be work of a device."""
    backend: str = ""
    """What carries the collectives of the job, as the header says: ``nccl``, ``gloo``."""

    def __len__(self) -> int:
        return len(self.start)
