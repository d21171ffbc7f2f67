"""Accepted lines of the merge base and the work tree, and the history."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, cached_property, lru_cache
from itertools import product
from math import inf
from typing import TYPE_CHECKING, Any

from pytest_perfgate.core.changes.tests import is_new, same_bodies, same_function
from pytest_perfgate.core.judge.against_figure import selected_figures
from pytest_perfgate.core.judge.context import clock_of, how_measured, limited
from pytest_perfgate.model.codes import Family
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.measurement import Baseline, Environment, HistoryEntry, Measurement, commit_name
from pytest_perfgate.model.plan import Base, CaseKey, Compare, Mode
from pytest_perfgate.model.project import REQUEST
from pytest_perfgate.model.values import grouped, value
from pytest_perfgate.model.verdict import CaseReport, RunReport, Shard

if TYPE_CHECKING:
    from pytest_perfgate.model.metric import Metric
    from pytest_perfgate.model.ports import GateTools, HistoryStore

Lines = Mapping[str, Baseline]
Facts = tuple[tuple[str, str], ...]

_LEANED_ON = ("time", "figures", "scatter", "runs", "detects", "commit", "expires", "anchor", "identity", "environment")
"""The fields of a line that a verdict depends on."""


class Accepted:
    """The accepted lines of the merge base and the work tree; each file is read once."""

    def __init__(self, tools: GateTools) -> None:
        self._tools = tools
        self._read: dict[tuple[str, str, str], Lines] = {}
        self._missing: dict[str, tuple[Baseline, ...]] = {}
        self._missing_tests: dict[tuple[str, str], list[Baseline]] = {}
        self._versions = cache(self._both_versions)
        self.moved: dict[str, str] = {}
        """Cases of the merge base whose lines judge under another path, each with its new name."""

    @cached_property
    def base(self) -> Base:
        """The revision whose accepted lines judge; git is asked once."""
        return self._tools.repository.base() if self._tools.repository is not None else Base()

    def read_files(self, paths: Iterable[str]) -> None:
        """Read every baseline file that may judge these test files; raise if one is unreadable."""
        devices = self._tools.baselines.devices() if self._tools.baselines is not None else ()
        for device, path in product(devices, dict.fromkeys(paths)):
            here = self._lines(device, path)
            if not all(line.local for line in here.values()) and self.base.commit:
                self._lines(device, path, self.base.commit)

    def timers(self) -> dict[str, str]:
        """Return the timer that each call was accepted with, by its key, if all devices agree on it."""
        timers_of: dict[str, set[str]] = {}
        for lines in self._read.values():
            for key, line in lines.items():
                if line.identity is not None:
                    timers_of.setdefault(key, set()).add(line.identity.timer)
        return {key: timers.pop() for key, timers in timers_of.items() if len(timers) == 1}

    def judging(self, measurement: Measurement) -> tuple[Baseline | None, Baseline | None]:
        """Return the judging line, of the merge base, and the work tree's line if this change edits it."""
        key, device = str(measurement.key), measurement.device.key
        then, now = (lines.get(key) for lines in self.then_and_now(device, measurement.key.path))
        if now is None or now.local:  # removing a line, or its device from the list, does not end the judging
            return then or now, None
        if (then := then or self._line_before_move(measurement.key, device)) is None:
            earlier, text = self._versions(measurement.key.path)
            new = not self.base.commit or is_new(earlier, text or "", measurement.key.nodeid)
            why = now.why if new or key in self._lines(device, measurement.key.path, "HEAD") else ""  # in no diff
            return (now if new else replace(now, runs=0, scatter=0.0, why=why)), None  # so base and head decide
        untouched = all(getattr(then, name) == getattr(now, name) for name in _LEANED_ON)
        return replace(then, place=now.place), None if untouched else now

    def is_new_line(self, measurement: Measurement) -> bool:
        """Return whether the change itself added the judging line, so that the merge base has none."""
        key, lines = str(measurement.key), self.then_and_now(measurement.device.key, measurement.key.path)[0]
        return bool(self.base.commit) and key not in lines and key not in self.moved.values()

    def missing(self, device: str) -> tuple[Baseline, ...]:
        """Return lines of the merge base that the work tree lacks; none if the earlier file is unreadable."""
        if device not in self._missing:
            self._missing[device] = tuple(self._read_missing(device))
            self._missing_tests |= grouped(self._missing[device], lambda line: (device, line.key.test))
        return self._missing[device]

    def removed_lines(
        self, device: str, current: Iterable[Baseline], looked: Callable[[str], bool]
    ) -> tuple[Baseline, ...]:
        """Return the gone lines that no line of the work tree replaces under another path where this run looked."""
        for line in current if self.missing(device) else ():
            if str(line.key) not in self.then_and_now(device, line.key.path)[0]:
                self._line_before_move(line.key, device)
        new = {str(line.key): self.moved.get(str(line.key), "") for line in self.missing(device)}
        return tuple(line for line in self.missing(device) if not new[str(line.key)] or not looked(new[str(line.key)]))

    def _read_missing(self, device: str) -> Iterator[Baseline]:
        base, store = self.base.commit, self._tools.baselines
        for path in store.paths(device, base) if store is not None and base else ():
            with contextlib.suppress(PerfgateError):
                then, now = self.then_and_now(device, path)
                yield from (line for key, line in then.items() if key not in now)

    def _line_before_move(self, key: CaseKey, device: str) -> Baseline | None:
        """Return the line of a test that this change moved to another file unchanged; it judges there as well."""
        lines = self._missing_tests.get((device, key.test), ()) if self.missing(device) else ()
        if len(same := [line for line in lines if line.key.path != key.path]) != 1:
            return None
        then, now = self._versions(same[0].key.path)[0], self._versions(key.path)[1]
        if not then or not now or not same_function(then, now, key.function):
            return None
        self.moved[str(same[0].key)] = str(key)
        return replace(same[0], key=key)

    def then_and_now(self, device: str, path: str) -> tuple[Lines, Lines]:
        """Return the lines of a file at the merge base and in the work tree; empty if the file is missing."""
        return (self._lines(device, path, self.base.commit) if self.base.commit else {}), self._lines(device, path)

    def renamed_in(self, path: str) -> Mapping[str, str]:
        """Return the functions of a test file that are gone since the merge base, each with its new name."""
        then, now = self._versions(path)
        return same_bodies(then, now) if then and now else {}

    def carried_on(self, removed: CaseKey, new: CaseKey) -> bool:
        """Return whether a new case of the same file runs the code of a gone one under another name or parameter."""
        was, name = removed.function, new.function
        then, now = self._versions(removed.path)
        if was == name:
            return bool(then and now) and same_function(then or "", now or "", name)
        return self.renamed_in(removed.path).get(was) == name

    def is_unexplained(self, key: CaseKey) -> bool:
        """Return whether no line with a new reason stands for a test that was not measured (``skip``, ``xfail``)."""
        store = self._tools.baselines
        pairs = []
        for device in store.devices() if store is not None else ():
            then, now = self.then_and_now(device, key.path)
            mine = [line for line in then.values() if line.key.nodeid == key.nodeid and not line.local]
            pairs += [(now.get(str(line.key), line), line) for line in mine]
        return not pairs or any(not edited.explains(line) for edited, line in pairs)

    def _both_versions(self, path: str) -> tuple[str | None, str | None]:
        """Return a test file at the merge base and in this commit; None where it does not exist."""
        repository, base = self._tools.repository, self.base.commit
        if repository is None or not base:
            return None, None
        return repository.show(base, path), repository.show("HEAD", path)

    def _lines(self, device: str, path: str, revision: str = "") -> Lines:
        if self._tools.baselines is None:
            return {}
        at = (device, path, revision)
        if at not in self._read:
            self._read[at] = self._tools.baselines.read(*at)
        return self._read[at]


