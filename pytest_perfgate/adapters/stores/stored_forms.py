"""Stored forms of environments, ceilings and rows of the history."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import math
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import fields, make_dataclass
from functools import lru_cache
from itertools import chain, groupby, repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import msgspec

from pytest_perfgate.adapters.system.files import write_atomically
from pytest_perfgate.model.device import Ceilings
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.measurement import Environment, HistoryEntry
from pytest_perfgate.model.metric import Interval, Metric
from pytest_perfgate.model.values import Better, Dimension  # noqa: TC001 -- rows are decoded by their annotations

if TYPE_CHECKING:
    from pytest_perfgate.model.metric import FigureName, Labels
    from pytest_perfgate.model.plan import CaseKey

FOLDER = "environments"

_DIGITS = 10


def digest_of(environment: Environment) -> str:
    return hashlib.sha256(render_environment(environment).encode("utf-8")).hexdigest()[:_DIGITS]


def render_environment(environment: Environment) -> str:
    """Return an environment as sorted, indented JSON, for people who review it."""
    lasting = environment.lasting
    body = {
        "facts": dict(lasting.facts),
        "packages": dict(lasting.packages),
        "platform": lasting.platform,
        "python": lasting.python,
    }
    text = json.dumps(body, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
    return text.encode("utf-8", "replace").decode("utf-8")


def parse_environment(text: str, place: str) -> Environment:
    """Return the environment of a text; anything unclear is an error."""
    try:
        body = json.loads(text)
        facts, packages = _pairs(body["facts"]), _pairs(body["packages"])
        return Environment(python=str(body["python"]), platform=str(body["platform"]), packages=packages, facts=facts)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as fault:
        raise PerfgateError("baseline-unreadable", f"no environment of perfgate: {fault}", place=place) from fault


def _pairs(table: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    return tuple((str(name), str(text)) for name, text in table.items())


class Environments:
    """The environments of one device; each is read once."""

    def __init__(self, home: Path) -> None:
        self._folder = home / FOLDER
        self._read: dict[str, Environment | None] = {}

    def path(self, digest: str) -> Path:
        return self._folder / f"{digest}.json"

    def read(self, digest: str, elsewhere: Callable[[Path], str | None] | None = None) -> Environment | None:
        """Return the environment of a digest; one that is gone from the work tree is read from a revision."""
        if not digest.isalnum():
            return None
        if digest not in self._read:
            self._read[digest] = self._load(digest, elsewhere)
        return self._read[digest]

    def _load(self, digest: str, elsewhere: Callable[[Path], str | None] | None) -> Environment | None:
        path = self.path(digest)
        try:
            text: str | None = path.read_text(encoding="utf-8")
        except FileNotFoundError:
            text = elsewhere(path) if elsewhere is not None else None
        except (OSError, UnicodeDecodeError) as fault:
            raise PerfgateError("baseline-unreadable", f"it cannot be read: {fault}", place=str(path)) from fault
        return None if text is None else parse_environment(text, str(path))

    def write(self, environment: Environment) -> tuple[str, Path | None]:
        """Return the digest of an environment, and the file if it is new."""
        digest = digest_of(environment)
        path = self.path(digest)
        if path.is_file():
            return digest, None
        write_atomically(path, render_environment(environment).encode("utf-8"))
        return digest, path

    def sweep(self, used: Iterable[str]) -> None:
        """Remove environments that no line names any more."""
        in_use = set(used)
        for path in self._folder.glob("*.json") if self._folder.is_dir() else ():
            if path.stem not in in_use:
                path.unlink(missing_ok=True)


NAME = "ceilings.json"


class CeilingStore:
    """Reads and writes measured ceilings by the key of a device."""

    def __init__(self, home: Callable[[str], Path]) -> None:
        self._home = home

    def read(self, device: str) -> Ceilings | None:
        path = self._home(device) / NAME
        try:
            text = path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError) as fault:
            raise PerfgateError("ceilings-unreadable", str(fault), place=str(path)) from fault
        return parse_ceilings(text, place=str(path))

    def write(self, ceilings: Ceilings) -> Path:
        """Write ceilings atomically."""
        path = self._home(ceilings.device) / NAME
        write_atomically(path, render_ceilings(ceilings).encode("utf-8"))
        return path


def render_ceilings(ceilings: Ceilings) -> str:
    """Return ceilings rounded to three digits, since they are no more precise."""
    fields: dict[str, Any] = {
        "device": ceilings.device,
        "tflops": {dtype: float(f"{rate / 1e12:.3g}") for dtype, rate in ceilings.compute},
        "bandwidth_gbps": ceilings.bandwidth and float(f"{ceilings.bandwidth / 1e9:.3g}"),
        "cache_bytes": ceilings.cache_bytes,
        "clock_mhz": ceilings.clock_hz and round(ceilings.clock_hz / 1e6),
        "method": ceilings.method,
        "when": ceilings.when,
        "facts": dict(ceilings.facts),
    }
    return json.dumps(fields, indent=2) + "\n"


def parse_ceilings(text: str, place: str) -> Ceilings:
    """Return the ceilings of a text, which a person may have edited."""
    try:
        fields = json.loads(text)
        units = (("bandwidth_gbps", 1e9), ("cache_bytes", 1), ("clock_mhz", 1e6))
        figures = ((fields.get(name), unit) for name, unit in units)
        bandwidth, cache, clock = (None if figure is None else _rate(figure, unit) for figure, unit in figures)
        return Ceilings(
            device=str(fields["device"]),
            compute=tuple((str(dtype), _rate(rate, 1e12)) for dtype, rate in fields.get("tflops", {}).items()),
            bandwidth=bandwidth,
            cache_bytes=cache,
            clock_hz=clock,
            method=str(fields.get("method", "")),
            when=str(fields.get("when", "")),
            facts=tuple((str(name), str(fact)) for name, fact in fields.get("facts", {}).items()),
        )
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as fault:
        raise PerfgateError("ceilings-unreadable", f"{type(fault).__name__}: {fault}", place=place) from fault


def _rate(number: Any, unit: float) -> float:
    if isinstance(number, bool) or not isinstance(number, (int, float)) or not 0 < number * unit < math.inf:
        raise ValueError(f"{number!r:.40} is not a rate")
    return number * unit


def is_own(path: str, text: str) -> bool:
    """Return whether a file, by its path below the baselines, has the form of what perfgate writes there."""
    from pytest_perfgate.adapters.stores.baseline_text import parse_entries

    device, _, name = path.partition("/")
    try:
        if path.endswith(".yaml"):
            return bool(name) and parse_entries(text, place=path, device=device) is not None
        if name == NAME:
            return bool(parse_ceilings(text, place=path).device)
        around = parse_environment(text, place=path)
    except PerfgateError:
        return False
    same = render_environment(around) == text.replace("\r\n", "\n")
    return same and name == f"{FOLDER}/{digest_of(around)}.json"


T = TypeVar("T")

Run = tuple[str, str, str, str]
"""Name, moment, commit and branch of a run."""


class LazyLookup(dict[int, T]):
    """Values by number; each is read when it is first needed."""

    def __init__(self, read: Callable[[int], T]) -> None:
        super().__init__()
        self._read = read

    def __missing__(self, number: int) -> T:
        value = self[number] = self._read(number)
        return value


class Lookup(NamedTuple):
    """Runs, words and facts by the numbers that rows use."""

    runs: dict[int, Run]
    words: dict[int, str]
    facts: dict[int, tuple[tuple[str, str], ...]]
    last: dict[str, tuple[Sequence[int], Sequence[Any]]]
    """The newest column of each name with its values: neighbouring cases were measured by the same runs."""

    def values(self, name: str, column: Sequence[int]) -> Sequence[Any]:
        """Return the values of a column of numbers; of runs a column for each part."""
        before = self.last.get(name)
        if before is not None and before[0] == column:
            return before[1]
        if name == "run":
            values: Sequence[Any] = [*zip(*map(self.runs.__getitem__, column))]
        else:
            of: dict[int, Any] = self.facts if name == "facts" else self.words
            values = [*map(of.__getitem__, column)]
        self.last[name] = column, values
        return values


PART = 50_000
"""Rows that are read at a time."""


def entries_of(
    columns: Sequence[Sequence[Any]], device: str, key: CaseKey, lookup: Lookup, figures: Iterable[str] = ()
) -> list[HistoryEntry]:
    if not columns or not columns[0]:
        return []
    runs, times, processes, scatters, clocks, identities, outcomes, hosts, cards, facts = columns
    _check(times, processes, scatters, clocks)
    names, moments, commits, branches = lookup.values("run", runs)
    identity, outcome = lookup.values("identity", identities), lookup.values("outcome", outcomes)
    host, card, about = lookup.values("host", hosts), lookup.values("card", cards), lookup.values("facts", facts)
    row, put_class = _unfrozen()
    line = list(
        map(
            row, repeat(key), repeat(device), times, moments, commits, branches, processes, scatters, clocks, identity,
            names, outcome, host, card, about, chain(map(parse_metrics, figures), repeat(())),
        )
    )  # fmt: skip
    deque(map(put_class, line, repeat(HistoryEntry)), maxlen=0)
    return line


@lru_cache(maxsize=1)
def _unfrozen() -> tuple[Any, Callable[[Any, type], None]]:
    """Return a mutable class with an entry's fields, and a function that turns its objects into entries.

    Both have the same slots. Filling a frozen value field by field takes twice as long.
    """
    row = make_dataclass(HistoryEntry.__name__, [(one.name, Any) for one in fields(HistoryEntry)], slots=True, eq=False)
    return row, vars(object)["__class__"].__set__


def _check(times: Sequence[Any], processes: Sequence[Any], scatters: Sequence[Any], clocks: Sequence[Any]) -> None:
    """Raise if a cell is not a number as it was written; a run whose processes took no time is impossible."""
    known_clocks = clocks if None not in clocks else [clock for clock in clocks if clock is not None]
    for column in (times, processes, scatters, known_clocks):
        if not math.isfinite(sum(column)) and not all(map(math.isfinite, column)):
            raise ValueError("a cell where a number belongs")
    if min(times) <= 0 and any(time < 0 or time <= 0 < count for time, count in zip(times, processes)):
        raise ValueError(f"{min(times)!r:.40} where a time belongs")


def by_run(entries: Iterable[HistoryEntry]) -> Iterator[tuple[str, Iterable[HistoryEntry]]]:
    """Yield each run with its entries; a run without a name is identified by its time and its commit."""
    return groupby(sorted(entries, key=run_of), run_of)


def run_of(entry: HistoryEntry) -> str:
    return entry.run or f"{entry.when} {entry.commit}"


def words_of(entry: HistoryEntry) -> tuple[str, ...]:
    """Return the texts that repeat from run to run, in the order of their columns."""
    return entry.identity, entry.outcome, entry.host, entry.card, _facts_text(entry.facts)


@lru_cache(maxsize=64)
def _facts_text(facts: tuple[tuple[str, str], ...]) -> str:
    return json.dumps(dict(facts), ensure_ascii=False) if facts else ""


def parse_facts(text: str) -> tuple[tuple[str, str], ...]:
    facts = json.loads(text) if text else {}
    if not isinstance(facts, dict):
        raise TypeError(f"{text:.40} where facts belong")
    return _pairs(facts)


def moment_at(moment: str) -> float:
    """Return the seconds by which runs are ordered; 0 for a text that is not a time."""
    try:
        at = dt.datetime.fromisoformat(moment[:-1] + "+00:00" if moment.endswith("Z") else moment)
    except ValueError:
        return 0.0
    return (at if at.tzinfo else at.replace(tzinfo=dt.timezone.utc)).timestamp()


def metrics_text(metrics: Iterable[Metric]) -> str:
    """Return figures as JSON: name, value, dimension, scope, interval, direction; those not finite are left out."""
    rows = []
    for m in metrics:
        ends = () if m.interval is None else (m.interval.low, m.interval.high)
        if all(map(math.isfinite, (m.value, *ends))):
            own = () if m.better is None else (*(ends or (None, None)), m.better)
            rows.append((m.name, m.value, m.dimension, dict(m.labels), *(own or ends)))
    return msgspec.json.encode(rows).decode()


class _Row(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    """A stored figure."""

    name: str
    value: float
    dimension: Dimension
    scope: dict[str, str]
    low: float | None = None
    high: float | None = None
    better: Better | None = None


_rows = msgspec.json.Decoder(list[_Row]).decode


def parse_metrics(text: str) -> tuple[Metric, ...]:
    return tuple([_metric(row) for row in _parsed(text)])


def _parsed(text: str) -> Sequence[_Row]:
    try:
        return _rows(text) if text else ()
    except msgspec.DecodeError as fault:
        raise ValueError(f"no figures: {fault}") from fault


def levels_of(figures: Sequence[str], names: Collection[FigureName]) -> dict[FigureName, list[float]]:
    """Return a value of each name for each text, the last one first; NaN if the text lacks it."""
    levels = {name: [math.nan] * len(figures) for name in names}
    for at, text in enumerate(reversed(figures) if names else ()):
        for row in _parsed(text):
            line = levels.get((row.name, _labels(row.scope)))
            if line is not None:
                line[at] = row.value
    return levels


def _labels(scope: dict[str, str]) -> Labels:
    return tuple(sorted(scope.items())) if scope else ()


def _metric(row: _Row) -> Metric:
    low, high, scope = row.low, row.high, row.scope
    if (low is None) is not (high is None):
        raise ValueError("one end of an interval")
    return Metric(
        name=row.name,
        value=row.value,
        dimension=row.dimension,
        labels=_labels(scope),
        interval=None if low is None or high is None else Interval(low=low, high=high),
        better=row.better,
    )


def text_of(cell: object) -> str:
    if not isinstance(cell, str):
        raise TypeError(f"{cell!r:.40} where a text belongs")
    return cell


def number_of(cell: object) -> float:
    if not isinstance(cell, (int, float)) or not math.isfinite(cell):
        raise ValueError(f"{cell!r:.40} where a number belongs")
    return cell
