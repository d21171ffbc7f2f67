"""A large plain file read by two processes: the second half by a child, joined by renumbering its names."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pytest_perfgate.adapters.readers import kineto_text as text

if TYPE_CHECKING:
    from pytest_perfgate.adapters.readers.kineto_columns import Columns
    from pytest_perfgate.adapters.readers.kineto_rows import Interned

LARGE = 64 * 2**20
"""From here on starting a second interpreter pays."""
FIRST = 0.54
"""The part that this process reads itself: the child has to start first."""
_PROBE = 2**20


def middle(path: Path) -> int | None:
    """Where the first event of the second half starts; ``None`` for a file that one process reads faster."""
    if (os.cpu_count() or 1) < 2 or not path.is_file() or path.stat().st_size < LARGE:
        return None
    with path.open("rb") as raw:
        head = raw.read(64)
        if head.startswith(text.GZIP) or text.BARE.match(head.removeprefix(text.MARK)):
            return None
        start = int(path.stat().st_size * FIRST)
        raw.seek(start)
        probe = raw.read(_PROBE)
    cut = probe.find(text.CUTS[0])
    return start + probe.index(b"{", cut + 1) if cut >= 0 else None


@contextmanager
def child(path: Path, start: int) -> Iterator[subprocess.Popen[bytes]]:
    """A process that reads from ``start`` to the end and writes its columns to its standard output."""
    code = "from pytest_perfgate.adapters.readers.kineto import write_half; write_half()"
    folder = str(Path(__file__).resolve().parents[3])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([folder, *filter(None, sys.path)])}
    command = [sys.executable, "-c", code, str(path), str(start)]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, env=environment)
    try:
        yield running
    finally:
        running.kill()
        running.wait()
        if running.stdout:
            running.stdout.close()


def received(running: subprocess.Popen[bytes]) -> Any:
    """What the child sent: columns and header, or the error it met; ``None`` where it died."""
    if running.stdout is None:
        return None
    try:
        return pickle.load(running.stdout)  # noqa: S301 - written by our own child a moment ago
    except (EOFError, pickle.UnpicklingError):
        return None


def joined(first: Columns, second: Columns) -> Columns:
    """The second half's rows behind the first's, under the first's numbers."""
    for chunk in second.chunks:
        chunk["name"] = _renumbered(chunk["name"], first.names, second.names)
        chunk["argument"] = _renumbered(chunk["argument"], first.arguments, second.arguments)
        on_device = chunk["on_device"]
        host = _renumbered(np.where(on_device, -1, chunk["place"]), first.threads, second.threads)
        device = _renumbered(np.where(on_device, chunk["place"], -1), first.queues, second.queues)
        chunk["place"] = np.where(on_device, device, host).astype(np.int32)
        chunk["index"] = chunk["index"] + first.seen
    first.messages.update((row + first.rows, message) for row, message in second.messages.items())
    first.chunks += second.chunks
    first.labels.update(second.labels)
    first.flows += second.flows
    first.dropped.update(second.dropped)
    first.unwhole.update(second.unwhole)
    first.rows += second.rows
    first.seen += second.seen
    first.untimed += second.untimed
    first.device_memory |= second.device_memory
    return first


def _renumbered(column: Any, first: Interned[Any], second: Interned[Any]) -> Any:
    numbers = np.array([first[key] for key in second] or [0], np.int32)
    return np.where(column >= 0, numbers[np.maximum(column, 0)], -1).astype(np.int32)