_LAST_ENTRIES, _READ = 20, 100


class PastRuns:
    """The newest runs of the history; if the store fails during the run, the rest is judged without it."""

    def __init__(self, store: HistoryStore | None) -> None:
        self._store = store
        self.fault: PerfgateError | None = None
        """The error after which nothing more is read."""

    def probe(self) -> None:
        """Raise if the store is unreadable, before anything is measured; a server may become reachable again."""
        try:
            if self._store is not None:
                self._store.read(CaseKey(nodeid=""), "", 1)
        except PerfgateError as fault:
            if fault.code.name != "history-unreachable":  # without a server that does not answer, the run is judged
                raise
            self.fault = fault

    def newest(self, measurement: Measurement) -> Sequence[HistoryEntry]:
        """Return the runs of a case that were measured in the same way, oldest first."""
        if self._store is None or self.fault is not None:
            return ()
        try:
            return comparable_entries(measurement, self._store)
        except PerfgateError as fault:
            self.fault = fault
            return ()


def comparable_entries(measurement: Measurement, store: HistoryStore) -> Sequence[HistoryEntry]:
    """Return the newest runs of a case with the same threads, timer and cache; others have another scatter."""
    how = how_measured(measurement.identity, at_limit=limited(measurement.processes))
    rows = store.read(measurement.key, measurement.device.key, _READ)
    return [entry for entry in rows if entry.identity in {"", how}][-_LAST_ENTRIES:]


