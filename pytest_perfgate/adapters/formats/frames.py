"""Tables as pandas frames: the face for people and notebooks, never the engine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Union

from pytest_perfgate.model.analysis import Analysis
from pytest_perfgate.model.document import Block, Document, Section, Table
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.metric import MetricSet


def frame(source: Union[Analysis, Document, Table, MetricSet], view: str = "") -> Any:
    """One table as a frame: of an analysis, the first of the named view, or its metrics where none is named.

    Times are nanoseconds, fractions 0 to 1, as everywhere inside.
    """
    import pandas as pd

    if isinstance(source, Analysis) and not view:
        source = source.metrics
    if isinstance(source, MetricSet):
        return pd.DataFrame([{"metric": m.name, "value": m.value, **dict(m.labels)} for m in source.metrics])
    if isinstance(source, Table):
        return _framed(source)
    found = frames(source, view)
    if not found:
        raise ValueError("the document has no table")
    return next(iter(found.values()))


def frames(source: Union[Analysis, Document], view: str = "") -> dict[str, Any]:
    """Every table of a document, or of one view of an analysis, by its title."""
    document = _viewed(source, view) if isinstance(source, Analysis) else source
    made: dict[str, Any] = {}
    for title, table in _tables(document.blocks, document.title):
        name = title
        while name in made:
            name += "'"
        made[name] = _framed(table)
    return made


def _viewed(analysis: Analysis, view: str) -> Document:
    name = view or next(iter(analysis.views))
    if name not in analysis.views:
        there = ", ".join(analysis.views)
        raise PerfgateError("view-unknown", f"a {analysis.kind} file has no view '{name}'", mend=f"one of: {there}")
    return analysis.views[name]()


def _framed(table: Table) -> Any:
    import pandas as pd

    return pd.DataFrame(list(table.rows), columns=[column.name for column in table.columns])


def _tables(blocks: Sequence[Block], title: str) -> Iterator[tuple[str, Table]]:
    for block in blocks:
        if isinstance(block, Table):
            yield block.title or title, block
        elif isinstance(block, Section):
            yield from _tables(block.blocks, block.title)
