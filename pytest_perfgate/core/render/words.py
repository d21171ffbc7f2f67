"""Numbers, plurals and durations as text, and the lines on what a change does to its own gate."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from pytest_perfgate.model.errors import SHOWING, fault_sentence
from pytest_perfgate.model.plan import CHANGES, LEAST, CaseKey, Compare, Effect, Limit, Outcome
from pytest_perfgate.model.values import UNITS, Dimension, regex, value

if TYPE_CHECKING:
    from pytest_perfgate.model.metric import Figure, Metric
    from pytest_perfgate.model.verdict import CaseReport, SuiteNote, Verdict

_DECIMAL = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))
_BINARY = ((2.0**40, "TiB"), (2.0**30, "GiB"), (2.0**20, "MiB"), (2.0**10, "KiB"), (1.0, "B"))
_TIMES = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns"))
_ENERGIES = ((1e3, "kJ"), (1.0, "J"), (1e-3, "mJ"), (1e-6, "µJ"))

_SUFFIX = {
    Dimension.BANDWIDTH: "B/s",
    Dimension.FLOPS: "FLOPS",
    Dimension.WORK: "FLOP",
    Dimension.RATE: "/s",
    Dimension.CLOCK: "Hz",
    Dimension.POWER: "W",
}
_TAILS = {Dimension.FRACTION: " %", Dimension.RATIO: "x", Dimension.TEMPERATURE: " °C", Dimension.INTENSITY: " FLOP/B"}

_STEPS: Mapping[Dimension, Sequence[tuple[float, str]]] = {
    Dimension.TIME: _TIMES,
    Dimension.BYTES: _BINARY,
    Dimension.ENERGY: _ENERGIES,
    **{of: tuple((step, prefix + unit) for step, prefix in _DECIMAL) for of, unit in _SUFFIX.items()},
}

T = TypeVar("T")

ABSENT = "not collected"

_FAR, _TENFOLD = 100.0, 10.0
_UNREAD, _FINE = 1e21, 1e-6
"""The change from which digits are no longer shown, and the plain number below which an exponent keeps them."""

_KEPT = regex(r"(?<![\w.])([0-9][0-9._]*)\s*([kKMGT]?B|FLOP|[MGTP]?[a-z][a-z_-]+/s|[kMGTP]?OPS)\Z")
"""Units that a bound keeps: single bytes and operations, decimal bytes, items of a user, operations on integers."""


def bound_text(limit: Limit) -> str:
    """Return the bound of a limit as shown beside its figure; a bound of a change has a sign."""
    if limit.metric in CHANGES or limit.compare is Compare.RELATIVE:
        return exact_change(limit.bound)
    written = _KEPT.search(limit.text) if limit.compare is Compare.FIGURE else None
    return f"{written[1].replace('_', ',')} {written[2]}" if written else quantity(limit.bound, limit.dimension)


def quantity(number: float | None, dimension: Dimension, digits: int = 4, noun: str = "") -> str:
    """Return a number with a readable unit; ``None`` and NaN become "not collected"."""
    # The ``noun`` of a rate is what it counts: ``tokens/s``, or ``OPS`` of integers. A number may bring its own.
    if number is None or math.isnan(number):
        return ABSENT
    if math.isinf(number):
        return "inf" if number > 0 else "-inf"
    if dimension in _TAILS:
        return f"{significant(number * 100 if dimension is Dimension.FRACTION else number, digits)}{_TAILS[dimension]}"
    if dimension is Dimension.COUNT:
        whole = float(number).is_integer() and abs(number) < _UNREAD
        return f"{number:,.0f}" if whole else significant(number, digits)
    return _scaled(number, dimension, digits, noun or getattr(number, "noun", ""))


def value_text(figure: Metric | Figure, noun: str = "", limit: Limit | None = None, end: float = math.nan) -> str:
    """Return a figure, or an ``end`` of its interval: a rate names what it counts, sizes are in the limit's unit."""
    number = figure.value if math.isnan(end) else end
    if getattr(figure, "name", "") in CHANGES:
        return signed(number)
    sized = limit is not None and figure.dimension is limit.dimension in {Dimension.BYTES, Dimension.WORK}
    if limit is not None and sized and (written := _KEPT.search(limit.text)):
        return f"{significant(number / UNITS[figure.dimension][written[2]])} {written[2]}"
    return quantity(number, figure.dimension, noun=noun or getattr(figure, "noun", ""))


