"""Shards of a run: which one this is, and merging records; missing shards are named, foreign ones refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from typing import NamedTuple

from pytest_perfgate.core.judge.context import JudgeContext
from pytest_perfgate.core.judge.judge import not_measured
from pytest_perfgate.core.judge.suite import SLOW_CARD, slow_card_notes
from pytest_perfgate.core.render.words import plural
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.measurement import Baseline, Environment, commit_name
from pytest_perfgate.model.plan import CaseKey, Choice, Effect, Limit, Mode, Policy
from pytest_perfgate.model.values import first_of, grouped, value
from pytest_perfgate.model.verdict import CaseReport, RunReport, Shard, SuiteNote

OWN = "PERFGATE_SHARD"
"""The variable that any CI can set, as ``3/8``."""


class JobVariables(NamedTuple):
    """Variables in which a CI counts its parallel jobs, and the number of the first."""

    number: str
    total: str
    first: int


COUNTED: tuple[JobVariables, ...] = (
    JobVariables("PERFGATE_JOB_INDEX", "PERFGATE_JOB_TOTAL", 0),
    JobVariables("BUILDKITE_PARALLEL_JOB", "BUILDKITE_PARALLEL_JOB_COUNT", 0),
    JobVariables("CIRCLE_NODE_INDEX", "CIRCLE_NODE_TOTAL", 0),
    JobVariables("CI_NODE_INDEX", "CI_NODE_TOTAL", 1),
    JobVariables("SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_COUNT", 0),
    JobVariables("SLURM_PROCID", "SLURM_NTASKS", 0),
)
"""Tried in this order. GitHub has matrix jobs only in expressions, so the workflow passes them on."""


class Place(NamedTuple):
    """Shard ``index`` of ``count``, the first being 1."""

    number: int
    total: int


def place_of(text: str, environment: Mapping[str, str]) -> Place:
    """Return the shard of ``--perfgate-shard``; ``auto`` reads the variables of CI."""
    if text.strip() != "auto":
        return parse_place(text, "--perfgate-shard")
    if own := environment.get(OWN, ""):
        return parse_place(own, OWN)
    for counted in COUNTED:
        index, count = environment.get(counted.number, ""), environment.get(counted.total, "")
        if count == "1" and not index:  # GitLab without ``parallel``
            return Place(1, 1)
        if index and count:
            where = f"{counted.number}={index} {counted.total}={count}"
            at, total = _integer(index, where) - counted.first, _integer(count, where)
            at = _in_array(at, total, environment, where) if "ARRAY" in counted.number else at
            return _checked(at + 1, total, where)
    names = ", ".join(counted.number for counted in COUNTED)
    raise PerfgateError("shard-unknown", f"auto, and no variable numbers this job: neither {OWN} nor one of {names}")


def _in_array(task: int, count: int, environment: Mapping[str, str], place: str) -> int:
    """Return the position of a task in an array such as ``0-14:2``, from 0; raise for numbers without a pattern."""
    first, last, step = (environment.get(f"SLURM_ARRAY_TASK_{name}", "") for name in ("MIN", "MAX", "STEP"))
    at, step_size = _integer(first or "0", place), _integer(step or "1", place) or 1
    if (last and _integer(last, place) != at + (count - 1) * step_size) or (task - at) % step_size:
        what = f"the {count} tasks are not numbered in steps of {step_size} from {at}"
        raise PerfgateError("shard-unknown", what, fix=f"set {OWN}=K/{count} in each task", place=place)
    return (task - at) // step_size


def parse_place(text: str, source: str) -> Place:
    index, sign, count = (part.strip() for part in text.partition("/"))
    if not sign:
        raise PerfgateError("shard-unknown", f"{text!r} is not K/N, such as 3/8, and not auto", place=source)
    where = f"{source} {text}"
    return _checked(_integer(index, where), _integer(count, where), where)


def _integer(text: str, place: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise PerfgateError("shard-unknown", f"{text!r} is not a number", place=place)
    return int(text)


def _checked(index: int, count: int, place: str) -> Place:
    if not 1 <= index <= count:
        raise PerfgateError("shard-unknown", f"there is no shard {index} of {count}: shards count from 1", place=place)
    return Place(index, count)


FOREIGN: tuple[tuple[str, str, str], ...] = (
    ("pytest-split", "splits", "group"),
    ("pytest-shard", "num_shards", "shard_id"),
)
"""Plugins that divide a run, with their options for count and number."""


def foreign_split(options: Mapping[str, object]) -> None:
    """Raise if another plugin divides this run, since the gate could not tell what was left out."""
    for plugin, count_name, index_name in FOREIGN:
        count, index = options.get(count_name), options.get(index_name)
        if not isinstance(count, int) or not isinstance(index, int) or count < 2:
            continue
        number = index if plugin == "pytest-split" else index + 1
        words = (f"--{name.replace('_', '-')} {value}" for name, value in ((count_name, count), (index_name, index)))
        what = f"{plugin} divides this run ({' '.join(words)}), and it has gated tests"
        raise PerfgateError("shard-foreign", what, fix=f"use --perfgate-shard {number}/{count} instead")


SHARDS = "shards"
"""The kind of the note on missing shards."""

_HOST = "host-"
"""The prefix of a processor's key: shards on different processors are parts of one run."""


