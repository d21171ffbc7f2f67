"""Whether an export has the tables and columns that figures are made of; what it is where it has not."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pytest_perfgate.adapters.readers.nsys import tables
from pytest_perfgate.model.errors import PerfgateError

if TYPE_CHECKING:
    from pytest_perfgate.adapters.readers.nsys.connection import Connection

_ROCPD = "rocpd_"
"""How the tables begin that rocprofv3 writes by default."""
_RPD = "rocpd_op"
_OTHER_TOOL = "its tables begin like those of rocprofv3 and mean other things"
_V3 = "profile again: rocprofv3 --kernel-trace --output-format csv -- PROGRAM"
_NVPROF = "CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL"
_WHOLE = "export all tables: nsys export --type=sqlite, without --tables"
_MOST_STRINGS = (1 << 32) - 1
_ALWAYS = {tables.STRINGS: ("id", "value"), tables.KERNELS: ("start", "end")}


def check_export(db: Connection) -> None:
    """Another program's file is an error that says what it is, as far as its tables do."""
    if db.has(tables.STRINGS):
        return
    place, what, mend = str(db.path), f"an SQLite file without the table {tables.STRINGS}", ""
    held = [table for table in tables.NEEDED if db.has(table)]
    if db.has(_RPD):
        what = "a database of rocmProfileData, which is not read"
        raise PerfgateError("rocprof-csv", what, why=_OTHER_TOOL, mend=_V3, place=place)
    if db.begins(_ROCPD):
        mend = f"rocpd convert -i {db.path.name} --output-format csv, and name the folder that it writes"
        raise PerfgateError("rocprof-csv", "a database of rocprofv3, which is read as CSV", place=place, mend=mend)
    if db.has(_NVPROF):
        what, mend = "a database of nvprof, which nsys has replaced", "capture again with: nsys profile"
    elif held:
        what = f"it holds {', '.join(held)} and no {tables.STRINGS}, where their names are"
        raise PerfgateError("nsys-schema", what, place=place, mend=_WHOLE)
    raise PerfgateError("nsys-not-export", what, place=place, mend=mend)


def check_layout(db: Connection) -> None:
    """What could not be read without guessing is an error."""
    said = next(filter(None, map(partial(_unread, db), tables.NEEDED)), "") or _misnumbered(db)
    if said:
        raise PerfgateError("nsys-schema", said, place=str(db.path))


def _unread(db: Connection, table: str) -> str:
    """Why a table cannot be read at all."""
    if not db.has(table):
        return f"{table} is a view, and only tables are read" if table.lower() in db.views else ""
    gone = [name for name in _ALWAYS.get(table, ()) if name not in db.columns(table)]
    if gone:
        return f"{table} has no column {' nor '.join(gone)}"
    return "" if db.numbered(table) else f"the rows of {table} have no numbers (WITHOUT ROWID)"


def _misnumbered(db: Connection) -> str:
    """Kernels are added up by the lower half of their name's number."""
    most = db.rows(f"SELECT max(id) FROM {db.source(tables.STRINGS)}")[0][0]
    return f"texts are numbered up to {most:,}, past 32 bits" if most is not None and most > _MOST_STRINGS else ""


def lacking(db: Connection, filled: tuple[str, ...]) -> tuple[str, ...]:
    """Columns that filled tables do not have and figures need."""
    return tuple(
        f"{table}.{name}" for table in filled for name in tables.NEEDED.get(table, ()) if name not in db.columns(table)
    )


def complete(db: Connection, table: str) -> bool:
    """Whether a table is there with all that is read of it."""
    return db.has(table) and all(name in db.columns(table) for name in tables.NEEDED[table])
