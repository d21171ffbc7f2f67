"""Records of runs, and the pointer to the last one."""

from __future__ import annotations

import base64
import binascii
import contextlib
import datetime as dt
import gzip
import hashlib
import os
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from urllib.parse import quote, urlsplit, urlunsplit

import msgspec

from pytest_perfgate.adapters.stores.record_files import (
    counts,
    fetched,
    packed,
    reduced_tree,
    render_samples,
    unpacked,
    with_samples,
    without_samples,
)
from pytest_perfgate.adapters.system.files import content, first_bytes, locked, uncollected, write_atomically
from pytest_perfgate.model.errors import SHOWING, PerfgateError, fault_sentence, refusal, without_secrets, written
from pytest_perfgate.model.metric import Problem
from pytest_perfgate.model.privacy import Names, shareable
from pytest_perfgate.model.values import plain
from pytest_perfgate.model.verdict import CaseReport, RunReport

SCHEMA = 1

_KEPT = 100
"""The number of records that are kept; older ones are removed when a new one is written."""


class RecordSource(NamedTuple):
    """One record, wherever it is stored."""

    name: str
    digest: str
    """The digest of its bytes, equal for the same record under another name."""
    read: Callable[[], RunReport] | None = None
    fault: PerfgateError | None = None
    """Why the record is unreadable."""


class Records:
    """The records of a project, under ``.perfgate/records``."""

    def __init__(self, root: Path) -> None:
        self.folder = root / ".perfgate" / "records"
        self.pointer = Pointer(root)
        self._names = Names(roots=frozenset({str(root), shareable(str(root), Names())}))
        """A record names the project's files relative to the root, because it is uploaded and quoted in comments."""

    def write(self, report: RunReport) -> Path:
        """Write the run's record and make it the last; a later record of the same run replaces it."""
        path = self.folder / f"{_stamp(report.started)}-{_own_name(report)}.json"
        samples = path.with_suffix(".samples")
        data, record = writable(report, lambda one: (render_samples(one), _rendered(one, {"file": samples.name})))
        with self.pointer.dropped_on_error():
            write_atomically(samples, data)
            try:
                write_atomically(path, shareable(record.decode(), self._names).encode())
            except PerfgateError:
                samples.unlink(missing_ok=True)
                raise
            self.pointer.point(path.name)
        self._remove_old(path)
        return path

    def read(self, source: str = "") -> RunReport:
        scheme = re.match(r"([A-Za-z][A-Za-z0-9+.-]+)://", source)
        if scheme and scheme[1].lower() not in {"http", "https"}:
            fix = "http:// and https:// are; or download the file and name its path"
            raise PerfgateError("record-fetch", f"{scheme[1]}:// is not read", fix=fix, place=without_secrets(source))
        if scheme:
            return _read_url(source)
        return read_record(self._named(source) if source else self.last())

    def places(self, names: Sequence[str] = ()) -> Iterator[str]:
        """Yield each file and address in these files, folders and addresses; by default the project's records."""
        for name in names or (str(self.folder),):
            if _SCHEME.match(name):
                yield name
            else:
                path = self._named(name) if Path(name) != self.folder else self.folder
                yield from map(str, _records_below(path)) if path.is_dir() else (str(path),)

    def sources(self, names: Sequence[str] = ()) -> Iterator[RecordSource]:
        return map(_source, self.places(names))

    def _named(self, source: str) -> Path:
        """Return a path; a bare name that is not a file here is looked up among the project's records."""
        path, stored = Path(source), self.folder / source
        if path.exists() or not self.folder.is_dir() or stored.parent != self.folder:
            return path
        if stored.exists():
            return stored
        fix = f"check the path; the records of this project are in {self.folder}"
        raise PerfgateError("record-missing", "there is no such record", fix=fix, place=source)

    def last(self) -> Path:
        return self.folder / self.pointer.name()

    def close(self, why: str) -> None:
        """Mark that the last run left no record, so that an older one is not taken for it."""
        self.pointer.close(why)

    def paths(self) -> tuple[Path, ...]:
        """Return every record here, oldest first."""
        return tuple(sorted(self.folder.glob("*.json"), key=lambda path: (path.stat().st_mtime_ns, path.name)))

    def _remove_old(self, new: Path) -> None:
        with contextlib.suppress(OSError):
            for path in (old for old in self.paths()[:-_KEPT] if old != new):  # a clock may have been set back
                path.with_suffix(".samples").unlink(missing_ok=True)
                path.unlink(missing_ok=True)


