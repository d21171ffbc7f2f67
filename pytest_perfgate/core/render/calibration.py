"""A calibration as a document."""

from __future__ import annotations

from pytest_perfgate.core.gate.calibration import Calibration, Rate
from pytest_perfgate.core.gate.rounds import Design
from pytest_perfgate.core.render.quantity import signed
from pytest_perfgate.core.render.spans import span
from pytest_perfgate.core.render.svg import SOFT, Axis, Frame, dot, line, picture
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
        f"Suites are resampled from {found.rounds} rounds with the same code on both sides; "
        "slowdowns scale the times of one side."
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
            Column(name="own shift, 99 %", dimension=fraction, digits=2),
            Column(name="limit that suits", dimension=fraction, digits=2),
            Column(name="rounds that show it", dimension=Dimension.COUNT),
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
        Column(name="rounds", dimension=Dimension.COUNT),
        Column(name="seen"),
        Column(name="bounds"),
    )
    return (Table(title="Slowdowns that were injected: one side was kept busy", columns=columns, rows=rows),)


def _advice(found: Calibration) -> str:
    """The limit and the rounds to write down."""
    rounds = max((rounds for *_, rounds in found.own), default=0)
    text = f'"slowdown <= {found.suits:.0%}" suits all tests here'
    return f"{text}; --perfgate-rounds={rounds} surely shows it in each." if rounds > Design().confirm else f"{text}."


def curve(found: Calibration) -> Picture:
    """How surely a slowdown is seen."""
    points = [(0.0, found.alarms.rate), *((by, rate.rate) for by, rate in found.power)]
    frame = Frame(
        x=Axis(low=0, high=points[-1][0], label="slowdown", text="{:.0%}".format),
        y=Axis(low=0, high=1, label="convicted", text="{:.0%}".format),
    )
    real = [dot(frame, one.by, one.seen.rate, colour=SOFT) for one in found.injected]
    bands = [line(frame, [(by, r.bounds.low), (by, r.bounds.high)], colour=SOFT) for by, r in found.power]
    alt = f"power: {', '.join(f'{signed(by)} {rate.rate:.0%}' for by, rate in found.power)}"
    return Picture(
        svg=picture(frame, [line(frame, points), *bands, *real, *(dot(frame, *point) for point in points)], alt),
        alt=alt,
    )


def _rate(rate: Rate) -> str:
    return f"{rate.rate:.1%} ({rate.hits}/{rate.count}, {_bounds(rate)})"


def _bounds(rate: Rate) -> str:
    return f"{rate.bounds.low:.1%} to {rate.bounds.high:.1%}"
