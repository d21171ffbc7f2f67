"""The limits of a case, and the selection of cases by pattern."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import lru_cache, partial, reduce
from typing import TYPE_CHECKING

from pytest_perfgate.core.limits.scope import Span, Written
from pytest_perfgate.core.metric_kinds import PASSES
from pytest_perfgate.model.errors import PerfgateError, either, nearest
from pytest_perfgate.model.metric import Absent, Labels, Metric, MetricKind, MetricSet, matches
from pytest_perfgate.model.protocol import OWN, READ, RECORD, STATIC

if TYPE_CHECKING:
    from pytest_perfgate.model.device import Device
    from pytest_perfgate.model.measurement import Measurement
    from pytest_perfgate.model.plan import CaseKey, Limit
    from pytest_perfgate.model.project import ConfigPattern

    Layer = Iterable[Limit]

    Selects = Callable[[CaseKey], bool]

_FAR = frozenset({"configuration", "default", "command line"})


def merge_limits(*layers: Layer) -> tuple[Limit, ...]:
    """Join layers, the closest last: each replaces the same keys of earlier layers, on the devices it names."""
    # Two limits of one layer on the same key both apply: ``registers >= 32`` beside ``registers <= 128``.
    return reduce(_overridden, (tuple(layer) for layer in layers), ())


def _overridden(far: tuple[Limit, ...], near: tuple[Limit, ...]) -> tuple[Limit, ...]:
    remaining = (_remaining_limit(limit, [n for n in near if n.key == limit.key]) for limit in far)
    return (*(limit for limit in remaining if limit is not None), *near)


def _remaining_limit(limit: Limit, rivals: list[Limit]) -> Limit | None:
    """Return what remains of a limit beside closer ones: None, or the limit except on their devices."""
    if not rivals:
        return limit
    if any(not rival.on or (limit.on and set(limit.on) <= set(rival.on)) for rival in rivals):
        return None
    patterns = {pattern for rival in rivals for pattern in rival.on}
    return replace(limit, except_on=tuple(sorted({*limit.except_on, *patterns})))


def applies_on(limit: Limit, device: Device) -> bool:
    if not limit.on and not limit.except_on:
        return True
    names = _names(device)
    wanted = not limit.on or any(_matches_any(pattern, names) for pattern in limit.on)
    return wanted and not any(_matches_any(pattern, names) for pattern in limit.except_on)


def replaced_on(limit: Limit, device: Device) -> bool:
    """Return whether a closer limit replaces it on this device."""
    return any(_matches_any(pattern, _names(device)) for pattern in limit.except_on)


def _names(device: Device) -> list[str]:
    """Return a device's names: key, name, model, architecture, kind; ``H200*`` matches ``NVIDIA H200``."""
    texts = [device.key, device.name, device.arch, device.kind, device.spec.name if device.spec else ""]
    words = [text.replace("-", " ").replace("_", " ").split(" ") for text in texts[:2]]
    tails = [" ".join(parts[n:]) for parts in words for n in range(len(parts))]
    return [text.casefold() for text in (*texts, *tails) if text]


def _matches_any(pattern: str, names: list[str]) -> bool:
    pattern = pattern.casefold()
    return any(fnmatchcase(name, pattern) for name in names)


def limits_for(limits: Layer, key: CaseKey, parts: Collection[str] = ()) -> tuple[Limit, ...]:
    """Return the limits of a call; one that names the call (``case=``) wins over one that names none."""
    # ``parts`` are the cases in a file that the call read: a limit may name one of those instead.
    limits = tuple(limits)
    if not any(map(case_of, limits)):
        return limits
    chosen = [limit for limit in limits if _meant_for(limit, key) or names_part(limit, parts)]
    named = {(limit.title, without_case(limit)) for limit in chosen if case_of(limit) and _meant_for(limit, key)}
    return tuple(limit for limit in chosen if (limit.title, limit.labels) not in named)


def unmatched_cases(limits: Layer, keys: Iterable[CaseKey], parts: Collection[str] = ()) -> tuple[Limit, ...]:
    """Return limits whose ``case=`` names neither a call of the test nor a case of a file."""
    cases = tuple(keys)
    named = (limit for limit in limits if case_of(limit) and not names_part(limit, parts))
    return tuple(limit for limit in named if not any(_meant_for(limit, key) for key in cases))


