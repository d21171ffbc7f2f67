"""Readers of what a project and a machine keep, of files beside others, and of what hosts answer."""

from __future__ import annotations

import contextlib
import json
import math
import os
import shutil
import socketserver
import tempfile
import threading
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

from pytest_perfgate.adapters import delivery
from pytest_perfgate.adapters.arms.store import READY, built
from pytest_perfgate.adapters.devices.clock_locks import lock_path, read_lock, take_lock
from pytest_perfgate.adapters.devices.leases import VARIABLE, DeviceLeases
from pytest_perfgate.adapters.devices.visible import DeviceCatalogue
from pytest_perfgate.adapters.readers.cubin import read_cubins, stated_launches
from pytest_perfgate.adapters.readers.ncu_report import long_head, read_ncu
from pytest_perfgate.adapters.stores.baseline_merge import merge_files
from pytest_perfgate.adapters.stores.baseline_text import parse_entries
from pytest_perfgate.adapters.stores.record_files import counts
from pytest_perfgate.adapters.stores.records import read_record, render_record
from pytest_perfgate.adapters.stores.stored_forms import NAME, CeilingStore, Environments
from pytest_perfgate.app.inspections.cubin import Cubin
from pytest_perfgate.app.inspections.ncu import Ncu
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.verdict import Posting
from pytest_perfgate.wiring.stores import read_costs
from tests.fuzz import seeds
from tests.fuzz.seen import Seen, against, inspected, looked, plain


def _kept(path: Path, data: bytes) -> Path:
    """A good file beside the damaged one."""
    good = path.with_name(f"good{path.suffix}")
    if not good.exists():
        good.write_bytes(data)
    return good


def of_a_job(path: Path) -> Seen:
    """A rank's trace with that of the other rank."""
    return inspected(path, _kept(path, seeds.other_rank()))


def exports_compared(path: Path) -> Seen:
    return against(_kept(path, _first(seeds.exports)), path)


def reports_compared(path: Path) -> Seen:
    """A report beside a good one that was read once: each reading starts a process."""
    good = _kept(path, _first(seeds.ncu_reports))
    read = lambda paths: _report(good) if list(paths) == [good] else read_ncu(paths)  # noqa: E731
    return looked(Ncu(read, partial(DeviceCatalogue, ()), long_head).compare([good], [path], {}))


@cache
def _report(path: Path) -> Any:
    return read_ncu([path])


def pages_compared(path: Path) -> Seen:
    return against(_kept(path, _first(seeds.ncu_pages)), path)


@cache
def _first(made: Any) -> bytes:
    return bytes(next(iter(made().values())))


@cache
def _machine_code() -> Any:
    return read_cubins([seeds.ROOT / "tests" / "artifacts" / "cubins" / "copy.sm_90.cubin"])


def launched(path: Path) -> Seen:
    """Machine code that was read once, with the launch that the file says."""
    launches = stated_launches(path.with_suffix(".cubin"))
    read = lambda _paths: [replace(one, launches=launches) for one in _machine_code()]  # noqa: E731
    return looked(Cubin(read, partial(DeviceCatalogue, ())).inspect([path], {}))


TOKEN = "s3cret-t0ken"
_WORDS = SimpleNamespace(
    comment=lambda report, only_changes=False: "## said",
    clean=lambda report: "",
    annotations=lambda report: (),
    conclusion=lambda report: "success",
)


def delivered(path: Path) -> Seen:
    """What is told and asked of a host that gives these answers, whatever it is asked; bytes that are no list of
    answers are each of them."""
    data = path.read_bytes()
    to, answers, event = "github", [(200, {}, data)], None
    with contextlib.suppress(ValueError, RecursionError, TypeError, KeyError, AttributeError, OverflowError):
        tree = json.loads(data)
        answers = list(map(_answer, tree["answers"])) or answers
        to = str(tree["to"])
        event = tree.get("event")
    waits: list[float] = []
    with _host(answers) as (url, requests), mock.patch.object(delivery.time, "sleep", waits.append):
        names = {"GITHUB_TOKEN": TOKEN, "GITLAB_TOKEN": TOKEN, "GITHUB_API_URL": url, "CI_API_V4_URL": url}
        if event is not None:
            place = path.with_name("event.json")
            place.write_text(json.dumps(event), encoding="utf-8")
            names |= {"GITHUB_EVENT_PATH": str(place), "GITHUB_REPOSITORY": "a/b", "GITHUB_SHA": "c0ffee"}
        name, target = {"gitlab": ("GitlabComment", "a/b!7"), "check": ("GithubCheck", "a/b@c0ffee")}.get(
            to, ("GithubComment", "a/b#7")
        )
        try:
            message = getattr(delivery, name)(_WORDS, names, Posting(key="k")).deliver(
                seeds.report(), target if event is None else ""
            )
        except PerfgateError as error:
            message = error.code.name
            if TOKEN in str(error):
                raise AssertionError("the token is in an error") from error
            if len(requests) <= _MOST_REQUESTS:
                raise
    odd = [f"{len(requests)} requests"] if len(requests) > _MOST_REQUESTS else []
    odd += [
        f"asks for {line}"
        for line in requests
        if not line.split(" ")[1].startswith(("/repos/a/b/", "/projects/a%2Fb/"))
    ]
    odd += [f"waits {sum(waits):.0f} s"] if not 0 <= sum(waits) <= 4 * 60 else []
    odd += ["tells the token"] if TOKEN in message else []
    return plain((message.replace(url, "HOST"), requests), *odd)


