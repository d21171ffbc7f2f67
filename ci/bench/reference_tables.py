"""The tables of ``--compat tracelens`` beside those of the reference itself, cell by cell.

    python ci/bench/reference_tables.py --reference VENV/bin/TraceLens_generate_perf_report_pytorch --out FOLDER FILES

Install the reference into an environment of its own. A cell is equal where its text is, or its number to 1e-6; a table
or a column that only one side has counts as its cells compared and none equal. Rows, and kernels in a cell, that take
the same time may stand in any order: the reference sorts them by a method that leaves it open. Exit 1 where a table
that the mode claims differs.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import math
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

CLAIMED = (
    "gpu_timeline", "kernel_summary", "ops_summary", "ops_summary_by_category", "ops_unique_args",
    "unified_perf_summary", "gemm", "conv_fwd", "conv_bwd", "sdpa_fwd", "normalization", "unaryelementwise",
    "binaryelementwise", "reduce_fwd",
)  # fmt: skip
Rows = list[dict[str, str]]


def table(path: Path) -> Rows:
    csv.field_size_limit(1 << 30)
    with path.open(encoding="utf-8", newline="") as text:
        return list(csv.DictReader(text))


def equal(one: str | None, other: str | None) -> bool:
    """Return whether two cells are equal, as numbers if both are."""
    if one == other or ((one or "").startswith("[{") and _entries(one) == _entries(other)):
        return True
    try:
        a, b = float(one or "nan"), float(other or "nan")
    except ValueError:
        return False
    return (math.isnan(a) and math.isnan(b)) or math.isclose(a, b, rel_tol=1e-6, abs_tol=1e-6)


def _entries(cell: str | None) -> list[str]:
    """Return the kernels that a cell lists."""
    return sorted((cell or "").removeprefix("[{").removesuffix("}]").split("}, {"))


_TIMES = ("total_direct_kernel_time_sum", "Kernel Time (µs)_sum", "Kernel duration (µs)_sum")


def settled(rows: Rows) -> Rows:
    """Return the rows of one time in the order of their texts; running sums stay where they were."""
    column = next((name for name in _TIMES if rows and name in rows[0]), "")
    if not column:
        return rows
    sums = [name for name in rows[0] if name.startswith("Cumulative")]
    ordered: Rows = []
    for _, tied in itertools.groupby(rows, lambda row: row[column]):
        ordered += sorted(tied, key=lambda row: [text for name, text in row.items() if name not in _NUMBERED])
    return [{**row, **{name: rows[at][name] for name in sums}} for at, row in enumerate(ordered)]


_NUMBERED = {"ex_UID", "UID_first"}


def compared(theirs: Rows, ours: Rows) -> tuple[int, int, str]:
    """Return (cells of the reference, equal cells, first difference)."""
    cells = same = 0
    theirs, ours = settled(theirs), settled(ours)
    first = "" if len(theirs) == len(ours) else f"{len(ours)} rows, not {len(theirs)}"
    for at, row in enumerate(theirs):
        mine = ours[at] if at < len(ours) else {}
        for column, cell in row.items():
            cells += 1
            if column in mine and equal(cell, mine[column]):
                same += 1
            elif not first:
                first = f"row {at + 1}, {column}: {mine.get(column, 'absent')[:40]!r}, not {cell[:40]!r}"
    return cells, same, first


def run(command: list[str], log: Path) -> bool:
    with log.open("w") as out:
        return subprocess.run(command, stdout=out, stderr=subprocess.STDOUT, check=False).returncode == 0


def tables_of(trace: Path, reference: str, out: Path) -> tuple[dict[str, Rows], dict[str, Rows]] | None:
    """Return both sides' tables of a trace by lower-case name; None if the reference does not read it."""
    theirs, ours = out / trace.name / "reference", out / trace.name / "ours"
    theirs.mkdir(parents=True, exist_ok=True)
    made = run([reference, "--profile_json_path", str(trace), "--output_csvs_dir", str(theirs)], theirs / "log.txt")
    perfgate = str(Path(sys.executable).with_name("perfgate"))
    inspect = [perfgate, "inspect", str(trace), "--compat", "tracelens", "--csv", str(ours)]
    ours.mkdir(parents=True, exist_ok=True)
    read = run(inspect, ours / "log.txt")
    if not made or not read:
        print(f"{trace.name}: {'the reference does' if not made else 'we do'} not read it")
        return None
    return (
        {file.stem.lower(): table(file) for file in theirs.glob("*.csv")},
        {file.stem.lower().removeprefix("tracelens_"): table(file) for file in ours.glob("*.csv")},
    )


def lines(trace: Path, reference: str, out: Path) -> Iterator[tuple[str, int, int, str]]:
    """Yield (table, cells, equal, first difference) of one trace."""
    pair = tables_of(trace, reference, out)
    if pair is None:
        return
    theirs, ours = pair
    for name, rows in sorted(theirs.items()):
        if name in ours:
            yield name, *compared(rows, ours[name])
        else:
            yield name, sum(map(len, rows)), 0, "absent here"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reference", required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("traces", nargs="+", type=Path)
    options = parser.parse_args()
    totals: dict[bool, list[int]] = {True: [0, 0], False: [0, 0]}
    for trace in options.traces:
        for name, cells, same, first in lines(trace, options.reference, options.out):
            totals[name in CLAIMED][0] += cells
            totals[name in CLAIMED][1] += same
            if same < cells or first:
                print(f"{trace.name}  {name}: {same:,} of {cells:,} cells equal; {first}")
    for claimed, words in ((True, "tables that the mode claims"), (False, "other tables of the reference")):
        cells, same = totals[claimed]
        print(f"{words}: {cells:,} cells compared, {same:,} equal")
    return int(totals[True][0] != totals[True][1])


if __name__ == "__main__":
    sys.exit(main())
