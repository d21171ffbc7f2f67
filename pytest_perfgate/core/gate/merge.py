"""Which limits hold for a case: the closest of each (metric, scope), device by device."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import reduce

from pytest_perfgate.model.device import Device
from pytest_perfgate.model.limit import Limit
from pytest_perfgate.model.measurement import Measurement
from pytest_perfgate.model.metric import Labels, MetricKind, MetricSet, matches
from pytest_perfgate.model.plan import CaseKey
from pytest_perfgate.model.profiling import READ, STATIC

Layer = Iterable[Limit]
_FAR = frozenset({"configuration", "default", "command line"})


def merge_limits(*layers: Layer) -> tuple[Limit, ...]:
    """Join layers, the closest last: each replaces its keys in those before, on the devices it names.

    Two limits of one layer on the same key both hold: ``registers >= 32`` beside ``registers <= 128``.
    """
    return reduce(_laid_over, (tuple(layer) for layer in layers), ())


def _laid_over(far: tuple[Limit, ...], near: tuple[Limit, ...]) -> tuple[Limit, ...]:
    kept = (_shadowed(limit, [n for n in near if n.key == limit.key]) for limit in far)
    return (*(limit for limit in kept if limit is not None), *near)


def _shadowed(limit: Limit, rivals: list[Limit]) -> Limit | None:
    """What is left of a limit beside closer ones: nothing, or itself except on their devices."""
    if not rivals:
        return limit
    if any(not rival.on or (limit.on and set(limit.on) <= set(rival.on)) for rival in rivals):
        return None
    taken = {pattern for rival in rivals for pattern in rival.on}
    return replace(limit, except_on=tuple(sorted({*limit.except_on, *taken})))


def applies_on(limit: Limit, device: Device) -> bool:
    """Whether a limit is meant for this device."""
    if not limit.on and not limit.except_on:
        return True
    names = _names(device)
    wanted = not limit.on or any(_named(pattern, names) for pattern in limit.on)
    return wanted and not any(_named(pattern, names) for pattern in limit.except_on)


def replaced_on(limit: Limit, device: Device) -> bool:
    """Whether a closer limit took its place on this device."""
    return any(_named(pattern, _names(device)) for pattern in limit.except_on)


def _names(device: Device) -> list[str]:
    """What a device answers to: key, name, model, architecture, kind; ``H200*`` finds ``NVIDIA H200``."""
    texts = [device.key, device.name, device.arch, device.kind, device.spec.name if device.spec else ""]
    words = [text.replace("-", " ").replace("_", " ").split(" ") for text in texts[:2]]
    tails = [" ".join(parts[n:]) for parts in words for n in range(len(parts))]
    return [text.casefold() for text in (*texts, *tails) if text]


def _named(pattern: str, names: list[str]) -> bool:
    pattern = pattern.casefold()
    return any(fnmatchcase(name, pattern) for name in names)


def limits_for(limits: Layer, key: CaseKey, parts: Collection[str] = ()) -> tuple[Limit, ...]:
    """Limits that a call answers to; one that names the call (``case=``) wins over one that names none.

    ``parts`` are the cases that a file held which the call brought along: a limit may name one of those instead.
    """
    limits = tuple(limits)
    if not any(limit.labels for limit in limits):
        return limits
    chosen = [limit for limit in limits if _meant_for(limit, key) or names_part(limit, parts)]
    named = {(limit.metric, without_case(limit)) for limit in chosen if case_of(limit) and _meant_for(limit, key)}
    return tuple(limit for limit in chosen if (limit.metric, limit.labels) not in named)


def unmatched_cases(limits: Layer, keys: Iterable[CaseKey], parts: Collection[str] = ()) -> tuple[Limit, ...]:
    """Limits whose ``case=`` names neither a call that was made nor a case of a file: a scope that matches nothing."""
    known = tuple(keys)
    named = (limit for limit in limits if case_of(limit) and not names_part(limit, parts))
    return tuple(limit for limit in named if not any(_meant_for(limit, key) for key in known))


def parts_of(metrics: MetricSet) -> frozenset[str]:
    """The cases that a file held: what ``case=`` may name beside the call that brought it."""
    labels = [one.labels for one in metrics.metrics] + [one.labels for one in metrics.absent]
    return frozenset(text for held in labels for name, text in held if name == "case")


def names_part(limit: Limit, parts: Collection[str]) -> bool:
    """Whether the ``case=`` of a limit is one of these."""
    wanted = (("case", case_of(limit)),)
    return any(matches((("case", part),), wanted) for part in parts)


def scope_within(limit: Limit, key: CaseKey) -> Labels:
    """The labels that select among the metrics of a call; its name selects the call itself."""
    return without_case(limit) if _meant_for(limit, key) else limit.labels


def elsewhere(limits: Sequence[Limit], measurement: Measurement, kinds: Mapping[str, MetricKind]) -> tuple[Limit, ...]:
    """Limits on times that the whole project has, of what a test read and nothing timed: they are for other tests.

    None where the file tells of such a figure, or where there is no other limit: nothing passes for want of one.
    """
    if measurement.processes or measurement.identity.timer not in {READ, STATIC}:
        return ()
    told = {*measurement.metrics.names(), *(absent.name for absent in measurement.metrics.absent)}
    timed = {name for name, kind in kinds.items() if kind.source == "time"} - told
    found = tuple(limit for limit in limits if limit.source in _FAR and limit.metric in timed)
    return found if len(found) < len(limits) else ()


def without_case(limit: Limit) -> tuple[tuple[str, str], ...]:
    """The labels that select among the metrics of one call."""
    return tuple([pair for pair in limit.labels if pair[0] != "case"]) if limit.labels else ()


def case_of(limit: Limit) -> str:
    """The name of the call that a limit speaks of; empty where it speaks of all."""
    return next((text for name, text in limit.labels if name == "case"), "")


def _meant_for(limit: Limit, key: CaseKey) -> bool:
    case = case_of(limit)
    return not case or matches((("case", key.name),), (("case", case),))