_MOST_REQUESTS = 130
"""Thirty pages and one change, each tried four times at the most."""


def _answer(one: Any) -> tuple[int, dict[str, str], bytes]:
    body = one.get("body")
    return (
        int(one.get("status", 200)) % 1000,
        {str(name): str(text) for name, text in one.get("headers", {}).items()},
        body.encode("utf-8", "replace") if isinstance(body, str) else json.dumps(body).encode(),
    )


@contextlib.contextmanager
def _host(answers: list[tuple[int, dict[str, str], bytes]]) -> Iterator[tuple[str, list[str]]]:
    """A server on loopback; the last answer is given again."""
    requests: list[str] = []

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            with contextlib.suppress(OSError, ValueError):
                requests.append(" ".join(self.rfile.readline().decode("latin-1").split(" ")[:2]))
                length = 0
                while line := self.rfile.readline().strip():
                    length = int(line.partition(b":")[2]) if line.lower().startswith(b"content-length:") else length
                self.rfile.read(length)
                status, headers, body = answers[min(len(requests), len(answers)) - 1]
                head = [f"HTTP/1.1 {status:03} Said", *(f"{name}: {text}" for name, text in headers.items())]
                head += [f"Content-Length: {len(body)}", "Connection: close", "", ""]
                self.wfile.write("\r\n".join(head).encode("latin-1", "replace") + body)

    with socketserver.TCPServer(("127.0.0.1", 0), Handler) as server:
        serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        serving.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}", requests
        finally:
            server.shutdown()
            serving.join()


def merged_ours(path: Path) -> Seen:
    """The merge of a damaged file of ours with a good one of theirs."""
    return _merged(path.read_bytes(), seeds.side("theirs"))


def merged_theirs(path: Path) -> Seen:
    return _merged(seeds.side("ours"), path.read_bytes())


def _merged(mine: bytes, other: bytes) -> Seen:
    """Lines of the merged file; where it is refused or in conflict, both sides must be there whole."""
    with tempfile.TemporaryDirectory() as folder:
        base, ours, theirs = (Path(folder) / name for name in ("base.yaml", "ours.yaml", "theirs.yaml"))
        for path, data in ((base, seeds.side("base")), (ours, mine), (theirs, other)):
            path.write_bytes(data)
        try:
            conflicts = merge_files(base, ours, theirs, "b.yaml")
        except PerfgateError:
            merged, before = ours.read_bytes(), seeds.side("base").splitlines()
            lines = (line for data in (mine, other) for line in data.splitlines() if line not in before)
            if lost := [line for line in lines if line not in merged]:
                raise AssertionError(f"a refused merge lost {lost[:3]}") from None
            raise
        merged = ours.read_bytes()
        if conflicts:
            return Seen({"conflicts": sorted(conflicts)}, frozenset(map(str, conflicts)))
        entries = parse_entries(merged.decode(), place="merged", device="d")
    texts = {name: repr(entry) for name, entry in entries.items()}
    good, before = (
        parse_entries(data.decode(), place="good", device="d")
        for data in (mine if mine == seeds.side("ours") else other, seeds.side("base"))
    )
    new = [name for name in good if name not in before or good[name].fields != before[name].fields]
    lost = [name for name in new if name not in entries or entries[name].fields != good[name].fields]
    return Seen({"value": sorted(texts)}, odd=tuple(f"{name} is lost" for name in lost))