def parts_of(metrics: MetricSet) -> frozenset[str]:
    """Return the cases in a file, which ``case=`` may name besides the call that read it."""
    labels = [metric.labels for metric in metrics.metrics] + [absent.labels for absent in metrics.absent]
    return frozenset(text for labels_of in labels for name, text in labels_of if name == "case")


def names_part(limit: Limit, parts: Collection[str]) -> bool:
    """Return whether the ``case=`` of a limit is one of these."""
    wanted = (("case", case_of(limit)),)
    return any(matches((("case", part),), wanted) for part in parts)


def scope_within(limit: Limit, key: CaseKey) -> Labels:
    """Return the labels that select metrics of a call, without the call's own name."""
    return without_case(limit) if limit.labels and _meant_for(limit, key) else limit.labels


def limits_on_times(
    limits: Sequence[Limit], measurement: Measurement, kinds: Mapping[str, MetricKind]
) -> tuple[Limit, ...]:
    """Return the project's limits on times, for a measurement that only read files: they apply to other tests."""
    # Return none if the file has such a figure, or if there is no other limit, so that a test never passes without any.
    if measurement.processes or measurement.identity.timer not in {READ, RECORD, OWN, STATIC}:
        return ()
    names = {*measurement.metrics.names(), *(absent.name for absent in measurement.metrics.absent)}
    timed = {name for name, kind in kinds.items() if kind.source == "time"} - names
    moved = tuple(limit for limit in limits if limit.source in _FAR and limit.metric in timed)
    return moved if len(moved) < len(limits) else ()


def of_other_calls(limits: Iterable[Limit], measurement: Measurement, own: Collection[str]) -> tuple[Limit, ...]:
    """Return limits on a test's own figures that were taken after another call."""
    here = {*measurement.metrics.names(), *(absent.name for absent in measurement.metrics.absent)}
    return tuple(limit for limit in limits if limit.metric in own and limit.metric not in here)


def with_directions(measurement: Measurement, limits: Sequence[Limit]) -> Measurement:
    """Return what was read of files; a figure's limits state its direction, or those on its change if its name does."""
    if measurement.identity.timer != READ:
        return measurement
    scoped = [(limit, scope_within(limit, measurement.key)) for limit in limits]
    from pytest_perfgate.model.values import Better, Dimension

    def directed(metric: Metric) -> Metric:
        named = (one for one, at in scoped if one.metric == metric.name and matches(metric.labels, at))
        signs = {one.operator.value[0] for one in named if metric.better is Better.NEITHER or one.title != one.metric}
        better = {"": metric.better, "<": Better.LOWER, ">": Better.HIGHER}.get("".join(signs), Better.NEITHER)
        return replace(metric, better=better)

    own = (directed(m) if m.better and m.dimension is Dimension.PLAIN else m for m in measurement.metrics.metrics)
    return replace(measurement, metrics=replace(measurement.metrics, metrics=tuple(own)))


def name_of_several(metrics: Sequence[Metric]) -> str:
    """Return a name that several benchmarks of a file share; "" if each has its own."""
    counts = Counter(metric.labels for metric in metrics)
    return next((dict(scope).get("case", "") for scope, count in counts.items() if count > 1), "")


def without_case(limit: Limit) -> tuple[tuple[str, str], ...]:
    """Return the labels that select metrics of one call."""
    return tuple([pair for pair in limit.labels if pair[0] != "case"]) if limit.labels else ()


def case_of(limit: Limit) -> str:
    """Return the name of the call that a limit applies to; "" if it applies to all."""
    return next((text for name, text in limit.labels if name == "case"), "") if limit.labels else ""


def _meant_for(limit: Limit, key: CaseKey) -> bool:
    case = case_of(limit)
    return not case or matches((("case", key.name),), (("case", case),))


_TOKEN = re.compile(r"\s*(?:([()])|([^\s()]+))")


def named(names: Iterable[str]) -> Selects:
    """Return a selection by names: a whole node id, one without parameters, a test's own name, a file, a folder."""
    stripped = (name.strip() for name in names)
    paths = (name if "::" in name else name.replace("\\", "/") for name in stripped)
    wanted = [path.removeprefix("./") for path in paths]
    return lambda key: any(_is_explicit(key, name) or _lies_in(key, name) for name in wanted)


def explicit_selection(names: Iterable[str]) -> Selects:
    """Return a selection by names of the tests themselves, and not of files or folders."""
    wanted = [name.strip() for name in names]
    return lambda key: any(_is_explicit(key, name) for name in wanted)