_SCHEME = re.compile(r"https?://", re.IGNORECASE)

_BEGINS = re.compile(rb'\s*\{\s*"perfgate"\s*:')


def _records_below(folder: Path) -> Iterator[Path]:
    """Yield the records in a folder and below it, by name; empty JSON files count, because they are lost records."""
    for path in sorted(folder.rglob("*.json")):
        begin = first_bytes(path, 64).strip() if path.is_file() else None
        if begin == b"" or (begin and _BEGINS.match(begin)):
            yield path


def _source(name: str) -> RecordSource:
    """Return a record, or why it is unreadable."""
    place = without_secrets(name) if _SCHEME.match(name) else name
    try:
        data = fetched(name) if _SCHEME.match(name) else _content(Path(name))
    except PerfgateError as fault:
        return RecordSource(place, "", fault=fault)
    return RecordSource(place, hashlib.sha256(data).hexdigest(), partial(_figures, data, name, place))


def _content(path: Path) -> bytes:
    try:
        data = content(path)
        return gzip.decompress(data) if data.startswith(_GZIP) else data
    except FileNotFoundError as fault:
        raise PerfgateError("record-missing", "there is no such record", place=str(path)) from fault
    except (OSError, EOFError, zlib.error) as fault:
        what = "it is a folder, and no record" if path.is_dir() else f"it cannot be opened: {fault}"
        raise PerfgateError("record-unreadable", what, place=str(path)) from fault


_GZIP = b"\x1f\x8b"


def _figures(data: bytes, name: str, place: str) -> RunReport:
    """Return a record's report for the history, of its samples only with the clocks."""
    with uncollected():  # saves a quarter of the time of reading a record
        report, samples = parse_record(data, place, spare=True)
        neighbour = Path(name).parent / Path(str(samples.get("file", ""))).name
        if "file" in samples and (_SCHEME.match(name) or not neighbour.is_file()):
            return report
        with _bad_samples(place):
            if not any(process[2] for case in samples.get("counts", ()) for process in case):
                return report
        return _joined(report, samples, place, lambda _: content(neighbour), clocks_only=True)


def _own_name(report: RunReport) -> str:
    """Return a name that no other run has; process numbers may repeat between nodes that share a folder."""
    run = report.shards[0].run[:8] if len(report.shards) == 1 else ""
    return run or str(os.getpid())


def _stamp(started: str) -> str:
    """Return a start in UTC, as ``20261121T045750Z``; a text that is not a time is kept as far as possible."""
    try:
        moment = dt.datetime.fromisoformat(started)
    except ValueError:
        return re.sub(r"[^0-9A-Za-z]+", "-", started).strip("-") or "run"
    zoned = moment if moment.tzinfo else moment.replace(tzinfo=dt.timezone.utc)
    return zoned.astimezone(dt.timezone.utc).strftime("%Y%m%dT%H%M%SZ")


def render_record(report: RunReport, samples: dict[str, Any] | None = None) -> bytes:
    """Return the record as JSON; without a file for the samples, they are included."""
    return writable(report, partial(_rendered, samples=samples))


def _rendered(report: RunReport, samples: dict[str, Any] | None) -> bytes:
    packed_samples = samples or {"data": base64.b64encode(render_samples(report)).decode("ascii")}
    tree, shared = packed(without_samples(report))
    body = msgspec.json.encode({"perfgate": SCHEMA, "run": tree, "shared": shared}, enc_hook=plain).decode()
    numbers = msgspec.json.encode({"samples": {**packed_samples, "counts": counts(report)}}, enc_hook=plain)
    return shareable(body, Names()).encode()[:-1] + b"," + numbers[1:] + b"\n"


