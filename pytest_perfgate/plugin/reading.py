"""An artifact that a test brings along, read by the inspector that recognises it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from glob import glob
from pathlib import Path

from pytest_perfgate.app.inspect import HEAD, choose
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.ports import Inspector
from pytest_perfgate.plugin.asked import Brought


def read_artifact(
    brought: Brought, sources: Sequence[str], inspectors: Sequence[Inspector], limits: Iterable[str] = ()
) -> None:
    """Fill in the metrics of a file, or of the several that patterns and a list name."""
    paths = [path for source in sources for path in _found(source, str(brought.key))]
    inspector = choose(paths, {}, inspectors=inspectors, peek=_head)
    analysis = inspector.inspect(paths, options_of(inspector, "\n".join((*limits, *brought.limits))))
    brought.metrics = analysis.metrics
    brought.findings, brought.problems = analysis.findings, analysis.problems


def _found(source: str, place: str) -> list[Path]:
    """The files that a pattern names; one that stands there by its very name needs none."""
    if Path(source).exists():
        return [Path(source)]
    found = [Path(name) for name in sorted(glob(source, recursive=True))]  # noqa: PTH207 - a pattern may be absolute
    if not found:
        raise PerfgateError("call-wrong", f"read() found no file {source}", place=place)
    return found


def options_of(inspector: Inspector, limits: str) -> Mapping[str, str]:
    """The limits, for an inspector whose figures depend on what is asked."""
    return {"limits": limits} if any(name == "limits" for name, _ in inspector.options) else {}


def _head(path: Path) -> bytes:
    if path.is_dir():
        return b""
    try:
        with path.open("rb") as stream:
            return stream.read(HEAD)
    except OSError as fault:
        raise PerfgateError("call-wrong", f"read() cannot read {path}: {fault}") from fault
