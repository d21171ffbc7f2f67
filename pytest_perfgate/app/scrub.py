"""Clean an export before it travels: a copy beside it, or itself where that was asked for."""

from __future__ import annotations

from pathlib import Path

from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.nsys import Scrub, Scrubbed


def scrub(path: Path, out: Path | None, clean: Scrub, *, in_place: bool = False, force: bool = False) -> Scrubbed:
    """What was left out; never over another file unless forced, never in place unless asked."""
    if in_place and out is not None:
        raise PerfgateError("nsys-scrub", "--in-place and --output are two targets", mend="drop one of them")
    target = path if in_place else out or path.with_name(f"{path.stem}.clean{path.suffix}")
    if not in_place and target.resolve() == path.resolve():
        raise PerfgateError("nsys-scrub", f"{target} is the export itself", mend="ask for it with --in-place")
    if not in_place and target.exists() and not force:
        raise PerfgateError("nsys-scrub", f"{target} exists", why="it would be lost", mend="--force, or --output PATH")
    return clean(path, target)


def sentence(done: Scrubbed) -> str:
    """What a person is told."""
    tables = f"without {', '.join(done.tables)}" if done.tables else "there was no table of the environment"
    texts = "1 text" if done.strings == 1 else f"{done.strings:,} texts"
    lines = f", and without {texts} that nothing in it points to" if done.strings else ""
    return f"{done.out}: {tables}{lines}"
