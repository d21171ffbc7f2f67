"""Builds a case from each gated test: its marks, their checked arguments, its limits and its plan."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING, Any

import pytest

from pytest_perfgate.core.limits.grammar import parse_limit
from pytest_perfgate.core.limits.merge import asked_figures, matches_pattern, merge_limits, own_name, own_names
from pytest_perfgate.core.metric_kinds import CODE_NAMES, PASSES
from pytest_perfgate.model.errors import PerfgateError, nearest, proposal
from pytest_perfgate.model.plan import Cache, Case, ClockPolicy, Limit, Plan
from pytest_perfgate.model.protocol import CAPTURES, STATIC
from pytest_perfgate.plugin.options import child_environment, seconds

if TYPE_CHECKING:
    from pytest_perfgate.model.metric import MetricKind
    from pytest_perfgate.model.project import Config, ConfigPattern

DEFAULT_LIMIT = "slowdown <= 3%"

_LETTERS = 80
"""The length to which a parameter's text is cut."""

_PLAIN = frozenset({int, float, complex, bool, type(None), Decimal, Fraction})

KEYWORDS = ("on", "capture", "timer", "runtime", "cache", "clocks", "data", "rounds", "budget", "devices")

INSTRUMENTS = {
    "timer": ("auto", "events", "cupti", "blocking", "graph", "host"),
    "runtime": ("auto", "torch", "cupy", "cuda_core", "opencl", "host"),
}
"""The timers and runtimes that are built in."""


class Collector:
    """Makes cases under one configuration."""

    def __init__(
        self,
        config: Config,
        options: Any,
        kinds: Mapping[str, MetricKind],
        brought: Callable[[str], Iterable[str]] = lambda _family: (),
    ) -> None:
        self._config, self._options, self._kinds = config, options, kinds
        self._brought = brought
        """Returns the timers, runtimes or profilers that hooks bring; called only for a name that is not built in."""
        self._plan = planned(config)
        self._own: dict[Path, frozenset[str]] = {}
        """The figures that each test file takes, read for a limit with a name that nothing else produces."""
        self._base = self._limits(config.limits, "configuration", f"{config.source}: tool.perfgate.limits")
        self._commanded = self._limits(options.perfgate_limit, "command line", "--perfgate-limit")
        self._require_profiler(options.perfgate_capture, "option-wrong", "--perfgate-capture")
        _refuse_unmeasured_figures(options.perfgate_metric)
        self._require_profiler(self._plan.captures, "config-value", f"{config.source}: tool.perfgate.capture")
        for name in ("timer", "runtime"):
            self._require_instrument(name, getattr(config, name), f"{config.source}: tool.perfgate.{name}")
        for pattern in config.tests:
            self._patterned_limits(pattern)
            self._require_profiler(pattern.capture, "config-value", pattern.place)
            self._require_instrument("timer", pattern.timer, pattern.place)

    def case(self, item: pytest.Item) -> Case:
        path, line, _ = item.location
        place = f"{path}:{(line or 0) + 1}"
        advice = 'give the parameter an id: pytest.param(..., id="name"), or ids='
        refuse_lone_surrogates(item.nodeid, "the id of this test", place, code="marker-wrong", fix=advice)
        markers = _closest_last(item)
        layers = [self._marked_limits(mark, item, place) for mark in markers]
        limits = self.merged(item.nodeid, layers)
        plan = self._plan
        for pattern in self._patterns(item.nodeid):
            plan = _patterned(plan, pattern)
        for marker in markers:
            plan = self._marked(plan, marker.kwargs, place)
        limits = merge_limits(limits, self._commanded)
        self._require_profiler(plan.captures, "marker-wrong", place)
        return Case(
            nodeid=item.nodeid,
            limits=limits,
            plan=_with_figures(_single_round(commanded(plan, self._options), limits), limits, self._options),
            path=item.nodeid.partition("::")[0],
            marked=bool(markers),
            params=_params(item),
            location=place,
            family=getattr(item, "originalname", "") and item.nodeid.partition("[")[0],
            unreached=why_out_of_reach(item),
        )

    def merged(self, nodeid: str, layers: Sequence[Sequence[Limit]]) -> tuple[Limit, ...]:
        """Return the limits of a test merged with those of its marks; the default limit if there are none."""
        configured = map(self._patterned_limits, self._patterns(nodeid))
        return merge_limits(self._base, *configured, *layers) or self._limits((DEFAULT_LIMIT,), "default", nodeid)

    def _patterned_limits(self, pattern: ConfigPattern) -> tuple[Limit, ...]:
        on = _capture_names(pattern.on, pattern.place)
        return self._limits(pattern.limits, "configuration", pattern.place, on)

    def _patterns(self, nodeid: str) -> list[ConfigPattern]:
        return [p for p in self._config.tests if matches_pattern(nodeid, p.pattern)]

    def _require_profiler(self, names: Sequence[str], code: str, place: str) -> None:
        """Refuse a capture that no profiler takes."""
        unknown = [name for name in names if name not in CAPTURES]
        captures = (*CAPTURES, *self._brought("profilers")) if unknown else CAPTURES
        for name in unknown:
            if name not in captures:
                fix = proposal(name, captures, all_of="name one of the captures")
                raise PerfgateError(code, f"there is no capture {name!r}", fix=fix, place=place)

    def _require_instrument(self, family: str, name: str, place: str) -> None:
        """Refuse a timer or a runtime that nothing brings, where it is named."""
        if name in {"", *INSTRUMENTS[family]} or name in (brought := tuple(self._brought(f"{family}s"))):
            return
        fix = proposal(name, (*INSTRUMENTS[family], *brought), all_of="name one of")
        raise PerfgateError(f"{family}-unknown", f"there is no {family} {name!r}", fix=fix, place=place)

    def _marked_limits(self, mark: pytest.Mark, item: pytest.Item, place: str) -> tuple[Limit, ...]:
        """Return the limits of a mark, which may name figures that the test's file takes."""

        def own(name: str) -> str:
            if item.path not in self._own:
                self._own[item.path] = own_names(_source(item.path))
            return own_name(name, self._own[item.path])

        texts = tuple(_limit_text(text, place) for text in mark.args)
        on = _capture_names(mark.kwargs.get("on", ()), place)
        return tuple(parse_limit(text, kinds=self._kinds, place=place, on=on, own=own) for text in texts)

    def _limits(self, texts: Iterable[Any], source: str, place: str, on: tuple[str, ...] = ()) -> tuple[Limit, ...]:
        whole = tuple(_limit_text(text, place) for text in texts)
        return tuple(parse_limit(text, kinds=self._kinds, source=source, place=place, on=on) for text in whole)

    def _marked(self, plan: Plan, keywords: Mapping[str, Any], place: str) -> Plan:
        for name in keywords:
            if name not in KEYWORDS:
                fix = proposal(name, KEYWORDS, all_of="use one of the keywords")
                raise PerfgateError("marker-wrong", f"the marker has no argument {name!r}", fix=fix, place=place)
        plan = _with(plan, {name: value for name, value in keywords.items() if name != "on"}, place)
        for name in INSTRUMENTS.keys() & keywords.keys():
            self._require_instrument(name, getattr(plan, name), place)
        return plan