def parse_record(data: bytes, place: str, *, spare: bool = False) -> tuple[RunReport, dict[str, Any]]:
    """Return (report without samples, where those are stored); ``spare`` reads only what the history stores."""
    if data[:256].lstrip()[:1] == b"<":
        fix = "the address shows a web page, perhaps to sign in: name the address of the file itself, or download it"
        raise PerfgateError("record-unreadable", "it is a web page and no record", fix=fix, place=place)
    try:
        body = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as fault:
        raise PerfgateError("record-unreadable", f"it is not JSON: {fault}", place=place) from fault
    if not isinstance(body, dict) or not isinstance(body.get("perfgate"), int):
        raise PerfgateError("record-unreadable", "it is not a record of perfgate", place=place)
    if body["perfgate"] > SCHEMA:
        what = f"its form is version {body['perfgate']}, this one reads {SCHEMA}"
        raise PerfgateError("record-version", what, place=place)
    try:
        tree, shared = body.get("run"), body.get("shared", [])
        report = unpacked(reduced_tree(tree, shared) if spare else tree, shared, RunReport)
        return report, dict(body.get("samples") or {})
    except (msgspec.ValidationError, LookupError, TypeError, ValueError, RecursionError) as fault:
        raise PerfgateError("record-unreadable", f"it does not fit the schema: {fault}", place=place) from fault


def read_record(path: Path) -> RunReport:
    """Return the record in a file, with its samples."""
    data = _content(path)
    report, samples = parse_record(data, str(path))
    return _joined(report, samples, str(path), lambda name: content(path.parent / Path(name).name))


def _read_url(url: str) -> RunReport:
    shown = without_secrets(url)
    report, samples = parse_record(fetched(url), shown)
    return _joined(report, samples, shown, lambda name: fetched(same_folder_url(url, Path(name).name)))


