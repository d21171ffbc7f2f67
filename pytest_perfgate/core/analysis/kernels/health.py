"""The health table: which figure of a kernel is as it should be, and what it means where it is not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pytest_perfgate.core.analysis.kernels.diagnosis import Diagnosis
from pytest_perfgate.core.render.quantity import quantity
from pytest_perfgate.model.document import Column, Document, Section, Table
from pytest_perfgate.model.quantity import Dimension
from pytest_perfgate.model.values import value


@value
class Health:
    """A metric, the bound that it is healthy over (or, for spills, at), and what it means where it is not."""

    name: str
    dimension: Dimension
    bound: float
    otherwise: str
    at_bound: bool = False

    def keeps(self, number: float) -> bool:
        return number <= self.bound if self.at_bound else number > self.bound

    @property
    def words(self) -> str:
        return f"{'' if self.at_bound else 'over '}{quantity(self.bound, self.dimension)}"


def _over(name: str, bound: float, otherwise: str, dimension: Dimension = Dimension.FRACTION) -> Health:
    return Health(name=name, dimension=dimension, bound=bound, otherwise=otherwise)


HEALTH: tuple[Health, ...] = (
    _over("tc_util", 0.60, "memory- or latency-bound: look at dram and occupancy"),
    _over("dram", 0.70, "compute- or latency-bound: look at tc_util and occupancy"),
    _over("occupancy", 0.25, "registers or shared memory hold it down"),
    _over("l2_hit", 0.80, "little reuse: swizzle, tiles, layout"),
    Health(
        name="spills",
        dimension=Dimension.BYTES,
        bound=0.0,
        otherwise="smaller tiles, fewer accumulators",
        at_bound=True,
    ),
    _over("waves", 1.0, "more blocks", Dimension.PLAIN),
)
"""Healthy is more than bound: DRAM binds from 60 % on, and is used well from 70 %."""
_SIDES = frozenset({"tc_util", "dram"})
"""A kernel is bound on one side: only both under their bounds say that something is wrong."""


def unhealthy(numbers: Mapping[str, float]) -> Iterator[tuple[Health, float]]:
    """What should be looked at; one busy side excuses the other, and what was not collected is not judged."""
    bad = [(row, numbers[row.name]) for row in HEALTH if row.name in numbers and not row.keeps(numbers[row.name])]
    excused = any(row.name in numbers and row.keeps(numbers[row.name]) for row in HEALTH if row.name in _SIDES)
    return ((row, number) for row, number in bad if not (excused and row.name in _SIDES))


def health_sentence(row: Health, number: float) -> str:
    return f"{row.name} {quantity(number, row.dimension, 3)} (healthy: {row.words}): {row.otherwise}"


def health_view(diagnoses: Sequence[Diagnosis], title: str) -> Document:
    """Every kernel against the table."""
    columns = tuple(Column(name=name) for name in ("metric", "value", "healthy", "if not"))
    return Document(
        title=f"{title}: health",
        blocks=tuple(
            Section(title=d.name, blocks=(Table(columns=columns, rows=tuple(_rows(d.numbers))),)) for d in diagnoses
        ),
    )


def _rows(numbers: Mapping[str, float]) -> Iterator[tuple[str, str, str, str]]:
    bad = {row.name for row, _ in unhealthy(numbers)}
    for row in HEALTH:
        number = numbers.get(row.name)
        said = "the other side binds" if row.name not in bad else row.otherwise
        if number is None or row.keeps(number):
            said = "" if number is None else "healthy"
        yield row.name, quantity(number, row.dimension, 3), row.words, said