def refuse_misspelled(config: pytest.Config, items: Sequence[pytest.Item], near: Sequence[str]) -> None:
    """Refuse, in CI, marks that look like ours and that no settings name."""
    near = [name for name in near if nearest(name, ("perfgate",))]  # others, such as "target", share its letters
    declared = {line.partition(":")[0].partition("(")[0].strip() for line in config.getini("markers")}
    wrong = {name: item for name in near for item in items if item.get_closest_marker(name) and name not in declared}
    if wrong and child_environment(config).get("CI"):
        name, item = min(wrong.items())
        what = f"the mark {name!r} is unknown, so it limits nothing"
        fault = PerfgateError("marker-wrong", what, fix="did you mean perfgate?", place=item.nodeid)
        raise pytest.UsageError(fault.text())


def _limit_text(text: Any, place: str) -> str:
    if not isinstance(text, str):
        raise PerfgateError("marker-wrong", f"a limit must be a text, got {text!r}", place=place)
    return text


def _source(path: Path) -> str:
    """Return the text of a test file, or "" if it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _closest_last(item: pytest.Item) -> list[pytest.Mark]:
    """Return the marks of a test, the closest one last.

    pytest puts the marks of a parameter after those of the function, and a base class before its subclass.
    """
    markers = _by_class(list(item.iter_markers("perfgate"))[::-1], getattr(item, "cls", None))
    callspec = getattr(item, "callspec", None)
    own = [mark for mark in callspec.marks if mark.name == "perfgate"][::-1] if callspec is not None else []
    ids = set(map(id, own))
    return [*(mark for mark in markers if id(mark) not in ids), *own]


def _by_class(marks: list[pytest.Mark], cls: type | None) -> list[pytest.Mark]:
    """Sort the marks of one class hierarchy, those of the class itself last; others keep their places."""
    bases_first = reversed(cls.__mro__ if cls else ())
    depth = {id(mark): at for at, owner in enumerate(bases_first) for mark in _own(owner)}
    ordered = iter(sorted((mark for mark in marks if id(mark) in depth), key=lambda mark: depth[id(mark)]))
    return [next(ordered) if id(mark) in depth else mark for mark in marks]


def _own(owner: type) -> Iterable[pytest.Mark]:
    marks = vars(owner).get("pytestmark", ())
    listed = marks if isinstance(marks, (list, tuple)) else (marks,)
    return (mark.mark if isinstance(mark, pytest.MarkDecorator) else mark for mark in listed)


def _single_round(plan: Plan, limits: Iterable[Limit]) -> Plan:
    """Set one round if only machine code is judged, since it is the same in every process."""
    return replace(plan, rounds=1) if STATIC in plan.captures and {m.metric for m in limits} <= CODE_NAMES else plan


def _refuse_unmeasured_figures(names: Iterable[str]) -> None:
    """Refuse a figure that nothing measures."""
    for name in names:
        if name not in PASSES:
            fix = proposal(name, PASSES, all_of="name one of the figures")
            raise PerfgateError("option-wrong", f"there is no figure {name!r}", fix=fix, place="--perfgate-metric")


def _with_figures(plan: Plan, limits: Iterable[Limit], options: Any) -> Plan:
    """Return the plan with the figures beside time that limits or the command line ask for."""
    figures = asked_figures((*(limit.text for limit in limits), *options.perfgate_metric))
    return replace(plan, figures=figures) if figures else plan


def planned(config: Config) -> Plan:
    """Return the plan of the project's settings."""
    settings = {
        "timer": config.timer,
        "runtime": config.runtime,
        "cache": config.cache,
        "clocks": config.clocks,
        "data": config.data,
        "rounds": config.rounds,
        "capture": config.capture,
        "budget": config.budget,
    }
    plan = _with(Plan(), {name: text for name, text in settings.items() if text}, config.source)
    return replace(
        plan,
        warmup_ns=config.warmup * 1e9 if config.warmup >= 0 else plan.warmup_ns,
        min_samples=config.samples or plan.min_samples,
        floor_ns=config.floor * 1e9 if config.floor >= 0 else plan.floor_ns,
        anchor=config.anchor_revision,
    )


