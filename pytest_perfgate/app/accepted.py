"""What was accepted: the lines of the revision that judges, and those of the work tree."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import product

from pytest_perfgate.core.gate.bodies import same_bodies
from pytest_perfgate.model.baseline import Baseline
from pytest_perfgate.model.measurement import Measurement
from pytest_perfgate.model.repository import Base
from pytest_perfgate.model.tools import GateTools

Lines = Mapping[str, Baseline]
_LEANED_ON = ("time", "scatter", "sittings", "blind", "commit", "expires", "identity", "environment")


class Accepted:
    """Reads each file of baselines once."""

    def __init__(self, tools: GateTools) -> None:
        self._tools = tools
        self._read: dict[tuple[str, str, str], Lines] = {}
        self._base: Base | None = None

    @property
    def base(self) -> Base:
        """The revision whose accepted lines judge, asked once."""
        if self._base is None:
            self._base = self._tools.repository.base() if self._tools.repository is not None else Base()
        return self._base

    def read_files(self, paths: Iterable[str]) -> None:
        """Every file that these test files may be judged by; raises where one does not read."""
        devices = self._tools.baselines.devices() if self._tools.baselines is not None else ()
        for device, path in product(devices, dict.fromkeys(paths)):
            here = self._lines(device, path)
            if not all(line.local for line in here.values()) and self.base.commit:
                self._lines(device, path, self.base.commit)

    def judging(self, measurement: Measurement) -> tuple[Baseline | None, Baseline | None]:
        """The line that judges, of the merge base, and the work tree's where this change edits it."""
        key, device = str(measurement.key), measurement.device.key
        now = self._lines(device, measurement.key.path).get(key)
        if now is None or now.local or not self.base.commit:
            return now, None
        then = self._lines(device, measurement.key.path, self.base.commit).get(key)
        if then is None:
            return now, None
        return replace(then, place=now.place), None if _same(then, now) else now

    def then_and_now(self, device: str, path: str) -> tuple[Lines, Lines]:
        """The lines of a file at the merge base, none where there is none, and in the work tree."""
        base = self.base.commit
        return (self._lines(device, path, base) if base else {}), self._lines(device, path)

    def renamed_in(self, path: str) -> Mapping[str, str]:
        """Functions of a test file that are gone since the merge base, with those that do the same now."""
        repository, base = self._tools.repository, self.base.commit
        if repository is None or not base:
            return {}
        then, now = repository.show(base, path), repository.show("HEAD", path)
        return same_bodies(then, now) if then and now else {}

    def _lines(self, device: str, path: str, revision: str = "") -> Lines:
        if self._tools.baselines is None:
            return {}
        at = (device, path, revision)
        if at not in self._read:
            self._read[at] = self._tools.baselines.read(*at)
        return self._read[at]


def _same(then: Baseline, now: Baseline) -> bool:
    """Whether the change under test leaves all of a line that a verdict leans on as it was."""
    return all(getattr(then, name) == getattr(now, name) for name in _LEANED_ON)