def ceilings(path: Path) -> Seen:
    shutil.copy(path, path.with_name(NAME))
    stored = CeilingStore(lambda _: path.parent).read("d")
    assert stored is not None
    stated = [stored.bandwidth, stored.cache_bytes, stored.clock_hz, *(rate for _, rate in stored.compute)]
    ordered = replace(stored, compute=tuple(sorted(stored.compute)), facts=tuple(sorted(stored.facts)))
    return plain(ordered, *_impossible(number for number in stated if number is not None))


def _impossible(numbers: Iterable[Any]) -> Iterator[str]:
    """Numbers that no device, clock or machine has."""
    for number in numbers:
        if isinstance(number, bool) or not isinstance(number, (int, float)) or not 0 < number < math.inf:
            yield f"{number!r}"[:60]


def environment(path: Path) -> Seen:
    home = path.with_name("environments")
    home.mkdir(exist_ok=True)
    shutil.copy(path, home / "c0ffee.json")
    stored = Environments(path.parent).read("c0ffee")
    assert stored is not None
    return plain(replace(stored, facts=tuple(sorted(stored.facts)), packages=tuple(sorted(stored.packages))))


def samples(path: Path) -> Seen:
    """Those of a record whose numbers lie beside it."""
    report = seeds.report()
    record = path.with_name("record.json")
    record.write_bytes(render_record(report, {"file": path.name, "counts": counts(report)}))
    stored = read_record(record)
    numbers = [d for case in stored.cases if case.measurement for p in case.measurement.processes for d in p.durations]
    return plain(stored, *_impossible(numbers))


def lease(path: Path) -> Seen:
    """Whose it is; whatever the file says, a device that nobody holds can be taken."""
    shutil.copy(path, path.with_name("card.lease"))
    leases = DeviceLeases(path.parent, patience_s=0.0, sleep=lambda _: None)
    owner = leases.owner("card")
    with mock.patch.dict(os.environ, {VARIABLE: "card=7007"}):
        inherited = _held(leases)
    with mock.patch.dict(os.environ, {VARIABLE: ""}):
        _held(leases)
    odd = [f"the owner is {owner!r}"] if owner is not None and not math.inf > owner > 0 else []
    reading = plain((owner, inherited == "7007"), *odd)
    return reading if owner or inherited == "7007" else reading._replace(notices=frozenset({"nobody holds it"}))


def _held(leases: DeviceLeases) -> str:
    with leases.hold("card") as token:
        return token


_CARD = SimpleNamespace(
    uuid=lambda: "GPU-1", lock=lambda hz: None, lock_memory=lambda: 2.6e9, unlock=lambda memory=False: None
)


def clock_lock(path: Path) -> Seen:
    """What the file says; the clocks can be taken, or it is said who holds them."""
    with mock.patch.dict(os.environ, {"PERFGATE_LOCKS": str(path.parent)}):
        shutil.copy(path, lock_path("GPU-1"))
        lock = read_lock("GPU-1")
        assert lock is not None
        fields = {**{name: getattr(lock, name) for name in ("device", "pid", "sm_hz", "memory")}, "stale": lock.stale}
        with contextlib.suppress(PerfgateError):
            take_lock(_CARD, 1.5e9).restoration.run()
        if lock.stale and read_lock("GPU-1"):
            raise AssertionError("the lock of nobody stays")
    reading = plain(fields, *_impossible([] if lock.sm_hz is None else [lock.sm_hz]))
    return reading._replace(notices=frozenset({f"nobody holds it: {lock.pid}"} if lock.stale else ()))


def costs(path: Path) -> Seen:
    seconds = read_costs(path)
    odd = (f"{name[:20]}={cost}" for name, cost in seconds.items() if not 0 <= cost <= 86400)
    return plain(sorted(seconds.items()), *odd)._replace(notices=frozenset(() if seconds else {"guessed anew"}))


def build(path: Path) -> Seen:
    """What was built, as a run begins its children from it; of what does not read it is built again."""
    shutil.copy(path, path.with_name(READY))
    facts = built(path.parent)
    if facts is None:
        return Seen({"value": "built again"}, frozenset({"built again"}))
    words = [
        facts["python"],
        facts["cwd"],
        facts["root"],
        facts.get("content", ""),
        *facts["launch"],
        *facts["modules"],
    ]
    words += [text for pair in facts.get("sources", {}).items() for text in pair]
    return plain(
        json.dumps(facts, sort_keys=True), *(f"{word!r:.60} is no text" for word in words if not isinstance(word, str))
    )