def commanded(plan: Plan, options: Any) -> Plan:
    """Return the plan with the options of the command line, which override all else."""
    settings = {
        "clocks": options.perfgate_clocks,
        "rounds": options.perfgate_rounds,
        "capture": tuple(options.perfgate_capture),
    }
    plan = _with(plan, {name: value for name, value in settings.items() if value}, "command line")
    return replace(plan, against=options.perfgate_against or "", device=options.perfgate_device or "")


def _with(plan: Plan, keywords: Mapping[str, Any], place: str) -> Plan:
    changes = {}
    for name, value in keywords.items():
        field, read = _FIELDS[name]
        changes[field] = read(value, place)
    return replace(plan, **changes)


def _count(value: Any, place: str) -> int:
    count = operator.index(value) if hasattr(value, "__index__") and not isinstance(value, bool) else 0
    if count < 1:
        raise PerfgateError("option-wrong", f"rounds and devices are whole numbers from 1, not {value!r}", place=place)
    return count


def _text(value: Any, place: str) -> str:
    if not isinstance(value, str):
        raise PerfgateError("marker-wrong", f"a name must be a text, got {value!r}", place=place)
    return value


def _captures(value: Any, place: str) -> tuple[str, ...]:
    return tuple(_text(name, place) for name in _listed(value, "capture=", place))


def _capture_names(value: Any, place: str) -> tuple[str, ...]:
    names = tuple(_text(name, place) for name in _listed(value, "on=", place))
    if not all(name.strip() for name in names):
        fix = "name one, such as on='H200*', or leave on= out: the limit then applies everywhere"
        raise PerfgateError("marker-wrong", "on= names no device: the limit would never apply", fix=fix, place=place)
    return names


def _listed(value: Any, keyword: str, place: str) -> tuple[Any, ...]:
    if not isinstance(value, (str, list, tuple, set, frozenset)):
        raise PerfgateError("marker-wrong", f"{keyword} is a text or a list of texts, not {value!r}", place=place)
    return (value,) if isinstance(value, str) else tuple(value)