@value
class Source:
    """A record to be merged."""

    place: str
    """Its name in messages."""
    report: RunReport


def merged(
    sources: Sequence[Source], expect: int = 0, lines: Mapping[str, Iterable[Baseline]] | None = None
) -> RunReport:
    """Return one run, with the verdicts of the shards, each of which used its part of the false-alarm rate."""
    # ``lines`` are the accepted ones of each device: a kind of GPU with lines and without a record is named.
    _check_same_settings(sources)
    reports = [source.report for source in sources]
    shards = [shard for report in reports for shard in report.shards]
    groups = _groups([(source.place, shard) for source in sources for shard in source.report.shards])
    for group in groups.values():
        _check_group(group)
    _check_once(sources, groups)
    if expect and len(shards) > expect:
        raise PerfgateError("merge-twice", f"{plural(len(shards), 'shard')} where {expect} were expected")
    cases = [case for report in reports for case in (*_without_absent(report), *_cut_short(report))]
    absent = [case for device, group in groups.items() for case in _of_absent(device, group, reports[0].mode)]
    lost = missing_places(shards)
    return RunReport(
        cases=tuple(_ordered([*cases, *absent], shards)),
        environment=common([shard.environment for shard in shards]),
        mode=reports[0].mode,
        started=min(shard.started for shard in shards),
        seconds=max(shard.seconds for shard in shards),
        complete=all(shard.complete for shard in shards),
        filtered=any(shard.filtered for shard in shards) or bool(lost),
        notes=(
            *_shard_notes(shards, lost, expect),
            *absent_devices(shards, lines or {}),
            *joined_notes(reports),
            *slow_card_notes(cases),
        ),
        status=max(shard.status for shard in shards),
        root=reports[0].root,
        tables=tuple(dict.fromkeys(pair for report in reports for pair in report.tables)),
        shards=tuple(shards),
    )


def named(shard: Shard) -> str:
    """Return ``shard 3/8 of runner-2``."""
    return f"shard {shard.index}/{shard.count}{f' of {shard.host}' if shard.host else ''}"


Held = list[tuple[str, Shard]]
"""Shards of one kind of device, each with the place of its record."""


def _groups(shards: Held) -> dict[str, Held]:
    """Group shards: each kind of GPU is a run of its own; processors are one run unless a shard repeats."""
    hosts = [(shard.index, shard.count) for _, shard in shards if _on_host(shard)]
    once = len(set(hosts)) == len(hosts)
    return grouped(shards, lambda placed: "" if _on_host(placed[1]) and once else placed[1].device)


def _on_host(shard: Shard) -> bool:
    return not shard.device or shard.device.startswith(_HOST)


def _check_same_settings(sources: Sequence[Source]) -> None:
    """Check what all shards of all devices must have in common."""
    for source in sources:
        if not source.report.shards:
            what = "it names no shard: perfgate check or an earlier version wrote it"
            raise PerfgateError("merge-unlike", what, place=source.place)
    shards = [(source.place, source.report, shard) for source in sources for shard in source.report.shards]
    first_place, first_report, first = shards[0]
    for place, report, shard in shards[1:]:
        both = (
            ("commit", _commit(first), _commit(shard)),
            ("changes since the commit", first.changes, shard.changes),
            ("mode", first_report.mode, report.mode),
            *_policies(first, shard),
        )
        for what, then, now in ((what, then or "unknown", now or "unknown") for what, then, now in both):
            if then != now:
                raise PerfgateError("merge-unlike", f"{what} {now}, and {then} in {first_place}", place=place)
        _check_limits((first_place, first), (place, shard))


