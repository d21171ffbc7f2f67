"""Counters that one run cannot hold are collected in several: the passes of one dispatch are put together again."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.kernel import KernelFacts

_PASS = re.compile(r"(?:pmc|pass)_(\d+)")
Key = tuple[str, ...]


def joined(files: Sequence[Sequence[KernelFacts]]) -> tuple[KernelFacts, ...]:
    """Dispatches with the counters of all their passes, and with the times of a trace beside them."""
    every = [facts for one in files for facts in one]
    counted = [facts for facts in every if facts.counters]
    traced = [facts for facts in every if not facts.counters]
    times = {key: facts for facts in traced for key in _trace_keys(facts)}
    used: set[int] = set()
    merged = [_timed(facts, times, used) for facts in _passes(counted)]
    return (*merged, *(facts for facts in traced if id(facts) not in used))


def _passes(counted: Sequence[KernelFacts]) -> list[KernelFacts]:
    """One entry a dispatch, in the order in which it was first seen."""
    ordinals = _ordinals(counted)
    apart = not any(map(_number, counted)) and not _disjoint(counted)
    found: dict[Key, KernelFacts] = {}
    for facts in sorted(counted, key=_number):
        root, process = _root(facts), ordinals[_number(facts), _root(facts), facts.notes.get("process", "")]
        key = (root, str(process), *_dispatch(facts), *((facts.source,) if apart else ()))
        found[key] = _together(found[key], facts) if key in found else facts
    return list(found.values())


def _together(first: KernelFacts, other: KernelFacts) -> KernelFacts:
    """What an earlier pass counted stays: a counter of both is of the first."""
    return replace(
        first,
        counters={**other.counters, **first.counters},
        duration=first.duration if first.duration is not None else other.duration,
        resources=first.resources or other.resources,
    )


def _ordinals(counted: Iterable[KernelFacts]) -> dict[tuple[int, str, str], int]:
    """Each pass runs the program anew, under other process ids: the first process of each is the same one."""
    seen: dict[tuple[int, str], set[str]] = {}
    for facts in counted:
        seen.setdefault((_number(facts), _root(facts)), set()).add(facts.notes.get("process", ""))
    for root in {root for _, root in seen}:
        counts = {number: len(names) for (number, home), names in seen.items() if home == root and number}
        if len(set(counts.values())) > 1:
            what = "passes have different numbers of processes: which dispatch is which cannot be told"
            raise PerfgateError("rocprof-csv", what, place=root, mend="name the files of one process")
    return {
        (*where, process): at
        for where, names in seen.items()
        for at, process in enumerate(sorted(names, key=lambda name: (len(name), name)))
    }


def _number(facts: KernelFacts) -> int:
    """Of the pass; zero where the folders name none."""
    found = [_PASS.fullmatch(part) for part in Path(facts.source).parts]
    return next((int(one[1]) for one in reversed(found) if one), 0)


def _root(facts: KernelFacts) -> str:
    """The folder that holds the passes; nothing where there are none."""
    parts = Path(facts.source).parts
    at = next((n for n in range(len(parts) - 1, -1, -1) if _PASS.fullmatch(parts[n])), 0)
    return str(Path(*parts[:at])) if at else ""


def _disjoint(counted: Sequence[KernelFacts]) -> bool:
    """Whether files share no counter: then they are passes, whatever they are called."""
    names: dict[str, set[str]] = {}
    for facts in counted:
        names.setdefault(facts.source, set()).update(facts.counters)
    return sum(map(len, names.values())) == len(set().union(*names.values())) if names else True


def _dispatch(facts: KernelFacts) -> Key:
    """Statistics have no dispatch: their kernel is told by its name."""
    return facts.name, facts.notes.get("dispatch", ""), facts.notes.get("agent", "")


def _trace_keys(facts: KernelFacts) -> tuple[Key, Key]:
    """With the process, and without it: older traces do not say whose they are."""
    name, dispatch, _ = _dispatch(facts)
    return (name, dispatch, facts.notes.get("process", "")), (name, dispatch, "")


def _timed(facts: KernelFacts, times: dict[Key, KernelFacts], used: set[int]) -> KernelFacts:
    keys = _trace_keys(facts)
    found = next((times[key] for key in keys if key in times and _may_be(facts, times[key])), None)
    if found is None:
        return facts
    used.add(id(found))
    return replace(facts, duration=facts.duration if facts.duration is not None else found.duration)


def _may_be(facts: KernelFacts, other: KernelFacts) -> bool:
    """Whether nothing says that they are of different processes of one pass."""
    ours, theirs = facts.notes.get("process", ""), other.notes.get("process", "")
    return not ours or not theirs or ours == theirs or _number(facts) != _number(other)