def same_folder_url(url: str, name: str) -> str:
    """Return the address of another file in the same folder, with the query, which may hold the permission."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(path=f"{parts.path.rpartition('/')[0]}/{quote(name)}"))


def _joined(
    report: RunReport, samples: dict[str, Any], place: str, read: Any, *, clocks_only: bool = False
) -> RunReport:
    with _bad_samples(place):
        if "data" in samples:
            data = base64.b64decode(samples["data"], validate=True)
        elif "file" in samples:
            data = read(samples["file"])
        else:
            return report
        return with_samples(report, data, samples["counts"], place, clocks_only=clocks_only)


@contextlib.contextmanager
def _bad_samples(place: str) -> Iterator[None]:
    try:
        yield
    except PerfgateError:
        raise
    except FileNotFoundError as fault:
        what = f"the file of its samples is missing: {Path(fault.filename).name}"
        fix = "copy that file with it, or write both as one: pytest --perfgate-json PATH"
        raise PerfgateError("record-unreadable", what, fix=fix, place=place) from fault
    except (OSError, binascii.Error, KeyError, TypeError, ValueError) as fault:
        raise PerfgateError("record-unreadable", f"its samples cannot be read: {fault}", place=place) from fault


T = TypeVar("T")


def writable(report: RunReport, render: Callable[[RunReport], T]) -> T:
    """Render a run; if that fails, render it with reduced versions of the cases that make it fail."""
    try:
        return render(report)
    except PerfgateError:
        raise
    except Exception:  # noqa: BLE001 - a plugin's metrics may hold anything
        return render(replace(report, cases=tuple(_renderable(report, case, render) for case in report.cases)))


def _renderable(report: RunReport, case: CaseReport, render: Callable[[RunReport], T]) -> CaseReport:
    """Return the case, or, if it cannot be written, its outcomes with the reason."""
    try:
        render(replace(report, cases=(case,)))
    except Exception as fault:  # noqa: BLE001 - as above
        why = fault_sentence(fault, "wrote this", SHOWING)
        verdicts = tuple(verdict.without_figures(why) for verdict in case.verdicts)
        problem = Problem(code=SHOWING, what=why, retry=False)
        return CaseReport(key=case.key, verdicts=verdicts, problems=(problem,), excuse=case.excuse)
    return case


_NONE = "# "
"""Prefix of the reason why a run has no record."""

_MOST = 20
"""The most lines that are kept, one for each run that was killed."""


class Pointer:
    """The file that names the last record in its first line. Each run removes its own line, whatever others wrote."""

    def __init__(self, root: Path) -> None:
        self._root, self.path = root, root / ".perfgate" / "records" / "last"

    def name(self) -> str:
        """Return the last record's file name; raise if there is none, or the last run left none."""
        name = self._first_line()
        if name.startswith(_NONE):
            fix = f"run the gate again; older records lie in {self.path.parent}, and are read by their path"
            raise PerfgateError("record-missing", name.removeprefix(_NONE), fix=fix, place=str(self.path))
        return Path(name).name

    def closed(self) -> str:
        """Return why the last run left no record; "" if it left one, or if there was no run."""
        name = self._first_line() if self.path.exists() else ""
        return name.removeprefix(_NONE) if name.startswith(_NONE) else ""

    def point(self, name: str) -> None:
        """Make this record the last one."""
        with locked(self._root, self.path):
            self._write([name])

    @contextlib.contextmanager
    def dropped_on_error(self) -> Iterator[None]:
        """Remove the pointer to an older record if that of this run cannot be written; a full disk allows that."""
        try:
            yield
        except PerfgateError:
            with contextlib.suppress(OSError):
                self.path.unlink()
            raise

    def close(self, why: str) -> None:
        """Mark that the last run left no record, so that an older one is not taken for it."""
        if self._exists():
            with locked(self._root, self.path):
                self._write([_NONE + why])

    def suspend(self, why: str) -> None:
        """Mark that a run has begun: until it writes its record, no record is the last."""
        if self._exists():
            with locked(self._root, self.path):
                self._write([_NONE + why, *self._lines()])

    def resume(self, why: str) -> None:
        """Undo the mark of a run that measured nothing, so that the earlier record is the last again."""
        if not self._exists() or _NONE + why not in self._lines():
            return
        with locked(self._root, self.path):
            lines = self._lines()
            if _NONE + why in lines[: len(lines) - 1]:
                lines.remove(_NONE + why)
                self._write(lines)

    def _exists(self) -> bool:
        with written(str(self.path)):
            return self.path.exists()

    def _lines(self) -> list[str]:
        with written(str(self.path)):
            return self.path.read_text(encoding="utf-8", errors="surrogateescape").splitlines()

    def _write(self, lines: list[str]) -> None:
        text = "".join(f"{line}\n" for line in lines[:_MOST])
        write_atomically(self.path, text.encode("utf-8", "surrogateescape"))

    def _first_line(self) -> str:
        try:
            return self.path.read_text(encoding="utf-8").partition("\n")[0].strip()
        except UnicodeDecodeError as fault:
            what = "it names no record: it is not text"
            raise PerfgateError("record-unreadable", what, place=str(self.path)) from fault
        except (FileNotFoundError, NotADirectoryError) as fault:
            fix, older = _other_root_hint(self._root), any(self.path.parent.glob("*.json"))
            lost = "no record here is the last one: a run that could not write its own leaves none"
            what = lost if older else "no run has left a record here"
            raise PerfgateError("record-missing", what, fix=fix, place=str(self.path)) from fault
        except OSError as fault:
            raise refusal(fault, str(self.path)) from fault


def _other_root_hint(root: Path) -> str:
    """Return a hint at projects below a folder that has no record itself; "" if none has one."""
    records = sorted(path for depth in ("*", "*/*", "*/*/*") for path in root.glob(f"{depth}/.perfgate/records/last"))
    names = [path.parents[2].relative_to(root).as_posix() for path in records]
    if not names:
        return ""
    several = f" (of {len(names)})" if len(names) > 1 else ""
    return f"a run left one below: --root {names[0]}{several}"