def _commit(shard: Shard) -> str:
    return commit_name(shard.environment.commit, dirty=shard.environment.dirty)


def _policies(first: Shard, shard: Shard) -> Iterator[tuple[str, str, str]]:
    for field in fields(Policy):
        both = (getattr(universe.policy, field.name) for universe in (first.universe, shard.universe))
        then, now = (str(choice.value if isinstance(choice, Choice) else choice) for choice in both)
        yield f"policy {field.name}", then, now


def _check_limits(earlier: tuple[str, Shard], later: tuple[str, Shard]) -> None:
    """Check that a test that both collected has the same limits."""
    (first_place, first), (place, shard) = earlier, later
    if shard.universe == first.universe:
        return
    limits_of = dict(first.universe.cases)
    for nodeid, limits in shard.universe.cases:
        if limits_of.get(nodeid, limits) != limits:
            texts = [", ".join(limit.text for limit in some) or "none" for some in (limits, limits_of[nodeid])]
            text = f"{nodeid} has the limits {texts[0]}, and {texts[1]} in {first_place}"
            raise PerfgateError("merge-unlike", text, place=place)


def _check_group(group: Held) -> None:
    """Check shards of one kind of device: one collection, divided in one way, no shard twice."""
    first_place, first = group[0]
    places: dict[int, tuple[str, str]] = {}
    for place, shard in group:
        if shard.index in places:
            where, run = places[shard.index]
            again = "the same record" if run == shard.run else "another run of the same shard"
            raise PerfgateError("merge-twice", f"{named(shard)}: {again} is in {where}", place=place)
        places[shard.index] = (place, shard.run)
        _check_same_division((first_place, first), (place, shard))
    counts = Counter(nodeid for _, shard in group for nodeid in shard.names)
    doubled = [nodeid for nodeid, count in counts.items() if count > 1]
    if doubled:
        raise PerfgateError("merge-twice", f"measured by two shards: {first_of(doubled, 3)}")
    lost = [name for name, _ in first.universe.cases if name not in counts]
    if lost and len(group) == first.count:
        raise PerfgateError("merge-unlike", f"no shard of {first.count} has {first_of(lost, 3)}")


def _check_same_division(earlier: tuple[str, Shard], later: tuple[str, Shard]) -> None:
    (first_place, first), (place, shard) = earlier, later
    if shard.count != first.count:
        text = f"{named(shard)}, and {named(first)} in {first_place}"
    elif shard.split != first.split:
        text = f"{named(shard)} was divided by other costs than {named(first)} in {first_place}"
    elif shard.universe.cases != first.universe.cases:
        unlike = {name for name, _ in shard.universe.cases} ^ {name for name, _ in first.universe.cases}
        text = (
            f"{named(shard)} collected other tests than {named(first)} in {first_place}: {first_of(sorted(unlike), 3)}"
        )
    else:
        return
    raise PerfgateError("merge-unlike", text, place=place)


def _check_once(sources: Sequence[Source], groups: Mapping[str, Held]) -> None:
    """Check that no case was measured twice on one kind of device."""
    of_place = {place: device for device, group in groups.items() for place, _ in group}
    places: dict[tuple[str, CaseKey], str] = {}
    for source in sources:
        for case in source.report.cases:
            if case.measurement is None:
                continue
            several = len({shard.device for shard in source.report.shards}) > 1
            at = (case.measurement.device.name if several else of_place[source.place], case.key)
            if at in places:
                raise PerfgateError("merge-twice", f"{case.key} is in {places[at]} too", place=source.place)
            places[at] = source.place


def absent_devices(shards: Sequence[Shard], lines: Mapping[str, Iterable[Baseline]]) -> Iterator[SuiteNote]:
    """Yield a note on kinds of GPU that have accepted times of these tests, and no record at all."""
    tests = {nodeid for shard in shards for nodeid, _ in shard.universe.cases}
    here = {shard.device for shard in shards}
    for device in sorted(device for device in lines if device not in here and not device.startswith(_HOST)):
        if count := sum(line.key.nodeid in tests for line in lines[device]):
            accepted = plural(count, "accepted line")
            text = f"{device} has {accepted} of these tests, and there is no record of it; --expect makes that fail"
            yield SuiteNote(kind=SHARDS, effect=Effect.WARN, text=text)


