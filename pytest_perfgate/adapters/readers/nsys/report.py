"""The reader's door: an export is opened, a report is exported first by the nsys on the PATH."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from pytest_perfgate.adapters.readers.nsys.connection import read_head
from pytest_perfgate.adapters.readers.nsys.export import Export, open_export
from pytest_perfgate.adapters.system.commands import run_captured
from pytest_perfgate.adapters.system.files import last_lines
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.nsys import REPORTS, SQLITE

_VERSION = re.compile(rb"(20\d\d\.\d{1,2}\.\d{1,2}\.\d{1,5})-[0-9a-f]{6,}")
"""With the revision behind it: the header also holds the environment, where other versions stand."""
_EDGE = 1 << 16
_MINUTES = 30


def read_nsys(path: Path) -> Export:
    """An open export of either kind of file."""
    return _exported(path) if path.suffix in REPORTS and _is_report(path) else open_export(path)


def _is_report(path: Path) -> bool:
    """Whether it has content, and other content than an export that only bears a report's name."""
    head = read_head(path)
    return head != b"" and not head.startswith(SQLITE)


def version_in(path: Path) -> str:
    """The version that wrote a report, from either end of the file; empty where neither says."""
    try:
        with path.open("rb") as file:
            head = file.read(_EDGE)
            file.seek(max(len(head), path.stat().st_size - _EDGE))
            found = _VERSION.search(head) or _VERSION.search(file.read(_EDGE))
    except OSError as error:
        raise PerfgateError("nsys-missing", str(error.strerror or error), place=str(path)) from error
    return found.group(1).decode() if found else ""


def _exported(path: Path) -> Export:
    """The temporary export holds the environment: it is unlinked as soon as it is open."""
    version = version_in(path)
    command = ["nsys", "export", "--type=sqlite", "--force-overwrite=true"]
    if shutil.which("nsys") is None:
        written = f"; the report was written by {version}" if version else ""
        what = f"a report is read through its SQLite export, and nsys is not on the PATH{written}"
        mend = f"where nsys {version or 'of the same version or newer'} is: {' '.join(command)} {path.name}"
        raise PerfgateError("nsys-report", what, place=str(path), mend=mend)
    with tempfile.TemporaryDirectory(prefix="perfgate-nsys-") as folder:
        out = Path(folder) / f"{path.stem}.sqlite"
        _run([*command, f"--output={out}", str(path)], path, version)
        return open_export(out)


def _run(command: list[str], path: Path, version: str) -> None:
    written = f" (the report was written by {version})" if version else ""
    try:
        done = run_captured(command, 60 * _MINUTES)
    except subprocess.TimeoutExpired as error:
        what = f"nsys export took over {_MINUTES} minutes{written}"
        raise PerfgateError("nsys-report", what, place=str(path)) from error
    out = Path(command[-2].partition("=")[2])
    if done.returncode or not out.is_file():
        tail = "\n".join(last_lines((done.stdout + done.stderr).decode("utf-8", "replace"), 5))
        what = f"nsys export ended with {done.returncode}{written}: {tail}"
        by_hand = f"nsys export --type=sqlite --output={path.stem}.sqlite {path.name}"
        mend = f"with nsys {version or 'of the same version'} or newer: {by_hand}"
        raise PerfgateError("nsys-report", what, place=str(path), mend=mend)