def _lies_in(key: CaseKey, name: str) -> bool:
    return key.path == name or key.path.startswith(name.rstrip("/") + "/")


def _is_explicit(key: CaseKey, name: str) -> bool:
    whole, test = str(key), key.test
    forms = (
        whole,
        key.nodeid,
        test,
        key.nodeid.partition("::")[2],
        _without_parameters(key.nodeid),
        _without_parameters(key.nodeid).partition("::")[2],
        f"{key.nodeid}#{key.name}",
    )
    return name in forms or _as_written(name) in forms


def _as_written(name: str) -> str:
    """Return the name as in a key: in parameters, and only there, pytest escapes characters beyond ASCII."""
    head, bracket, rest = name.partition("[")
    parameters, closed, tail = rest.rpartition("]")
    escaped = "".join(sign if sign.isascii() else sign.encode("unicode_escape").decode() for sign in parameters)
    return f"{head}{bracket}{escaped}{closed}{tail}"


def _without_parameters(nodeid: str) -> str:
    """Return the node id without parameters."""
    path, _, test = nodeid.partition("::")
    return f"{path}::{test.partition('[')[0]}"


def matching(expression: str) -> Selects:
    """Return a selection by a ``-k`` expression: words are parts of the name, with and, or, not, brackets."""
    tokens = [bracket or word for bracket, word in _TOKEN.findall(expression)]
    tree, rest = _joined(tokens, 0, expression)
    if rest != len(tokens):
        raise _fault(expression, f"'{tokens[rest]}' is not expected")
    return lambda key: tree(str(key).lower())


Holds = Callable[[str], bool]


def _joined(tokens: list[str], at: int, expression: str, word: str = "or") -> tuple[Holds, int]:
    """Return what ``or`` joins; each of its parts is what ``and`` joins."""
    part_at = partial(_joined, word="and") if word == "or" else _single
    operand, at = part_at(tokens, at, expression)
    parts = [operand]
    while at < len(tokens) and tokens[at] == word:
        right, at = part_at(tokens, at + 1, expression)
        parts.append(right)
    enough = any if word == "or" else all
    return lambda name: enough(part(name) for part in parts), at


def _single(tokens: list[str], at: int, expression: str) -> tuple[Holds, int]:
    if at >= len(tokens):
        raise _fault(expression, "it ends where a name is expected")
    word = tokens[at]
    if word == "not":
        inner, after = _single(tokens, at + 1, expression)
        return lambda name: not inner(name), after
    if word == "(":
        inner, after = _joined(tokens, at + 1, expression)
        if tokens[after : after + 1] != [")"]:
            raise _fault(expression, "a bracket is not closed")
        return inner, after + 1
    if word in {")", "and", "or"}:
        raise _fault(expression, f"'{word}' is not expected")
    return lambda name: word.lower() in name, at + 1


def _fault(expression: str, what: str) -> PerfgateError:
    fix = "write, for one, -k 'gemm and not fp16'"
    return PerfgateError("command-usage", f"-k '{expression}': {what}", fix=fix)


STATISTICS = ("min",)
"""Values of ``stat=``, for a time other than the median."""

_SHARE = re.compile(r"(\d+(?:\.\d+)?)\s*%|(0?\.\d+)", re.ASCII)


def share_of(text: str) -> float | None:
    """Return the fraction of the calls below a quantile: ``99%`` or ``0.99``; ``None`` for another text."""
    match = _SHARE.fullmatch(text.strip())
    if match is None:
        return None
    share = float(match[1]) / 100 if match[1] else float(match[2])
    return share if 0 < share < 1 else None


def check_tail(written: Written, kind: MetricKind, labels: Labels) -> Labels:
    """Return the labels of a time with its quantile in one spelling; raise if it is not a quantile."""
    scope = dict(labels)
    if kind.name != "time" or not scope.keys() & {"q", "stat"}:
        return labels
    start = written.text.index("(")
    span = Span(start=start, end=written.text.index(")", start) + 1)
    if "q" in scope and "stat" in scope:
        raise written.fault("limit-scope", "a quantile and a statistic at once", span, "write two limits")
    if "stat" in scope and scope["stat"] not in STATISTICS:
        fix = "time(stat=min), or a quantile: time(q=99%)"
        raise written.fault("limit-scope", f"no statistic '{scope['stat']}' of a time", span, fix)
    share = share_of(scope.get("q", "50%"))
    if share is None:
        raise written.fault("limit-scope", f"'{scope['q']}' is no part of the calls", span, "write time(q=99%)")
    return tuple((name, f"{share * 100:g}%" if name == "q" else text) for name, text in labels)