def entries(report: RunReport) -> Iterator[HistoryEntry]:
    """Yield the history entries of a run: each case with a trustworthy time, and all its metrics."""
    shards = {(name, shard.device): shard for shard in report.shards for name in shard.names}
    alone = Shard(run=run_name(report), environment=report.environment, started=report.started)
    others = report.shards[0] if len(report.shards) == 1 else alone
    measured = ((case, case.measurement) for case in report.cases if case.measurement is not None)
    for case, measurement in measured:
        times = () if case.problems or not measurement.processes else measurement.metrics.find("time")
        time = times[0].value if times and 0 < times[0].value < inf else 0.0
        if time or (gated(case) and not measurement.processes):
            shard = shards.get((case.key.nodeid, measurement.device.key), others)
            environment = shard.environment if shard.environment.commit else report.environment
            host, facts = _surroundings(shard.host, environment, measurement.device.facts)
            yield HistoryEntry(
                key=case.key,
                device=measurement.device.key,
                time=time,
                when=shard.started or report.started,
                commit=commit_name(environment.commit, dirty=environment.dirty),
                branch=dict(environment.facts).get(REQUEST, ""),
                processes=len(measurement.processes),
                identity=how_measured(measurement.identity, at_limit=limited(measurement.processes)),
                clock_hz=clock_of(measurement.processes),
                run=shard.run or alone.run,
                outcome=case.worst.value,
                host=host,
                card=measurement.device.uuid,
                facts=facts,
                metrics=measurement.metrics.metrics if time else _gated_figures(case, measurement),
            )


def _gated_figures(case: CaseReport, measurement: Measurement) -> tuple[Metric, ...]:
    """Return the figures that limits are on; a trace has thousands of others."""
    limits = dict.fromkeys(verdict.limit for verdict in case.verdicts)
    return tuple(dict.fromkeys(figure for limit in limits for figure in selected_figures(limit, measurement)))


def gated(case: CaseReport) -> bool:
    """Return whether figures of a case without a time are compared with accepted values."""
    return not case.problems and any(v.limit.compare is not Compare.FIGURE for v in case.verdicts)


@lru_cache(maxsize=64)
def _surroundings(host: str, environment: Environment, of_device: Facts) -> tuple[str, Facts]:
    """Return the host, and the facts about a case's machine that outlast its run."""
    lasting = environment.lasting
    facts = {"system": lasting.platform, "python": lasting.python}
    facts |= dict((*lasting.packages, *lasting.facts, *of_device))
    return host or facts.pop("host", ""), tuple((name, text) for name, text in facts.items() if text)


@value
class AddedRecord:
    """The result of adding a record to the history."""

    record: str
    new: int = 0
    """The number of runs that the history did not have."""
    left_out: str = ""
    """Why nothing of the record was added."""
    fault: PerfgateError | None = None
    """Why the record is unreadable."""


def append_records(
    history: HistoryStore, sources: Iterable[Any], turn: contextlib.AbstractContextManager[Any] | None = None
) -> Iterator[AddedRecord]:
    """Add every record to the history, as its run would have done; one that was added before is not read again.

    Writers with a ``turn`` write one after the other, because SQLite makes waiting writers sleep for long.
    """
    for source in sources:
        if source.fault is not None or history.has(source.digest):
            yield AddedRecord(record=source.name, fault=source.fault)
            continue
        try:
            report = source.read()
            full = report.mode == Mode.FULL.value
            own = tuple(entries(report)) if full else ()
            with turn or contextlib.nullcontext():
                new = history.append(own, record=source.digest)
            yield AddedRecord(record=source.name, new=new, left_out="" if full else f"a run of the mode {report.mode}")
        except PerfgateError as fault:
            if fault.code.family is not Family.RECORD:
                raise
            yield AddedRecord(record=source.name, fault=fault)


def run_name(report: RunReport) -> str:
    """Return the name of a run, the same wherever its record is and while the run writes it."""
    environment = report.environment
    devices = {(m.device.key, m.device.uuid) for m in (case.measurement for case in report.cases) if m is not None}
    parts = (report.started, report.root, environment.commit, environment.platform, environment.facts, sorted(devices))
    return hashlib.sha256(repr(parts).encode("utf-8", "replace")).hexdigest()[:16]
