"""What is read, what a reading came to, and what must be true of it."""

from __future__ import annotations

import contextlib
import math
import re
import shutil
import socketserver
import threading
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from pytest_perfgate.adapters.children.channel import decode_line
from pytest_perfgate.adapters.stores.baselines import Baselines
from pytest_perfgate.adapters.stores.configuration import read_config
from pytest_perfgate.adapters.stores.history import SqliteHistory
from pytest_perfgate.adapters.stores.record_files import fetched
from pytest_perfgate.adapters.stores.records import parse_record, read_record
from pytest_perfgate.app.inspect import choose, inspect
from pytest_perfgate.core.judge.against_limit import above_peak
from pytest_perfgate.core.render.text import render_text
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.metric import Analysis, Bullets, Document, Metric, Paragraph, Section, Table
from pytest_perfgate.model.values import Dimension
from pytest_perfgate.wiring import built_ins
from tests.fuzz import seeds
from tests.fuzz.damage import BYTES, TEXT, Way
from tests.fuzz.structures import CSV, JSON, SQLITE


class Seen(NamedTuple):
    """What a file came to."""

    figures: Mapping[str, Any]
    notices: frozenset[str] = frozenset()
    """Whatever tells a person that something is wrong or missing."""
    odd: tuple[str, ...] = ()
    """Figures outside of what they can be, where limits are held against them."""


class Reader(NamedTuple):
    """One kind of file and who reads it."""

    suffix: str
    ways: Mapping[str, Way]
    seeds: Callable[[], Mapping[str, bytes]]
    read: Callable[[Path], Seen]


@lru_cache(maxsize=1)
def _inspectors() -> Any:
    return built_ins.BuiltIns().pytest_perfgate_inspectors()


def _peek(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(4096)


def inspected(path: Path) -> Seen:
    """The metrics of a file and what is said beside them."""
    return _looked(inspect([path], {}, inspectors=_inspectors(), peek=_peek))


def compared(path: Path) -> Seen:
    """The same of a file beside itself."""
    inspector = choose([path], {}, inspectors=_inspectors(), peek=_peek)
    beside = path.with_name(f"beside{path.suffix}")
    shutil.copy(path, beside)
    return _looked(inspector.compare([path], [beside], {}))


def _looked(found: Analysis) -> Seen:
    """Every view must be written or refused."""
    documents = []
    for build in found.views.values():
        with contextlib.suppress(PerfgateError):
            documents.append(build())
            render_text(documents[-1], 100, 0)
    notices = {f"{one.code}: {_wordy(one.what)}" for one in found.problems}
    notices |= {f"no {one.name}: {_wordy(one.why)}" for one in found.metrics.absent}
    notices |= {
        _wordy(f"{one.title} {one.detail}") for one in found.findings if _TROUBLE.search(one.title + one.detail)
    }
    notices |= {_wordy(text) for one in documents[:1] for text in _texts(one.blocks) if _TROUBLE.search(text)}
    figures: dict[str, list[float]] = {}
    for metric in found.metrics.metrics:
        figures.setdefault(f"{metric.name}{dict(metric.labels)}", []).append(metric.value)
    odd = tuple(f"{m.name}={m.value!r}" for m in found.metrics.metrics if not found.problems and not possible(m))
    return Seen({name: sorted(values) for name, values in figures.items()}, frozenset(notices), odd)


_TROUBLE = re.compile(
    r"left out|cut|invalid|not |no |never|none|missing|damage|skip|lost|drop|with(?:out| no)|unknown", re.IGNORECASE
)
_ANY = frozenset({"slowdown", "change", "ncu", "rocprof"})
"""Metrics that may be below zero: changes, and counters that are handed through as the profiler named them."""


def possible(metric: Metric) -> bool:
    """Whether a figure is one that can be; where a trace says more than a peak, the gate calls that INVALID."""
    if metric.name in _ANY or above_peak(metric):
        return math.isfinite(metric.value)
    most = 1 + 1e-9 if metric.dimension is Dimension.FRACTION else math.inf
    return math.isfinite(metric.value) and 0 <= metric.value <= most


def _wordy(text: str) -> str:
    """Without its numbers: other numbers are no other notice."""
    return re.sub(r"[\d.,]+", "#", text)


def _texts(blocks: Iterable[Any]) -> Iterable[str]:
    for block in blocks:
        if isinstance(block, Paragraph):
            yield block.text
        elif isinstance(block, Bullets):
            yield from block.items
        elif isinstance(block, Table):
            yield block.note
        elif isinstance(block, (Section, Document)):
            yield from _texts(block.blocks)


def _plain(value: Any) -> Seen:
    return Seen({"value": repr(value)})


def _settings(path: Path) -> Seen:
    return _plain(read_config(path.parent))


def _baselines(path: Path) -> Seen:
    root = path.parent / "project"
    store = Baselines(root, ("*",))
    home = store.path("NVIDIA-H200", "tests/test_k.py")
    home.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(path, home)
    return _plain(sorted(store.read("NVIDIA-H200", "tests/test_k.py").items()))


def _record(path: Path) -> Seen:
    return _plain(read_record(path))


def _history(path: Path) -> Seen:
    store = SqliteHistory(path)
    every = store.keys()
    return _plain([[(device, key, store.read(key, device)) for device, key in every], *store.lines(detailed=9)])


def _message(path: Path) -> Seen:
    return _plain(decode_line(path.read_bytes()))


def _answer(path: Path) -> Seen:
    """A record from a server that sends these bytes, whatever it is asked."""
    data = path.read_bytes()

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with contextlib.suppress(OSError):
                self.request.recv(65536)
                self.request.sendall(data)

    with socketserver.TCPServer(("127.0.0.1", 0), Handler) as server:
        serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        serving.start()
        try:
            url = f"http://127.0.0.1:{server.server_address[1]}/record.json"
            report, samples = parse_record(fetched(url, wait=0), url)
        finally:
            server.shutdown()
    return _plain((report.mode, report.started, len(report.cases), samples.get("counts")))


_KEYED = {name: way for name, way in SQLITE.items() if name != "row twice"}
"""Each of its rows is the only one of its key."""

READERS: Mapping[str, Reader] = {
    "PyTorch traces": Reader(".json", JSON, seeds.traces, inspected),
    "Nsight Systems exports": Reader(".sqlite", SQLITE, seeds.exports, inspected),
    "Nsight Compute reports": Reader(".ncu-rep", BYTES, seeds.ncu_reports, inspected),
    "Nsight Compute pages": Reader(".csv", CSV, seeds.ncu_pages, inspected),
    "Nsight Compute source pages": Reader(".csv", TEXT, seeds.source_pages, inspected),
    "machine code": Reader(".cubin", BYTES, seeds.cubins, inspected),
    "rocprof tables": Reader(".csv", CSV, seeds.rocprof, inspected),
    "files compared": Reader(".txt", TEXT, seeds.compared, compared),
    "benchmark results": Reader(".json", JSON, seeds.benchmarks, inspected),
    "records": Reader(".json", JSON, seeds.records, _record),
    "records, looked into": Reader(".json", JSON, seeds.records, inspected),
    "baselines": Reader(".yaml", TEXT, seeds.baselines, _baselines),
    "settings": Reader(".toml", TEXT, seeds.settings, _settings),
    "histories": Reader(".db", _KEYED, seeds.histories, _history),
    "messages of children": Reader(".json", JSON, seeds.messages, _message),
    "answers of a server": Reader(".http", BYTES, seeds.answers, _answer),
}
