"""A calibration as a document."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_perfgate.core.gate.calibration import Calibration, Rate
from pytest_perfgate.core.gate.rounds import Design
from pytest_perfgate.core.render.quantity import signed
from pytest_perfgate.core.render.spans import span
from pytest_perfgate.core.render.svg import MARK, OTHER, SOFT, Axis, Frame, dot, line, picture, words
from pytest_perfgate.model.document import Block, Column, Document, Paragraph, Picture, Table
from pytest_perfgate.model.quantity import Dimension


def calibration_document(found: Calibration) -> Document:
    """Rates with their bounds, the power curve, and a limit for each test."""
    alarms = (
        f"{_rate(found.alarms)} of suites of this project's {found.tests} tests alarm on unchanged code, at "
        f"{signed(found.limit)}; {_rate(found.undecided)} of verdicts stay undecided; "
        f"{found.processes:.1f} processes a side on average{_cost(found)}."
    )
    source = (
        f"Suites are resampled from {found.rounds} rounds with the same code on both sides; slowdowns scale the times "
        "of one side. The bounds count resampled suites, which repeat one another the more, the fewer rounds there "
        "are: other days may differ by more."
    )
    power = Table(
        title="Slowdowns that are convicted",
        columns=(Column(name="slowdown"), Column(name="seen"), Column(name="bounds")),
        rows=tuple((signed(by), f"{rate.rate:.1%}", _bounds(rate)) for by, rate in found.power),
    )
    fraction = Dimension.FRACTION
    own = Table(
        title="Tests",
        columns=(
            Column(name="test"),
            Column(name="own shift, 99 %", dimension=fraction, digits=2, absent="-"),
            Column(name="limit that suits", dimension=fraction, digits=2, absent="-"),
            Column(name="rounds that show it", dimension=Dimension.COUNT, absent="-"),
        ),
        rows=found.own,
    )
    said: tuple[Block, ...] = (Paragraph(text=alarms), Paragraph(text=source), power, *_injected(found), curve(found))
    return Document(title="Calibration", blocks=(*said, Paragraph(text=_advice(found)), own))


def _cost(found: Calibration) -> str:
    return f"; {span(found.seconds)} a run" if found.seconds else ""


def _injected(found: Calibration) -> tuple[Table, ...]:
    """Slowdowns that were really there, beside those that only scale times."""
    if not found.injected:
        return ()
    rows = tuple(
        (signed(one.by), signed(one.found), one.rounds, f"{one.seen.rate:.1%}", _bounds(one.seen))
        for one in found.injected
    )
    columns = (
        Column(name="injected"),
        Column(name="measured"),
        Column(name="rounds", dimension=Dimension.COUNT, absent="-"),
        Column(name="seen"),
        Column(name="bounds"),
    )
    return (Table(title="Slowdowns that were injected: one side was kept busy", columns=columns, rows=rows),)


def _advice(found: Calibration) -> str:
    """The limit and the rounds to write down."""
    rounds = max((rounds for *_, rounds in found.own), default=0)
    text = f'"slowdown <= {found.suits:.0%}" suits all tests here'
    return f"{text}; --perfgate-rounds={rounds} surely shows it in each." if rounds > Design().most else f"{text}."


def curve(found: Calibration) -> Picture:
    """How surely a slowdown is seen: where times were scaled, and where one side was really kept busy."""
    scaled = [(0.0, found.alarms), *found.power]
    real = [(one.found, one.seen) for one in found.injected]
    frame = Frame(
        x=Axis(low=-0.002, high=1.05 * max(by for by, _ in (*scaled, *real)), label="slowdown", text="{:.0%}".format),
        y=Axis(low=0, high=1.04, label="convicted", text="{:.0%}".format),
        top=34,
    )
    across, _ = frame.at(found.limit, 0)
    marks = [
        line(frame, [(found.limit, 0), (found.limit, 1.04)], colour=SOFT, dash="5 4"),
        words(across + 5, frame.top + 30, f"limit {found.limit:.1%}", colour=SOFT),
        line(frame, [(by, rate.rate) for by, rate in scaled]),
        *_points(frame, scaled, MARK),
        *_points(frame, real, OTHER),
        *_legend(frame, found),
    ]
    alt = f"power: {', '.join(f'{signed(by)} {rate.rate:.0%}' for by, rate in found.power)}"
    return Picture(svg=picture(frame, marks, alt), alt=alt)


def _points(frame: Frame, points: Sequence[tuple[float, Rate]], colour: str) -> list[str]:
    """Each with its bounds, and the figures for whoever points at it."""
    bands = [line(frame, [(by, r.bounds.low), (by, r.bounds.high)], colour=colour) for by, r in points]
    dots = [dot(frame, by, r.rate, title=f"{signed(by)}: {_rate(r)}", colour=colour) for by, r in points]
    return [*bands, *dots]


def _legend(frame: Frame, found: Calibration) -> list[str]:
    kinds = [("times scaled", MARK), *([("one side kept busy", OTHER)] if found.injected else [])]
    said = words(frame.left, 18, f"Slowdowns that are convicted; rounds: {found.rounds}")
    named = [
        words(frame.left + 330 + 110 * at, 18, f"● {kind}", colour=colour) for at, (kind, colour) in enumerate(kinds)
    ]
    return [said, *named]


def calibration_facts(found: Calibration) -> dict[str, object]:
    """All of it by name, rates with their bounds: for programs."""
    return {
        "limit": found.limit,
        "rounds": found.rounds,
        "alarms": _facts(found.alarms),
        "undecided": _facts(found.undecided),
        "processes": found.processes,
        "seconds": found.seconds,
        "power": [{"by": by, "seen": _facts(rate)} for by, rate in found.power],
        "injected": [
            {"by": one.by, "found": one.found, "rounds": one.rounds, "seen": _facts(one.seen)} for one in found.injected
        ],
        "suits": found.suits,
        "tests": [
            {"test": name, "own_shift": own, "limit": limit, "rounds": rounds} for name, own, limit, rounds in found.own
        ],
    }


def _facts(rate: Rate) -> dict[str, float]:
    return {
        "hits": rate.hits,
        "count": rate.count,
        "rate": rate.rate,
        "low": rate.bounds.low,
        "high": rate.bounds.high,
    }


def _rate(rate: Rate) -> str:
    return f"{rate.rate:.1%} ({rate.hits}/{rate.count}, {_bounds(rate)})"


def _bounds(rate: Rate) -> str:
    return f"{rate.bounds.low:.1%} to {rate.bounds.high:.1%}"
