"""An artifact that a test brings along, read by the inspector that recognises it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from glob import glob
from pathlib import Path

from pytest_perfgate.core.analysis.foreign import foreign
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.ports import Inspector
from pytest_perfgate.plugin.asked import Brought

_HEAD_BYTES = 4096


def read_artifact(
    brought: Brought, sources: Sequence[str], inspectors: Sequence[Inspector], limits: Iterable[str] = ()
) -> None:
    """Fill in the metrics of a file, or of the several that patterns and a list name."""
    paths = [path for source in sources for path in _found(source, str(brought.key))]
    head = _head(paths[0])
    inspector = next((one for one in inspectors if one.recognises(paths[0], head)), None)
    if inspector is None:
        seen, mend = foreign(head)
        what = f"read() cannot use {paths[0]}: it {seen}" if seen else f"read() does not know what {paths[0]} is"
        known = "it knows: " + ", ".join(one.name for one in inspectors)
        raise PerfgateError("call-wrong", what, mend=mend or known)
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
    try:
        with path.open("rb") as stream:
            return stream.read(_HEAD_BYTES)
    except OSError as fault:
        raise PerfgateError("call-wrong", f"read() cannot read {path}: {fault}") from fault