def signed(number: float, digits: int = 2) -> str:
    """Return a relative change, such as ``+7.9 %`` or ``+1,859 %``; beyond a hundredfold, only that."""
    if number >= _FAR:
        return "over 10,000 %"
    places = digits - 1 if number < _TENFOLD else 0
    return f"{round(number * 100, places) + 0.0:+,.{places}f} %"


def exact_change(number: float) -> str:
    """Return a change that is no measurement, such as a limit or a tick of an axis: ``+25 %``, ``0 %``."""
    return f"{'+' if number > 0 else ''}{quantity(number, Dimension.FRACTION)}"


def change_text(moved: float, limit: Limit, dimension: Dimension | None = None) -> str:
    """Return a change as its limit is written: ``+1.6 %``, ``-2.4 pp``, ``+2``, ``+16 B``."""
    if not moved:
        return "0"
    if math.isinf(moved):
        return "up from 0" if moved > 0 else "down from 0"
    if limit.compare is Compare.RELATIVE:
        return signed(moved)
    of = dimension or limit.dimension
    if of is Dimension.FRACTION:
        return f"{moved * 100:+.3g} pp"
    return f"{'+' if moved >= 0 else ''}{quantity(moved, of)}"


def figure_text(then: Figure, metric: Metric | None) -> str:
    """Return ``128 -> 130``, or ``128 -> gone``."""
    now = value_text(metric) if metric is not None else "gone"
    return f"{value_text(then, metric.noun if metric else '')} -> {now}"


@value
class FigureLevel:
    """The figure of a series: the time itself, or an accepted figure."""

    title: str = ""
    dimension: Dimension = Dimension.TIME
    raised: float = 0.0
    """The offset that was added to each number, since 0 has no logarithm."""
    sign: float = 1.0
    """-1 if more is better."""
    exact: bool = False

    def text(self, level: float, digits: int = 4) -> str:
        return quantity(level - self.raised, self.dimension, digits)

    def are_integers(self, levels: Iterable[float]) -> bool:
        """Return whether all are counts without a fraction; a user's own number is a count to its tool."""
        return self.dimension is Dimension.COUNT and not any(round(level - self.raised, 9) % 1 for level in levels)

    def step(self, then: float, now: float) -> str:
        """Return a change: of a percentage in pp, of what may be 0 as an amount, else as a share."""
        if self.dimension is Dimension.FRACTION:
            return f"{(now - then) * 100:+.1f} pp"
        return f"{self.text(then)} -> {self.text(now)}" if self.raised and now != then else signed(now / then - 1)

    def best(self, levels: Iterable[float]) -> float:
        return min(levels, key=lambda level: self.sign * level)

    def ahead(self, level: float, best: float, by: float) -> bool:
        """Return whether a level is better than the best one before it, by this share."""
        return self.sign * (level - best) < -(0.0 if self.exact else by) * best


TIMES = FigureLevel()

OWN_TEST, BUILDS = "test", "builds"
"""The evidence that the base ran another version of the test, and what else both builds share."""


def figure_note(verdict: Verdict) -> str:
    """Return ``(128 -> 130)`` for a gated figure, without an accepted value only its value; or what is not compared."""
    if any(name == OWN_TEST for name, _ in verdict.evidence):
        return " (test or fixture differs in the base)"
    if verdict.metric is None and verdict.outcome is Outcome.PASSED and verdict.limit.metric == "slowdown":
        return f" (not compared: same {'package' if any(name == BUILDS for name, _ in verdict.evidence) else 'code'})"
    if verdict.figure is None and verdict.metric is not None and verdict.metric.name not in {"time", "slowdown"}:
        return f" ({value_text(verdict.metric, limit=verdict.limit)})"
    return f" ({figure_text(verdict.figure, verdict.metric)})" if verdict.figure is not None else ""


def change_of(verdict: Verdict) -> str:
    """Return the change of a gated figure as its limit is written; "" if it did not change, or is absent."""
    if verdict.figure is None or verdict.metric is None:
        return ""
    moved = verdict.limit.change(verdict.metric.value, verdict.figure.value)
    text = change_text(moved, verdict.limit, verdict.metric.dimension)
    return "" if text == "0" else text


def detectable(visible: float) -> str:
    """Return the smallest slowdown that could be detected, without a sign: it is a size."""
    return signed(visible, 2 if visible < 1 else 1).removeprefix("+")


def significant(number: float, digits: int = 4) -> str:
    """Return fixed notation with so many significant digits; an exponent only for many zeros."""
    if number == 0:
        return "0"
    if abs(number) >= _UNREAD:
        return f"{number:.{digits - 1}e}"
    places = min(9, max(0, digits - 1 - math.floor(math.log10(abs(number)))))
    text = f"{round(number, places) + 0.0:,.{places}f}"  # adding takes the sign from a zero
    return text.rstrip("0").rstrip(".") if "." in text else text