def _cache(value: Any, place: str) -> Cache:
    return Cache(_one_of(value, [cache.value for cache in Cache], place))


def _clocks(value: Any, place: str) -> ClockPolicy:
    return ClockPolicy(_one_of(value, [clocks.value for clocks in ClockPolicy], place))


def _one_of(value: Any, allowed: Sequence[str], place: str) -> Any:
    if value not in allowed:
        raise PerfgateError("marker-wrong", f"{value!r} is not one of {', '.join(allowed)}", place=place)
    return value


def _nanoseconds(value: Any, place: str) -> float:
    return seconds(value, place) * 1e9


_FIELDS: dict[str, tuple[str, Any]] = {
    "timer": ("timer", _text),
    "runtime": ("runtime", _text),
    "cache": ("cache", _cache),
    "clocks": ("clocks", _clocks),
    "data": ("data", _text),
    "rounds": ("rounds", _count),
    "devices": ("devices", _count),
    "capture": ("captures", _captures),
    "budget": ("budget_ns", _nanoseconds),
}


def _patterned(plan: Plan, pattern: ConfigPattern) -> Plan:
    settings = {
        "timer": pattern.timer,
        "capture": pattern.capture,
        "rounds": pattern.rounds,
        "budget": pattern.budget,
    }
    return _with(plan, {name: value for name, value in settings.items() if value}, pattern.place)


def _params(item: pytest.Item) -> tuple[tuple[str, str], ...]:
    callspec = getattr(item, "callspec", None)
    return tuple((name, _short_text(value)) for name, value in callspec.params.items()) if callspec else ()


def _short_text(value: Any) -> str:
    try:
        return _param(value)[:_LETTERS]
    except (ValueError, RecursionError):  # a whole number of thousands of digits, a list that holds itself
        return type(value).__name__


def _param(value: Any) -> str:
    """Return plain values as text and others by their type: converting an array may take seconds, or raise."""
    if isinstance(value, str):
        return value[:_LETTERS]
    if isinstance(value, (list, tuple)):
        return f"({', '.join(map(_param, value[:_LETTERS]))})"
    if isinstance(value, (type, FunctionType)):
        return value.__qualname__
    kind = type(value)
    plain = kind in _PLAIN or isinstance(value, Enum) or any(one.__name__ == "dtype" for one in kind.__mro__)
    return str(value) if plain else kind.__name__


def refuse_lone_surrogates(text: str, what: str, place: str, *, code: str, fix: str) -> str:
    """Return the text as a plain str; raise if a record, a baseline or a report could not encode it."""
    if not isinstance(text, str):
        raise PerfgateError(code, f"{what} must be a text, got {text!r:.60}", fix="str(...)", place=place)
    try:
        text.encode()
    except UnicodeEncodeError as fault:
        half = text[fault.start]
        sentence = f"{what} holds half a character, {half!a}: no record, baseline or report can name it"
        raise PerfgateError(code, sentence, fix=fix, place=place) from fault
    return str.__str__(text)


def why_out_of_reach(item: pytest.Item) -> tuple[str, str]:
    """Return why calls of a test cannot reach perfgate, and a fix; it lacks our fixture, or takes one that hides it."""
    for name in ("perfgate", "benchmark"):
        if place := foreign_fixture(item, name):
            what = f"its fixture {name!r} is the one of {place}, not that of perfgate"
            return what, f"rename the fixture in {place}, or let it take the one that it hides: def {name}({name})"
    if "perfgate" in getattr(item, "fixturenames", ()):
        return "", ""
    test = item.nodeid.partition("[")[0].rpartition("::")[2]  # an id may hold "::"
    return "it does not take the fixture", f"take the fixture: def {test}(perfgate), and call perfgate(fn)"


def foreign_fixture(item: pytest.Item, name: str) -> str:
    """Return the file whose fixture hides ours in a test, or "" if ours is used, directly or behind it."""
    definitions = getattr(getattr(item, "_fixtureinfo", None), "name2fixturedefs", {}).get(name)
    if not definitions or any(one.func.__module__.startswith("pytest_perfgate.") for one in definitions[-1:]):
        return ""
    if name in definitions[-1].argnames or (name != "perfgate" and "perfgate" in getattr(item, "fixturenames", ())):
        return ""
    file = Path(definitions[-1].func.__code__.co_filename)
    root = item.config.rootpath
    if file.is_relative_to(root):
        return file.relative_to(root).as_posix()
    return str(file) if name == "perfgate" else ""  # pytest-benchmark's own, where it measures