_TAIL = re.compile(r"\btime\s*\(([^()]*)\)")


def tails_in(texts: Iterable[str]) -> tuple[Labels, ...]:
    """Return quantiles and statistics of a time that limits name, also within other metrics."""
    return tuple(dict.fromkeys([tail for text in texts for tail in _tails(text)]))


@lru_cache(maxsize=256)
def _tails(text: str) -> tuple[Labels, ...]:
    pieces_of = (piece.partition("=") for scope in _TAIL.findall(text) for piece in scope.split(","))
    named = ((name.strip(), value.strip()) for name, _, value in pieces_of)
    return tuple(_tail(name, value) for name, value in named if name in {"q", "stat"})


def _tail(name: str, value: str) -> Labels:
    share = share_of(value) if name == "q" else None
    return ((name, value if share is None else f"{share * 100:g}%"),)


_WORDS = re.compile(r"[A-Za-z_]\w*", re.ASCII)


def asked_figures(texts: Iterable[str]) -> tuple[str, ...]:
    """Return figures other than time that limits name, in any form."""
    texts = tuple(texts)
    words = {word for text in texts for word in _WORDS.findall(text)}
    tails = (f"{name}={share}" for ((name, share),) in tails_in(texts) if name == "q")
    return (*(name for name in PASSES if name in words), *tails)


_TAKEN = re.compile(
    r"""\.metric\(\s*["']([A-Za-z_][\w.]*)["']"""
    r"""|\bextra_info\[["']([A-Za-z_][\w.]*)["']\]"""
    r"""|\.record\([^()]*\bname=["']([A-Za-z_][\w.]*)["']"""
)


def own_names(source: str) -> frozenset[str]:
    """Return the names of figures in the text of a test file: ``perfgate.metric("loss", ...)``."""
    return frozenset(name for names in _TAKEN.findall(source) for name in names if name)


def own_name(name: str, names: Collection[str]) -> str:
    """Return the test's own figure of this or the most similar name; "" if none is similar."""
    return name if name in names else next(iter(nearest(name, names)), "")


def matches_pattern(nodeid: str, pattern: str) -> bool:
    """Return whether a pattern matches a test; brackets of node ids are literal."""
    return fnmatchcase(nodeid, pattern.replace("[", "[[]"))


def unmatched(tables: Iterable[ConfigPattern], nodeids: Collection[str]) -> list[ConfigPattern]:
    """Return tables whose pattern no node id matches."""
    return [table for table in tables if not any(matches_pattern(nodeid, table.pattern) for nodeid in nodeids)]


COUNTS = frozenset({"count", "executed"})


def no_instruction(limit: Limit, metrics: MetricSet) -> tuple[str, str] | None:
    """Return (fault, what was probably meant) if the limit names an instruction that does not exist."""
    if limit.metric not in COUNTS:
        return None
    from pytest_perfgate.core.analysis.kernels.sass_opcodes import closest, has_instruction, is_pattern, opcode_name

    opcode = opcode_name(limit.labels)
    if not opcode or is_pattern(opcode):
        return None
    opcodes = {dict(m.labels).get("opcode", "") for m in metrics.metrics if m.name == limit.metric} - {""}
    if has_instruction(opcode, opcodes):
        return None
    root, _, modifiers = opcode.partition(".")
    what = f"{root} has no modifiers {modifiers}" if has_instruction(root, opcodes) else f"{root} is not an opcode"
    near = closest(opcode, opcodes)
    return what, f"did you mean {either(near)}?" if near else "perfgate inspect FILE --view mix shows those there are"


_OPEN = {"ncu": ("metric", "--metrics"), "rocprof": ("counter", "--pmc")}
"""Metrics for any counter: the scope that names it, and the profiler's option that collects it."""


def not_in_the_report(limit: Limit, metrics: MetricSet) -> Absent | None:
    """Return why a counter is absent, if only its name matches nothing and the scope is otherwise right."""
    label, option = _OPEN.get(limit.metric, ("", ""))
    value = dict(limit.labels).get(label)
    if value is None or metrics.find(limit.metric, ((label, value),)):
        return None
    return Absent(name=limit.metric, why=f"{value} is not in the report", fix=f"collect it with {option} {value}")