def _scaled(number: float, dimension: Dimension, digits: int, noun: str) -> str:
    steps = _STEPS.get(dimension)
    if steps is None:  # an error of 2e-12 would read 0
        return f"{number:.{digits}g}" if 0 < abs(number) < _FINE else significant(number, digits)
    # The unit is that of the rounded figure: 999,999.9 ns reads 1 ms, not 1,000 µs.
    rounded = max(abs(number), float(f"{abs(number):.{digits - 1}e}"))
    step, unit = steps[-1]
    for pair in steps:  # a loop, since a run may write thousands of figures
        if rounded >= pair[0] and not (noun and pair[1] == "k/s"):  # ktokens/s could be a rate of ktokens
            step, unit = pair
            break
    unit = unit.removesuffix(_SUFFIX[dimension]) + noun if noun else unit
    return f"{significant(number / step, digits)} {unit}"


def plural(count: int, noun: str, several: str = "") -> str:
    """Return ``1 case``, ``2,000 cases``; ``several`` is an irregular plural."""
    return f"{count:,} {noun if count == 1 else several or noun + 's'}"


def distinct_names(paths: Sequence[str]) -> tuple[str, ...]:
    """Return the names of files, with as many folders as needed to distinguish equal names."""
    parts = [path.replace("\\", "/").split("/") for path in paths]
    for depth in range(1, max(map(len, parts), default=0) + 1):
        names = tuple("/".join(part[-depth:]) for part in parts)
        if len(set(names)) == len(set(paths)):
            return names
    return tuple(paths)


def pair_of_names(before: Sequence[str], after: Sequence[str], between: str = " against ") -> str:
    """Return ``one/a.json against two/a.json``: the files of two sides, distinguished."""
    names = distinct_names([*before, *after])
    return between.join((", ".join(names[: len(before)]), ", ".join(names[len(before) :])))


def by_floor(limit: str, raised: float | None) -> str:
    """Return the limit, and the value to which the floor raised it, if it did."""
    return f"{limit} (the floor raised it to {exact_change(raised)})" if raised is not None else limit


def span(amount: float) -> str:
    """Return ``1 min 10 s`` for seconds."""
    if amount < 1:
        return "under 1 s"
    whole = round(amount)
    hours, minutes, seconds = whole // 3600, whole // 60 % 60, whole % 60
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {seconds} s" if minutes else f"{seconds} s"


def about(amount: float) -> str:
    """Return an estimate: ``about 1 min 10 s``, or ``under 1 s``."""
    return span(amount) if amount < 1 else f"about {span(amount)}"


NEAR = str.maketrans(
    {"µ": "u", "μ": "u", "°": "", "×": "x", "·": "-", "–": "-", "−": "-", "…": "...", "≤": "<=", "≥": ">=", "→": "->"}
)


def writable(text: str, encoding: str | None) -> str:
    """Return the text in characters of the encoding; others become similar ones, or escapes."""
    known = encoding or "utf-8"
    try:
        text.encode(known)
    except UnicodeEncodeError:
        return text.translate(NEAR).encode(known, "backslashreplace").decode(known)
    except LookupError:
        pass
    return text


def short_name(key: CaseKey) -> str:
    """Return a test's name for readers who know its file."""
    return printable(key.test or str(key))


