"""The samples of a record, its packed form, and fetching records over HTTP."""

from __future__ import annotations

import dataclasses
import enum
import math
import sys
import time
import zlib
from array import array
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from threading import Thread
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from pytest_perfgate.adapters.stores.baseline_line import FORMER, figure_of, figure_text
from pytest_perfgate.model.device import Device
from pytest_perfgate.model.errors import PerfgateError, without_secrets
from pytest_perfgate.model.measurement import Baseline, Environment, Identity, Measurement, Samples
from pytest_perfgate.model.metric import Absent, Figure, Metric
from pytest_perfgate.model.plan import CaseKey, Limit
from pytest_perfgate.model.values import Work
from pytest_perfgate.model.verdict import RunReport, Universe, Verdict

if TYPE_CHECKING:
    from pytest_perfgate.model.verdict import CaseReport

MAGIC = b"perfgate samples 1\n"

Counts = list[list[list[int]]]
"""For each case and process, the numbers of durations and clocks; between them is a 0, a column without content."""


def render_samples(report: RunReport) -> bytes:
    """Return every timer reading of a run, as compressed doubles."""
    numbers = array("d")
    for samples in _processes(report):
        for column in (samples.durations, samples.clock_hz):
            numbers.extend(column)
    return MAGIC + zlib.compress(_little_endian(numbers).tobytes(), 6)


def counts(report: RunReport) -> Counts:
    return [
        [[len(s.durations), 0, len(s.clock_hz)] for s in (case.measurement.processes if case.measurement else ())]
        for case in report.cases
    ]


def without_samples(report: RunReport) -> RunReport:
    return _mapped(report, (replace(s, durations=(), clock_hz=(), waits=()) for s in _processes(report)))


def with_samples(report: RunReport, data: bytes, table: Counts, place: str, *, clocks_only: bool) -> RunReport:
    """Return the report with its samples, or only with the clocks at which they ran."""
    if not data.startswith(MAGIC):
        raise PerfgateError("record-unreadable", "these are no samples of a record", place=place)
    flat = [triple for case in table for triple in case]
    most = 8 * sum(map(sum, flat)) + 1
    try:
        unpacking, numbers = zlib.decompressobj(), array("d")
        numbers.frombytes(unpacking.decompress(data[len(MAGIC) :], most))
    except (zlib.error, ValueError, OverflowError) as fault:
        raise PerfgateError("record-unreadable", f"the samples are damaged: {fault}", place=place) from fault
    processes = list(_processes(report))
    if not unpacking.eof or len(flat) != len(processes) or sum(map(sum, flat)) != len(numbers):
        raise PerfgateError("record-unreadable", "the samples belong to another record", place=place)
    filled = _with_clocks if clocks_only else _with_arrays
    return _mapped(report, filled(processes, flat, _little_endian(numbers)))


def _with_arrays(processes: Iterable[Samples], flat: Iterable[list[int]], numbers: array[float]) -> Iterator[Samples]:
    at = 0
    for samples, (durations, unused, clocks) in zip(processes, flat):
        begin, at = at, at + durations + unused + clocks
        yield replace(
            samples, durations=tuple(numbers[begin : begin + durations]), clock_hz=tuple(numbers[at - clocks : at])
        )


def _with_clocks(processes: Iterable[Samples], flat: Iterable[list[int]], numbers: array[float]) -> Iterator[Samples]:
    at = 0
    for samples, triple in zip(processes, flat):
        at += sum(triple)
        yield replace(samples, clock_hz=tuple(numbers[at - triple[2] : at])) if triple[2] else samples


def _processes(report: RunReport) -> Iterator[Samples]:
    return (s for case in report.cases if case.measurement for s in case.measurement.processes)


def _mapped(report: RunReport, processes: Iterator[Samples]) -> RunReport:
    def measured(measurement: Measurement) -> Measurement:
        return replace(measurement, processes=tuple(next(processes) for _ in measurement.processes))

    def case(old: CaseReport) -> CaseReport:
        return replace(old, measurement=measured(old.measurement)) if old.measurement else old

    return replace(report, cases=tuple(case(old) for old in report.cases))


def _little_endian(numbers: array[float]) -> array[float]:
    if sys.byteorder == "big":
        numbers = array("d", numbers)
        numbers.byteswap()
    return numbers


T = TypeVar("T")

SHARED = (Absent, Baseline, CaseKey, Device, Environment, Figure, Identity, Limit, Metric, Universe, Work)
"""Types that are stored once in the list ``shared``: ``{"shared": 3}`` refers to one, ``{"shared": [3, 4]}`` to two."""


