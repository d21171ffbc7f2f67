"""What is read, what a reading came to, and what must be true of it."""

from __future__ import annotations

import contextlib
import shutil
import socketserver
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from pytest_perfgate.adapters.children.channel import decode_line
from pytest_perfgate.adapters.stores.baselines import Baselines
from pytest_perfgate.adapters.stores.configuration import read_config
from pytest_perfgate.adapters.stores.history import SqliteHistory
from pytest_perfgate.adapters.stores.record_files import fetched
from pytest_perfgate.adapters.stores.records import parse_record, read_record
from tests.fuzz import seeds, states
from tests.fuzz.damage import BYTES, TEXT, Way
from tests.fuzz.seen import Seen, compared, inspected, plain
from tests.fuzz.structures import CSV, JSON, MESSAGE, SQLITE


class Reader(NamedTuple):
    """One kind of file and who reads it."""

    suffix: str
    ways: Mapping[str, Way]
    seeds: Callable[[], Mapping[str, bytes]]
    read: Callable[[Path], Seen]


def _settings(path: Path) -> Seen:
    return plain(read_config(path.parent))


def _baselines(path: Path) -> Seen:
    root = path.parent / "project"
    store = Baselines(root, ("*",))
    home = store.path("NVIDIA-H200", "tests/test_k.py")
    home.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(path, home)
    return plain(sorted(store.read("NVIDIA-H200", "tests/test_k.py").items()))


def _record(path: Path) -> Seen:
    return plain(read_record(path))


def _history(path: Path) -> Seen:
    store = SqliteHistory(path)
    every = store.keys()
    return plain([[(device, key, store.read(key, device)) for device, key in every], *store.lines(detailed=9)])


def _message(path: Path) -> Seen:
    return plain(decode_line(path.read_bytes()))


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
    return plain((report.mode, report.started, len(report.cases), samples.get("counts")))


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
    "messages of children": Reader(".json", MESSAGE, seeds.messages, _message),
    "answers of a server": Reader(".http", BYTES, seeds.answers, _answer),
    "traces of a job": Reader(".json", JSON, seeds.jobs, states.of_a_job),
    "exports compared": Reader(".sqlite", SQLITE, seeds.exports, states.exports_compared),
    "kernel reports compared": Reader(".ncu-rep", BYTES, seeds.ncu_reports, states.reports_compared),
    "kernel pages compared": Reader(".csv", CSV, seeds.ncu_pages, states.pages_compared),
    "launches beside machine code": Reader(".json", JSON, seeds.launches, states.launched),
    "answers of forges": Reader(".json", JSON, seeds.forges, states.delivered),
    "merged lines, ours": Reader(".yaml", TEXT, seeds.ours, states.merged_ours),
    "merged lines, theirs": Reader(".yaml", TEXT, seeds.theirs, states.merged_theirs),
    "ceilings": Reader(".json", JSON, seeds.ceilings, states.ceilings),
    "environments": Reader(".json", JSON, seeds.environments, states.environment),
    "samples of a record": Reader(".samples", BYTES, seeds.samples, states.samples),
    "leases": Reader(".json", JSON, seeds.leases, states.lease),
    "locks of clocks": Reader(".json", JSON, seeds.locks, states.clock_lock),
    "costs": Reader(".json", JSON, seeds.costs, states.costs),
    "facts of a build": Reader(".json", JSON, seeds.builds, states.build),
}
