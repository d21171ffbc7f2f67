"""Where an export comes from and which of its tables have rows."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from pytest_perfgate.adapters.readers.nsys import tables
from pytest_perfgate.adapters.readers.nsys.connection import NEVER_NULL, Connection
from pytest_perfgate.adapters.readers.nsys.layout import lacking
from pytest_perfgate.model.nsys import ExportFacts

_LISTED = (tables.KERNELS, tables.RANGES, tables.RUNTIME, tables.COPIES, tables.MEMSETS, tables.GRAPHS)


def read_facts(db: Connection) -> ExportFacts:
    """Versions, devices and filled tables; no table is counted that is not small."""
    meta = _metadata(db)
    filled = tuple(t for t in _LISTED if db.has(t) and db.rows(f"SELECT 1 FROM {db.source(t)} LIMIT 1"))
    graphs = db.rows(f"SELECT count(*) FROM {db.source(tables.GRAPHS)}")[0][0] if tables.GRAPHS in filled else 0
    return ExportFacts(
        path=str(db.path),
        product=meta.get("EXPORT_PRODUCT_VERSION", ""),
        schema=meta.get("EXPORT_SCHEMA_VERSION", ""),
        gpus=_gpus(db),
        tables=filled,
        graphs=int(graphs),
        lacking=lacking(db, filled),
        untimed=tuple(_untimed(db, filled)),
    )


def _untimed(db: Connection, filled: Collection[str]) -> Iterator[tuple[str, int]]:
    """Rows of what ran on a device that have no start or no end, by table; they are in no figure."""
    for table in (tables.KERNELS, tables.COPIES, tables.MEMSETS):
        kinds = db.columns(table)
        timed = {"start", "end"} <= kinds.keys()
        if table in filled and timed and not all(kinds[name].endswith(NEVER_NULL) for name in ("start", "end")):
            count = int(db.rows(f"SELECT count(*) FROM {db.source(table)} WHERE NOT ({tables.TIMED})")[0][0])
            if count:
                yield table, count


def _metadata(db: Connection) -> dict[str, str]:
    wanted = "('EXPORT_PRODUCT_VERSION', 'EXPORT_SCHEMA_VERSION')"
    for table in tables.METADATA:
        if {"name", "value"} <= db.columns(table).keys():
            rows = db.rows(f"SELECT name, value FROM {db.source(table)} WHERE name IN {wanted} AND value IS NOT NULL")
            return {str(name): str(text) for name, text in rows}
    return {}


def _gpus(db: Connection) -> tuple[tuple[int, str], ...]:
    """Names by the number that kernels go by, as NVIDIA's own reports join them: not always CUDA's."""
    for table in tables.GPUS:
        have = db.columns(table)
        numbers = [name for name in ("id", "deviceId", "cuDevice") if name in have]
        if "name" in have and numbers:
            device = ", ".join([*numbers, "NULL"])
            rows = db.rows(f"SELECT coalesce({device}), name FROM {db.source(table)} WHERE name IS NOT NULL ORDER BY 1")
            return tuple((int(index), str(name)) for index, name in rows if index is not None)
    return ()
