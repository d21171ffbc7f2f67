"""The fixture inside a child that a profiler watches: one call before the region, one inside it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from pytest_perfgate.model.measurement import Artifact
from pytest_perfgate.model.plan import Case
from pytest_perfgate.plugin.asked import Asked, Brought
from pytest_perfgate.plugin.benches import Bench
from pytest_perfgate.plugin.view import View

VARIABLE = "PERFGATE_PROFILE"
Region = Callable[[], AbstractContextManager[None]]


class ProfiledBench(Bench):
    """The first call compiles and tunes, unprofiled; the second is the one that counts."""

    def __init__(self, case: Case, region: Region, folder: Path) -> None:
        super().__init__(case)
        self._region = region
        self.artifacts: list[Artifact] = KeptFiles(folder)

    def take(self, asked: Asked) -> View:
        self.seen.append(asked.key)
        asked.once()
        with self._region():
            result = asked.once()
        return View(asked.key, result, metrics=self.metrics)

    @contextmanager
    def around(self, brought: Brought) -> Iterator[None]:
        del brought
        with self._region():
            yield


class KeptFiles(list[Artifact]):
    """What a test attaches, copied beside the profile under the name it gives."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder

    def append(self, artifact: Artifact) -> None:
        super().append(artifact)
        asked = dict(artifact.parameters).get("name", "") or Path(artifact.path).name
        parts = [part for part in Path(asked).parts if part not in {"..", "/", "."}]
        target = self._folder.joinpath(*parts)
        if target.suffix != Path(artifact.path).suffix:
            target = target.with_name(target.name + Path(artifact.path).suffix)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(artifact.path, target)
        beside = Path(artifact.path).with_suffix(".json")
        if beside.is_file() and beside != Path(artifact.path):
            shutil.copyfile(beside, target.with_suffix(".json"))


def off_bench(case: Case) -> Bench:
    """Nothing is measured: each call runs once, or under the profiler that started this process."""
    mode, _, folder = os.environ.get(VARIABLE, "").partition(":")
    if not folder:
        return Bench(case)
    from pytest_perfgate.wiring.profiling import profiler_region

    out = Path(folder)
    return ProfiledBench(case, lambda: profiler_region(mode, out), out)
