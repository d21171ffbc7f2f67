"""Look into a file: which inspector knows it, and what it says."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from pytest_perfgate.core.analysis.foreign import GZIP, foreign, unpacked_head
from pytest_perfgate.model.analysis import Analysis
from pytest_perfgate.model.document import Document
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.ports import Inspector

HEAD = 4096
MOST = 200
"""Files of a folder that are looked into."""
Peek = Callable[[Path], bytes]
"""Reads the first bytes of a file, of every file of a folder's kind none: a folder has an empty head."""


def inspect(
    paths: Sequence[Path], options: Mapping[str, str], *, inspectors: Sequence[Inspector], peek: Peek
) -> Analysis:
    """The analysis of one file, or of the several files of one job."""
    return choose(paths, options, inspectors=inspectors, peek=peek).inspect(paths, options)


def choose(
    paths: Sequence[Path], options: Mapping[str, str], *, inspectors: Sequence[Inspector], peek: Peek
) -> Inspector:
    """The inspector that recognises every file; a job is of one kind."""
    chosen = {path: _recognised(path, inspectors, peek) for path in paths}
    kinds = {inspector.name: path for path, inspector in chosen.items()}
    if len(kinds) > 1:
        listed = "; ".join(f"{path} is {name}" for name, path in kinds.items())
        raise PerfgateError("artifact-mixed", f"these files are of different kinds: {listed}")
    inspector = next(iter(chosen.values()))
    _check_options(inspector, options)
    return inspector


def view(analysis: Analysis, name: str = "") -> Document:
    """One view of an analysis; the first is the default."""
    if not name:
        return next(iter(analysis.views.values()))()
    if name not in analysis.views:
        there = ", ".join(analysis.views)
        raise PerfgateError("view-unknown", f"a {analysis.kind} file has no view '{name}'", mend=f"one of: {there}")
    return analysis.views[name]()


def _recognised(path: Path, inspectors: Sequence[Inspector], peek: Peek) -> Inspector:
    head = peek(path)
    found = next((one for one in inspectors if one.recognises(path, head)), None)
    if found is None:
        raise _folder(path, inspectors, peek) or unknown(path, head, inspectors)
    return found


def _folder(path: Path, inspectors: Sequence[Inspector], peek: Peek) -> PerfgateError | None:
    """The error for a folder whose files are read one by one: which of them are one job is for a person to say."""
    files = [file for file in sorted(path.iterdir())[:MOST] if file.is_file()] if path.is_dir() else []
    kinds: dict[str, list[Path]] = {}
    for file in files:
        head = peek(file)
        for one in inspectors:
            if one.recognises(file, head):
                kinds.setdefault(one.name, []).append(file)
                break
    if not kinds:
        return None
    held = ", ".join(f"{len(found)} of {name}" for name, found in kinds.items())
    first = next(iter(kinds.values()))
    mend = f"name the files of one job, such as {first[0] if len(first) == 1 else path / ('*' + first[0].suffix)}"
    what = f"a folder is not read as a whole; its files are: {held}"
    return PerfgateError("artifact-unknown", what, place=str(path), mend=mend)


def unknown(path: Path, head: bytes, inspectors: Sequence[Inspector]) -> PerfgateError:
    """The error for a file that nothing reads: what it is where its first bytes tell, else what is read."""
    seen, mend = foreign(head)
    if head.startswith(GZIP) and any(one.recognises(path.with_suffix(""), unpacked_head(head)) for one in inspectors):
        mend = "unpack it: gunzip FILE"
    what = seen or ("is empty" if not head and path.is_file() else "is of no kind that anything here reads")
    known = "kinds: " + ", ".join(one.name for one in inspectors)
    thing = "folder" if path.is_dir() else "file"
    return PerfgateError("artifact-unknown", f"the {thing} {what}", place=str(path), mend=mend or known)


def _check_options(inspector: Inspector, options: Mapping[str, str]) -> None:
    known = [name for name, _ in inspector.options]
    strange = [name for name in options if name not in known]
    if strange:
        listed = ", ".join(known) or "none"
        what = f"'{strange[0]}' means nothing to a {inspector.name} file"
        raise PerfgateError("option-unknown", what, mend=f"options for {inspector.name}: {listed}")