def packed(value: Any) -> tuple[Any, list[Any]]:
    """Return (tree of plain values, list of shared values)."""
    shared: list[Any] = []
    places: dict[Any, int] = {}

    def pack(value: Any) -> Any:
        if isinstance(value, enum.Enum):
            return value.value
        if isinstance(value, float):
            return value if math.isfinite(value) else {"float": str(value)}
        if isinstance(value, (tuple, list)):
            return _row([pack(child) for child in value])
        if isinstance(value, str) and not value.isascii():
            return value.encode("utf-8", "backslashreplace").decode()  # JSON holds no half characters
        if not dataclasses.is_dataclass(value):
            return value
        if not isinstance(value, SHARED):
            return fields(value)
        if value not in places:
            body = figure_text(value) if isinstance(value, Figure) else fields(value)
            places[value] = len(shared)
            shared.append(body)
        return {"shared": places[value]}

    def fields(value: Any) -> dict[str, Any]:
        pairs = ((field, getattr(value, field.name)) for field in dataclasses.fields(value))
        return {
            field.name: pack(default) for field, default in pairs if default != field.default or field.name == "schema"
        }

    return pack(value), shared


def _row(children: list[Any]) -> Any:
    """Merge a sequence of shared values into one entry with their positions."""
    places = [child.get("shared") if isinstance(child, dict) else None for child in children]
    return {"shared": places} if len(places) > 1 and all(isinstance(at, int) for at in places) else children


_KINDS: Mapping[str, type[Any]] = {
    "absent": Absent, "device": Device, "environment": Environment, "identity": Identity, "key": CaseKey,
    "limit": Limit, "metric": Metric, "metrics": Metric, "processes": Samples, "universe": Universe,
    "verdicts": Verdict, "work": Work,
}  # fmt: skip
"""The types of shared values by the names of their fields; each value is built once, however often it occurs."""


def unpacked(tree: Any, shared: list[Any], kind: type[T]) -> T:
    """Return the value of this kind; a wrong tree raises ``msgspec.ValidationError``."""
    resolved: dict[int, Any] = {}
    values: dict[int, Any] = {}

    def resolve(node: Any, name: str = "") -> Any:
        form = type(node)
        if form is list:
            return [resolve(child, name) for child in node]
        if form is not dict:
            return node
        if len(node) == 1:
            if "shared" in node:
                at = node["shared"]
                return [converted(one, name) for one in at] if isinstance(at, list) else converted(at, name)
            if "float" in node:
                return float(node["float"])
        fields = {key: resolve(child, key) if type(child) in _NESTED else child for key, child in node.items()}
        return _of_today(fields, name)

    def converted(place: int, name: str) -> Any:
        if name not in _KINDS:
            return _of_today(body(place), name)
        if place not in values:
            values[place] = msgspec.convert(_of_today(body(place), name), type=_KINDS[name])
        return values[place]

    def body(place: int) -> Any:
        if place not in resolved:
            written = shared[place]
            resolved[place] = _figure(written) if isinstance(written, str) else resolve(written)
        return resolved[place]

    return msgspec.convert(resolve(tree), type=kind)


_FORMER: Mapping[str, Mapping[str, str]] = {
    "absent": {"mend": "fix"}, "accepts": FORMER, "baseline": FORMER, "cases": {"unheld": "incomparable"},
}  # fmt: skip
"""Names of fields in older records, with their present names."""


def _of_today(written: Any, name: str) -> Any:
    """Return the fields of a value by their present names."""
    if name not in _FORMER or not isinstance(written, dict):
        return written
    return {_FORMER[name].get(key, key): value for key, value in written.items()}


def reduced_tree(tree: Any, shared: list[Any]) -> Any:
    """Reduce a run's tree to what the history stores of each case; equal verdicts and processes are stored once."""
    if not isinstance(tree, dict) or not isinstance(tree.get("cases"), list):
        return tree
    places: dict[str, int] = {}

    def deduplicated(rows: Any, names: tuple[str, ...]) -> Any:
        if not isinstance(rows, list):
            return rows
        bodies = ({name: row[name] for name in names if name in row} for row in rows)
        return {"shared": [place(body) for body in bodies]} if rows else rows

    def place(row: dict[str, Any]) -> int:
        text = repr(row)
        if text not in places:
            places[text] = len(shared)
            shared.append(row)
        return places[text]

    def case(row: dict[str, Any]) -> dict[str, Any]:
        stored = {name: row[name] for name in _OF_A_CASE if name in row}
        stored["verdicts"] = deduplicated(row["verdicts"], _OF_A_VERDICT)
        measured = row.get("measurement")
        if measured:
            stored["measurement"] = {name: measured[name] for name in _OF_A_MEASUREMENT if name in measured}
            stored["measurement"]["processes"] = deduplicated(measured["processes"], _OF_A_PROCESS)
        return stored

    return {**tree, "cases": [case(row) for row in tree["cases"]], "notes": []}


_OF_A_CASE, _OF_A_VERDICT = ("key", "problems"), ("limit", "outcome", "effect")

_OF_A_MEASUREMENT, _OF_A_PROCESS = ("key", "device", "identity", "metrics"), ("durations", "timer", "stop", "capped")


_NESTED = frozenset({dict, list})


def _figure(text: str) -> Any:
    """Return an accepted figure in the form of its line."""
    figure = figure_of(text)
    if figure is None:
        raise ValueError(f"{text[:60]!r} is no accepted figure")
    return {field.name: getattr(figure, field.name) for field in dataclasses.fields(figure)}


