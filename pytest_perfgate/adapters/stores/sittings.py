"""Rows of the history as sittings, whichever database holds them."""

from __future__ import annotations

import datetime as dt
import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import fields
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from pytest_perfgate.model.measurement import Sitting
from pytest_perfgate.model.metric import Metric
from pytest_perfgate.model.values import Dimension, Interval

if TYPE_CHECKING:
    from pytest_perfgate.model.plan import CaseKey

T = TypeVar("T")

Run = tuple[str, str, str, str]
"""Name, moment, commit and branch."""


class Looked(dict[int, T]):
    """What stands under a number, read when it is first asked for."""

    def __init__(self, read: Callable[[int], T]) -> None:
        super().__init__()
        self._read = read

    def __missing__(self, number: int) -> T:
        value = self[number] = self._read(number)
        return value


class Known(NamedTuple):
    """Runs, words and facts that rows name by their number."""

    runs: dict[int, Run]
    words: dict[int, str]
    facts: dict[int, tuple[tuple[str, str], ...]]


def sittings_of(rows: Sequence[Sequence[Any]], device: str, key: CaseKey, known: Known) -> list[Sitting]:
    """Rows of one case: run, time, processes, scatter, clock, identity, outcome, host, card, facts."""
    _check(rows)
    runs, words, facts = known
    line = []
    for run, time, processes, scatter, clock_hz, identity, outcome, host, card, around in rows:
        name, moment, commit, branch = runs[run]
        values = (
            key, device, time, moment, commit, branch, processes, scatter, clock_hz, words[identity], name,
            words[outcome], words[host], words[card], facts[around], (),
        )  # fmt: skip
        sitting = _new(Sitting)
        for put, value in zip(_PUT, values):
            put(sitting, value)
        line.append(sitting)
    return line


_new = object.__new__

_PUT = tuple(getattr(Sitting, field.name).__set__ for field in fields(Sitting))
"""Fills a sitting, in the order of its fields: what a frozen value does by itself at three times the cost."""


def _check(rows: Sequence[Sequence[Any]]) -> None:
    """Raises where a cell is not the number that was written; a run whose processes took no time never was."""
    if not rows:
        return
    _, times, processes, scatters, clocks, *_ = zip(*rows)
    for column in (times, processes, scatters, [clock for clock in clocks if clock is not None]):
        if not all(map(math.isfinite, column)):
            raise ValueError("a cell where a number belongs")
    if min(times) <= 0 and any(time < 0 or time <= 0 < count for time, count in zip(times, processes)):
        raise ValueError(f"{min(times)!r:.40} where a time belongs")


def by_run(sittings: Iterable[Sitting]) -> Iterator[tuple[str, Iterable[Sitting]]]:
    """Each run with its sittings; one without a name is named by its moment and its commit."""
    return groupby(sorted(sittings, key=run_of), run_of)


def run_of(sitting: Sitting) -> str:
    return sitting.run or f"{sitting.when} {sitting.commit}"


def words_of(sitting: Sitting) -> tuple[str, ...]:
    """What comes back from sitting to sitting, in the order of its columns."""
    facts = json.dumps(dict(sitting.facts), ensure_ascii=False) if sitting.facts else ""
    return sitting.identity, sitting.outcome, sitting.host, sitting.card, facts


def parse_facts(text: str) -> tuple[tuple[str, str], ...]:
    facts = json.loads(text) if text else {}
    if not isinstance(facts, dict):
        raise TypeError(f"{text:.40} where facts belong")
    return tuple((str(name), str(fact)) for name, fact in facts.items())


def moment_at(moment: str) -> float:
    """Seconds by which runs are put in order; 0 of what is no time."""
    try:
        at = dt.datetime.fromisoformat(moment[:-1] + "+00:00" if moment.endswith("Z") else moment)
    except ValueError:
        return 0.0
    return (at if at.tzinfo else at.replace(tzinfo=dt.timezone.utc)).timestamp()


def metrics_text(metrics: Iterable[Metric]) -> str:
    """Figures as JSON: name, value, dimension, scope, interval; no number in JSON is none here."""
    rows = [
        [m.name, m.value, m.dimension.value, dict(m.labels), *([m.low, m.high] if m.interval else [])]
        for m in metrics
        if all(map(math.isfinite, (m.value, m.low, m.high)))
    ]
    return json.dumps(rows, ensure_ascii=False, separators=(",", ":"))


def parse_metrics(text: str) -> tuple[Metric, ...]:
    return tuple(_metric(*row) for row in json.loads(text))


def _metric(name: str, number: float, dimension: str, scope: object, *interval: float) -> Metric:
    low_high = [number_of(bound) for bound in interval]
    if len(low_high) not in {0, 2}:
        raise ValueError(f"{len(low_high)} ends of an interval")
    if not isinstance(scope, dict):
        raise TypeError(f"{scope!r:.40} where a scope belongs")
    return Metric(
        name=text_of(name),
        value=number_of(number),
        dimension=Dimension(dimension),
        labels=tuple(sorted((text_of(label), text_of(text)) for label, text in scope.items())),
        interval=Interval(low=low_high[0], high=low_high[1]) if low_high else None,
    )


def text_of(cell: object) -> str:
    if not isinstance(cell, str):
        raise TypeError(f"{cell!r:.40} where a text belongs")
    return cell


def number_of(cell: object) -> float:
    if not isinstance(cell, (int, float)) or not math.isfinite(cell):
        raise ValueError(f"{cell!r:.40} where a number belongs")
    return cell