def missing_places(shards: Iterable[Shard]) -> tuple[str, ...]:
    """Return the missing shards of each kind of device: ``3/8 on NVIDIA H200``."""
    groups = _groups([("", shard) for shard in shards])
    return tuple(text for device, group in groups.items() for text in _places(device, group))


def _places(device: str, group: Held) -> Iterator[str]:
    count, indices = group[0][1].count, {shard.index for _, shard in group}
    for index in range(1, count + 1):
        if index not in indices:
            yield f"{index}/{count}{f' on {device}' if device else ''}"


def _cut_short(report: RunReport) -> Iterator[CaseReport]:
    """Yield the cases that an interrupted shard did not measure."""
    reported = {case.key.nodeid for case in report.cases}
    for shard in report.shards:
        if not shard.complete:
            own = (shard.universe.cases[at] for at in shard.chosen)
            lost = [case for case in own if case[0] not in reported]
            yield from _unmeasured(lost, f"{named(shard)} was cut short before it", shard, report.mode)


def _without_absent(report: RunReport) -> Iterator[CaseReport]:
    """Yield the cases without those added for missing shards by an earlier merge, which this one adds again."""
    groups = _groups([("", shard) for shard in report.shards])
    absent = [case for device, group in groups.items() for case in _of_absent(device, group, report.mode)]
    return (case for case in report.cases if case not in absent)


def _of_absent(device: str, group: Held, mode: str) -> Iterator[CaseReport]:
    """Yield the cases of missing shards."""
    present = {name for _, shard in group for name in shard.names}
    _, first = group[0]
    lost = [(nodeid, limits) for nodeid, limits in first.universe.cases if nodeid not in present]
    places = first_of(list(_places(device, group)), 3)
    yield from _unmeasured(lost, f"the record of its shard is missing: {places}", first, mode)


def _unmeasured(
    pairs: Iterable[tuple[str, tuple[Limit, ...]]], why: str, shard: Shard, mode: str
) -> Iterator[CaseReport]:
    context = JudgeContext(policy=shard.universe.policy, mode=Mode(mode))
    return (not_measured(CaseKey(nodeid=nodeid), limits, why, context) for nodeid, limits in pairs)


def _shard_notes(shards: Sequence[Shard], lost: tuple[str, ...], expect: int) -> Iterator[SuiteNote]:
    effect = shards[0].universe.policy.effect("unmeasured")
    if lost:
        text = f"{plural(len(lost), 'shard')} of this run missing: their cases are not measured"
        yield SuiteNote(kind=SHARDS, effect=effect, text=text, names=lost)
    if len(shards) < expect:
        text = f"{plural(expect, 'shard')} expected, {len(shards)} found"
        yield SuiteNote(kind=SHARDS, effect=effect, text=text)


def _ordered(cases: Iterable[CaseReport], shards: Sequence[Shard]) -> list[CaseReport]:
    """Return cases in the order of the universe, so that the order of records does not matter."""
    rank = {nodeid: at for shard in reversed(shards) for at, (nodeid, _) in enumerate(shard.universe.cases)}
    return sorted(cases, key=lambda case: (rank.get(case.key.nodeid, len(rank)), str(case.key), case.device))


def joined_notes(reports: Sequence[RunReport]) -> Iterator[SuiteNote]:
    """Yield each note once; one that only some shards have, or word differently, names those shards."""
    sources: dict[SuiteNote, list[str]] = {}
    for report in reports:
        whose = named(report.shards[0]) if len(report.shards) == 1 else ""
        for note in report.notes:
            if note.kind not in {SLOW_CARD, SHARDS}:  # all shards together report that better
                sources.setdefault(note, []).append(whose)
    kinds = Counter(note.kind for note in sources)
    for note, places in sources.items():
        whose = ", ".join(filter(None, places))
        alone = len(places) < len(reports) and kinds[note.kind] > 1 and whose
        yield replace(note, text=f"{whose}: {note.text}") if alone else note


def common(environments: Sequence[Environment]) -> Environment:
    """Return what all shards have in common; differences are in the shards."""
    first = environments[0]
    packages = [pair for pair in first.packages if all(pair in environment.packages for environment in environments)]
    facts = [pair for pair in first.facts if all(pair in environment.facts for environment in environments)]
    return replace(
        first,
        python=first.python if len({environment.python for environment in environments}) == 1 else "",
        platform=first.platform if len({environment.platform for environment in environments}) == 1 else "",
        packages=tuple(packages),
        facts=tuple(facts),
    )