_TRIES, _WAIT = 3, 0.5

_CONNECT, _ANSWER = 5.0, 30.0

_LARGEST = 512 * 2**20

_CHUNK = 2**14

_LOOK = 30.0

_SLOWEST = 4096
"""The least bytes a second; a slower server might never finish, and no timeout of a single read would notice."""


class _RequestFailed(Exception):
    """The error in words, and whether a retry may help."""

    def __init__(self, message: str, *, again: bool = False) -> None:
        super().__init__(message)
        self.again = again


def fetched(url: str, *, wait: float = _WAIT) -> bytes:
    """Return the content at an address; a busy server is asked again."""
    last = ""
    for attempt in range(_TRIES):
        if attempt:
            time.sleep(wait * 2 ** (attempt - 1))
        answer = _RequestThread(url)
        try:
            return answer.content()
        except _RequestFailed as fault:
            last = str(fault)
            if not fault.again:
                break
    raise PerfgateError("record-fetch", last, place=without_secrets(url))


class _RequestThread(Thread):
    """One request, in a thread, so that its progress is watched even while it blocks."""

    def __init__(self, url: str) -> None:
        super().__init__(daemon=True, name="perfgate-fetch")
        self._url = url
        self._data = bytearray()
        self._fault: BaseException | None = None

    def content(self) -> bytes:
        import requests  # noqa: F401 - imported before the thread: a slow import is not a slow server

        self.start()
        received = 0
        while self._waits():
            if len(self._data) - received < _SLOWEST * _LOOK:
                raise _RequestFailed(
                    f"the server sent {len(self._data) - received} bytes in {_LOOK:g} s and was not done"
                )
            received = len(self._data)
        if self._fault is not None:
            raise self._fault
        return bytes(self._data)

    def _waits(self) -> bool:
        self.join(_LOOK)
        return self.is_alive()

    def run(self) -> None:
        try:
            self._ask()
        except BaseException as fault:  # noqa: BLE001 - raised again by the waiting thread
            self._fault = fault

    def _ask(self) -> None:
        import requests
        from urllib3.exceptions import HTTPError

        try:
            with requests.get(self._url, timeout=(_CONNECT, _ANSWER), stream=True) as answer:
                if answer.status_code >= 300:
                    again = answer.status_code >= 500 or answer.status_code == 429
                    raise _RequestFailed(f"the server answers {answer.status_code} {answer.reason}", again=again)
                for chunk in answer.iter_content(_CHUNK):
                    self._data += chunk
                    if len(self._data) > _LARGEST:
                        raise _RequestFailed(f"it is larger than {_LARGEST >> 20} MiB")
        except (requests.RequestException, HTTPError, OSError, ValueError) as fault:
            raise _refusal(fault) from fault


_WORDS: tuple[tuple[frozenset[str], str, bool], ...] = (
    (frozenset({"NameResolutionError", "gaierror"}), "no host has this name", True),
    (frozenset({"ConnectionRefusedError"}), "the host refuses the connection: no server listens at this port", True),
    (frozenset({"ConnectTimeout", "ConnectTimeoutError"}), f"no connection in {_CONNECT:g} s", True),
    (frozenset({"ReadTimeout", "ReadTimeoutError", "TimeoutError"}), f"no answer in {_ANSWER:g} s", True),
    (frozenset({"ProxyError"}), "the proxy refuses the request", True),
    (frozenset({"SSLCertVerificationError"}), "the server's certificate is not trusted here", False),
    (frozenset({"SSLError"}), "the server does not speak TLS as https:// asks for", False),
    (frozenset({"RemoteDisconnected", "ConnectionResetError"}), "the server closed without an answer", True),
    (frozenset({"IncompleteRead"}), "the server closed in the middle of its answer", True),
    (frozenset({"BadStatusLine", "InvalidChunkLength"}), "what answers does not speak HTTP", False),
    (frozenset({"ContentDecodingError"}), "the answer is not compressed as it says", False),
    (frozenset({"TooManyRedirects"}), "the server redirects without end", False),
    (frozenset({"InvalidSchema"}), "the server redirects to an address that is not http:// or https://", False),
    (frozenset({"InvalidURL", "LocationParseError", "UnicodeError", "ValueError"}), "this is not an address", False),
)
"""Types of errors, outermost or in the chain of causes, with their meaning to the user."""


def _refusal(fault: BaseException) -> _RequestFailed:
    names = {type(one).__name__ for one in _chain(fault)}
    for types, words, again in _WORDS:
        if names & types:
            return _RequestFailed(words, again=again)
    return _RequestFailed(f"the connection failed: {type(fault).__name__}", again=True)


def _chain(fault: Any) -> Iterator[BaseException]:
    """Yield an error and its causes; urllib3 stores a cause as a reason or an argument."""
    visited: set[int] = set()
    while isinstance(fault, BaseException) and id(fault) not in visited:
        visited.add(id(fault))
        yield fault
        inner = (getattr(fault, "reason", None), *fault.args, fault.__cause__, fault.__context__)
        fault = next((one for one in inner if isinstance(one, BaseException)), None)
