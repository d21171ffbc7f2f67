"""Traces that a process writes of itself: one for each time the region is entered, numbered in that order."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pytest_perfgate.model.measurement import Artifact
from pytest_perfgate.model.plan import Plan


class OwnTraces:
    """Where they lie; what is in them is the profiler's."""

    stem: str
    """What their names begin with."""

    def command(self, argv: Sequence[str], out: Path, plan: Plan) -> Sequence[str]:  # noqa: ARG002 - the port's
        """The child is its own profiler."""
        return argv

    def artifacts(self, out: Path) -> tuple[Artifact, ...]:
        return tuple(Artifact(kind="kineto", path=str(path)) for path in self._written(out))

    def following(self, out: Path) -> Path:
        """Where the next one goes."""
        out.mkdir(parents=True, exist_ok=True)
        return out / f"{self.stem}{len(self._written(out))}.json"

    def _written(self, out: Path) -> list[Path]:
        found = out.glob(f"{self.stem}*.json") if out.is_dir() else ()
        return sorted(found, key=lambda path: int(path.stem.removeprefix(self.stem)))
