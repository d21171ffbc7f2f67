"""Tables of documents as CSV files, every row, numbers as they are inside."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from pytest_perfgate.model.document import Block, Document, Section, Table
from pytest_perfgate.model.refusals import written


def write_tables(folder: Path, documents: Mapping[str, Document]) -> tuple[Path, ...]:
    """One file a table, named after its view and title; the files written."""
    folder.mkdir(parents=True, exist_ok=True)
    files: dict[Path, None] = {}
    for view, document in documents.items():
        for table in tables_of(document.blocks):
            title = re.sub(r"[^\w.-]+", "_", table.title).strip("_").lower()
            stem = f"{view}_{title}".rstrip("_")
            path = folder / f"{stem}.csv"
            number = 2
            while path in files:
                path, number = folder / f"{stem}_{number}.csv", number + 1
            _write(path, table)
            files[path] = None
    return tuple(files)


def tables_of(blocks: Sequence[Block]) -> Iterator[Table]:
    """Every table of a document, sections included."""
    for block in blocks:
        if isinstance(block, Table):
            yield block
        elif isinstance(block, Section):
            yield from tables_of(block.blocks)


def _write(path: Path, table: Table) -> None:
    with written(str(path)), path.open("w", encoding="utf-8", newline="") as out:
        writer = csv.writer(out)
        writer.writerow([column.name for column in table.columns])
        writer.writerows(table.rows)