def printable(text: str) -> str:
    """Return text without characters that move a terminal's cursor."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def edges(metric: Metric, *, change: bool, why: str = "", limit: Limit | None = None, decided: bool = False) -> str:
    """Return ``[371.4 µs, 424 µs]``, for a change ``[+7.1, +8.6]``; "" without one; a ``decided`` one may be wide."""
    if metric.interval is None:
        return ""
    if not decided and is_too_wide(metric, change=change):
        return f"[too wide to say{': ' if why else ''}{why}]"
    ends = (value_text(metric, limit=limit, end=end) for end in (metric.low, metric.high))
    return f"[{', '.join((signed(end).removesuffix(' %') for end in (metric.low, metric.high)) if change else ends)}]"


def few_rounds(verdict: Verdict) -> str:
    """Return ``1 of 7 rounds`` if those of two builds are too few for an interval, else ""."""
    few = 0 < verdict.rounds < LEAST and verdict.figure is None and verdict.outcome is Outcome.UNDECIDED
    return f"{verdict.rounds} of {LEAST} rounds" if few else ""


def of_builds(verdict: Verdict) -> str:
    """Return ``, two builds`` for a slowdown that two builds measured in turns, else ""."""
    return ", two builds" if verdict.rounds and verdict.limit.metric == "slowdown" else ""


def builds_note(cases: Iterable[CaseReport]) -> str:
    """Return the explanation of the two times beside such a slowdown, if there is one; else ""."""
    if not any(of_builds(verdict) for case in cases for verdict in case.verdicts):
        return ""
    return (
        "A value of two builds compares base and head in turns. It does not follow from the two times beside it: then "
        "is the accepted time, or that of the base, and now is the time of this run."
    )


def is_too_wide(metric: Metric, *, change: bool) -> bool:
    """Return whether the interval is wider than ten times either way, as of two processes that disagree."""
    base = 1.0 if change else 0.0
    value, low, high = (base + number for number in (metric.value, metric.low, metric.high))
    return value > 0 and high >= _TENFOLD * value and low <= value / _TENFOLD


def shown(render: Callable[[], T], instead: Callable[[str], T]) -> T:
    """Return what a renderer makes, or if it fails, what ``instead`` makes of the error."""
    try:
        return render()
    except Exception as fault:  # noqa: BLE001 - on any error, the others are still shown
        return instead(fault_sentence(fault, "showed this", SHOWING))


UNBUILT, NO_LINE, IN_TURNS = "no verdict by base and head", "no accepted time", "far in turns"
"""Kinds of notes, and of facts: no base or head could be built, a case has no line, both builds took far longer."""

HEADING = "this change edits its own gate"

EDITS: Mapping[str, str] = {
    "limits": "limit or mark",
    "settings": "setting",
    "loosened": "slower line",
    "widened": "weaker line",
    "renamed": "replaced line",
    "taken away": "removed line",
    "uprooted": "moved project",
    "removed": "removed test",
    "newly marked": "deselected",
    "reworked": "edited test",
    "borrowed": "fixture, hook, data",
    "binary": "hidden code",
    "committed": "committed file",
}
"""Kinds of notes on what a change edits, with the first word of their lines, by importance."""

_EFFECTS: Mapping[str, str] = {"quick": "quick mode", "left out": "not measured", "commanded": "option"}
"""Notes that a run can have without such an edit; they are listed beside edits, and never fail it."""


def own_gate_lines(reports: Iterable[CaseReport], notes: Sequence[SuiteNote]) -> tuple[tuple[str, str], ...]:
    """Return a word and a text for each edit; empty if the change leaves its gate alone."""
    cases = tuple(reports)
    edits = (*edit_lines(notes), *_accepted(cases))
    return (*edits, *_excused(cases), *_lines(notes, _EFFECTS)) if edits else ()


def edit_lines(notes: Sequence[SuiteNote]) -> tuple[tuple[str, str], ...]:
    """Return the edits of the notes alone: a line accepted with a reason is the regular way to allow a slower time."""
    return tuple(_lines(notes, EDITS))


def note_word(note: SuiteNote) -> str:
    """Return the effect of a note as its first word; "" if the note begins with ``passed``."""
    return "" if note.text.startswith(Outcome.PASSED.value) else note.effect.value


def other_notes(reports: Iterable[CaseReport], notes: Sequence[SuiteNote]) -> tuple[SuiteNote, ...]:
    """Return the notes that are not in that list, those that fail the run first."""
    listed = {*EDITS, *_EFFECTS} if own_gate_lines(reports, notes) else set()
    ordered = sorted(notes, key=lambda note: note.effect is not Effect.FAIL)
    return tuple(note for note in ordered if note.kind not in listed or note.effect is Effect.PASS)


def _lines(notes: Sequence[SuiteNote], kinds: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for kind, word in kinds.items():
        for note in notes:
            if note.kind == kind and note.effect is not Effect.PASS:
                yield from ((word, text) for text in note.names or (note.text,))


def _accepted(reports: Sequence[CaseReport]) -> Iterator[tuple[str, str]]:
    for report in reports:
        for verdict in report.verdicts:
            if verdict.outcome is Outcome.ACCEPTED:
                yield "accepted line", f"{report.key}  {verdict.limit.text}: {verdict.sentence}"


def _excused(reports: Sequence[CaseReport]) -> Iterator[tuple[str, str]]:
    from pytest_perfgate.model.verdict import Excuse

    for report in reports:
        if report.excuse is Excuse.EXPECTED_TO_FAIL:
            yield "xfail hides", f"{report.worst.value}: {report.key}"


def display_width(text: str) -> int:
    """Return the columns of a text in a terminal; wide characters take two, combining ones none."""
    if text.isascii() or max(text) < "\u0300":  # the first of these characters
        return len(text)
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text if not unicodedata.combining(c))
