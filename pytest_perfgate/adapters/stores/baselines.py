"""Baselines on disk: one YAML file for each device and test file, one line a case, written only by accepting."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import cache, partial
from pathlib import Path, PurePath, PurePosixPath
from shlex import quote
from typing import NamedTuple

from pytest_perfgate.adapters.stores.baseline_text import edited, is_in_windows_lines, parse_entries
from pytest_perfgate.adapters.stores.stored_forms import FOLDER, Environments
from pytest_perfgate.adapters.system.files import content, locked, write_atomically
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.measurement import Baseline
from pytest_perfgate.model.plan import CaseKey, parse_case_key

Show = Callable[[str, str], "str | None"]
"""Returns the text at (revision, path relative to the root), or None if it did not exist."""


class StoredFiles(NamedTuple):
    """Access to the baseline files of a revision."""

    folder: Callable[[str], str]
    """Returns the folder of a revision's baselines."""
    files: Callable[[str, str], Iterable[str]]
    """Returns the files below (revision, folder)."""
    listed: Callable[[str], Iterable[str]] = lambda _revision: ()
    """Returns the device patterns that a revision lists."""

    def lists(self, device: str, revision: str) -> bool:
        """Return whether a revision lists a device; a change that unlists it leaves the base's lines in force."""
        return any(fnmatchcase(device, pattern) for pattern in self.listed(revision))

    def devices(self, revision: str) -> tuple[str, ...]:
        folder = PurePosixPath(self.folder(revision))
        files = (PurePosixPath(file) for file in self.files(revision, folder.as_posix()))
        return tuple(sorted({file.relative_to(folder).parts[0] for file in files}))


class Baselines:
    """The store of a project: committed for the devices it lists, under ``.perfgate/`` for any other."""

    def __init__(
        self,
        root: Path,
        devices: Sequence[str] = (),
        folder: str = "baselines",
        show: Show | None = None,
        stored_files: StoredFiles | None = None,
    ) -> None:
        self._root = root
        self._devices = tuple(devices)
        self._folder = folder
        self._show = show
        files = stored_files or StoredFiles(lambda _revision: folder, lambda _revision, _folder: ())
        self._stored = files._replace(folder=cache(files.folder), listed=cache(files.listed))

    def committed(self, device: str) -> bool:
        """Return whether this device's baselines are committed, and not only in this checkout."""
        return any(fnmatchcase(device, pattern) for pattern in self._devices)

    def path(self, device: str, test: str) -> Path:
        """Return the file of the baselines of a test file."""
        return self._home(device) / f"{_written_path(test)}.yaml"

    def read(self, device: str, path: str, revision: str = "") -> Mapping[str, Baseline]:
        if revision and (self.committed(device) or self._stored.lists(device, revision)):
            file = (self._root / self._folder / device) / f"{_written_path(path)}.yaml"
            text = self._show(revision, self._place_at(revision, file)) if self._show else None
            with _name_file(file, self._root, mine=True, revision=revision):
                return {} if text is None else self._parsed(text, file, device, path, revision)
        return self._read(self.path(device, path), device, path)

    def read_all(self, device: str) -> Mapping[str, Baseline]:
        home, lines = self._home(device), dict[str, Baseline]()
        for file in sorted(home.rglob("*.yaml")) if home.is_dir() else ():
            lines |= self._read(file, device, _read_path(file.relative_to(home)))
        return lines

    def parsed(self, text: str, device: str, path: str) -> Mapping[str, Baseline]:
        """Return the lines of a file that was stored elsewhere, as if it were stored here."""
        return self._parsed(text, self.path(device, path), device, path)

    def paths(self, device: str, revision: str) -> tuple[str, ...]:
        """Return the test files that a revision has lines of."""
        if not (self.committed(device) or self._stored.lists(device, revision)):
            return ()
        home = PurePosixPath(self._stored.folder(revision)) / device
        files = (PurePosixPath(file) for file in self._stored.files(revision, home.as_posix()))
        return tuple(_read_path(file.relative_to(home)) for file in files if file.suffix == ".yaml")

    def write(self, baselines: Sequence[Baseline]) -> tuple[Path, ...]:
        changed: list[Path] = []
        groups = _grouped(baselines)
        for device, files in groups.items():
            for path, group in files.items():
                self._edited(device, path, {line.key.test: line for line in group}, ())
        for device, files in groups.items():
            with _sweep_after(partial(self._sweep, device)):
                for path, group in files.items():
                    changed += self._written(device, path, group)
        return tuple(changed)

    def _written(self, device: str, path: str, group: Sequence[Baseline]) -> list[Path]:
        """Write lines and their environments under one lock, so that no other process removes those environments."""
        with locked(self._root, self._home(device) / FOLDER):
            lines, files = _with_environments(group, Environments(self._home(device)))
            return [*self._edit(device, path, lines, ()), *files]

    def remove(self, device: str, keys: Sequence[CaseKey]) -> tuple[Path, ...]:
        changed: list[Path] = []
        with _sweep_after(partial(self._sweep, device)):
            for path in sorted({key.path for key in keys}):
                changed += self._edit(device, path, {}, [key.test for key in keys if key.path == path])
        return tuple(changed)

    def _sweep(self, device: str) -> None:
        """Remove environments that no line names any more; an unreadable file keeps all of them."""
        home = self._home(device)
        if (home / FOLDER).is_dir():
            with locked(self._root, home / FOLDER), contextlib.suppress(PerfgateError):
                Environments(home).sweep({line.environment for line in self.read_all(device).values()})

    def devices(self, revision: str = "") -> tuple[str, ...]:
        if revision:
            return self._stored.devices(revision)
        homes = (self._root / self._folder, self._root / ".perfgate" / "baselines")
        names = {entry.name for home in homes if home.is_dir() for entry in home.iterdir() if entry.is_dir()}
        return tuple(sorted(name for name in names if _names_folder(name) and self._home(name).is_dir()))

    def _home(self, device: str) -> Path:
        if not _names_folder(device):
            raise PerfgateError("baseline-path", f"the device '{device}' cannot name a folder")
        return self._root / (self._folder if self.committed(device) else Path(".perfgate", "baselines")) / device

    def _read(self, file: Path, device: str, path: str) -> Mapping[str, Baseline]:
        with _name_file(file, self._root, mine=self.committed(device)):
            text = _text(file)
            return {} if text is None else self._parsed(text, file, device, path)

    def _parsed(self, text: str, file: Path, device: str, path: str, revision: str = "") -> Mapping[str, Baseline]:
        place = f"{revision[:12]}:{_shown(file, self._root)}" if revision else _shown(file, self._root)
        local = not self.committed(device) and not revision
        around = Environments(self._root / self._folder / device if revision else self._home(device))
        show = self._show
        shown = (lambda path: show(revision, self._place_at(revision, path))) if revision and show else None
        lines: dict[str, Baseline] = {}
        for name, entry in parse_entries(text, place=place, device=device).items():
            key = f"{path}::{name}"
            lines[key] = Baseline(
                key=parse_case_key(key),
                device=device,
                local=local,
                place=f"{place}: baselines.'{name}'",
                surroundings=around.read(entry.fields.get("environment", ""), shown),
                **entry.fields,
            )
        return lines

    def _place_at(self, revision: str, file: Path) -> str:
        """Return the path of this file in a revision, which may have its baselines in another folder."""
        return (PurePosixPath(self._stored.folder(revision)) / file.relative_to(self._root / self._folder)).as_posix()

    def _edit(self, device: str, path: str, put: Mapping[str, Baseline], drop: Iterable[str]) -> Iterator[Path]:
        file = self.path(device, path)
        with locked(self._root, file):
            before, after = self._edited(device, path, put, drop)
            if after == before:
                return
            if after:
                write_atomically(file, after.encode("utf-8"))
            else:
                file.unlink()
            yield file

    def _edited(self, device: str, path: str, put: Mapping[str, Baseline], drop: Iterable[str]) -> tuple[str, str]:
        """Return a file's text before and after an edit; raise if either is unreadable."""
        file = self.path(device, path)
        with _name_file(file, self._root, mine=self.committed(device)):
            text = _text(file) or ""
            after = partial(edited, put=put, drop=drop, place=_shown(file, self._root), device=device)
            return text, _in_its_lines(text, after)


def _in_its_lines(text: str, change: Callable[[str], str]) -> str:
    """Apply a change that expects LF line ends; an unchanged text keeps every byte."""
    before = text.replace("\r\n", "\n")
    after = change(before)
    if after == before:
        return text
    return after.replace("\n", "\r\n") if is_in_windows_lines(text) else after


@contextlib.contextmanager
def _sweep_after(sweep: Callable[[], None]) -> Iterator[None]:
    """Sweep once after all edits of a device; if an edit fails, its error is raised and not one of the sweep."""
    try:
        yield
    except Exception:
        with contextlib.suppress(OSError, PerfgateError):
            sweep()
        raise
    sweep()


@contextlib.contextmanager
def _name_file(file: Path, root: Path, *, mine: bool, revision: str = "") -> Iterator[None]:
    """Add the name of an unreadable file and its fix; git can only restore files of the project's devices.

    Nobody can edit the file of a revision.
    """
    try:
        yield
    except PerfgateError as fault:
        damaged = Path(fault.place) if fault.place.endswith(".json") else file  # the environment that a line names
        shown = _shown(damaged, root)
        again = f"fix it by hand, or delete it and the next run keeps another: rm {quote(shown)}"
        fix = fault.fix.replace("FILE", quote(shown)) if mine else again
        if revision and damaged is file and fault.code.name != "baseline-version":
            fix = "merge a change that mends the file, without the gate (--perfgate=off); it judges every later change"
        place = fault.place.replace(str(damaged), shown)
        raise PerfgateError(fault.code.name, fault.what, why=fault.why, fix=fix, place=place) from None


def _names_folder(device: str) -> bool:
    """Return whether a device can name a folder; hidden folders belong to other programs."""
    return bool(device) and not device.startswith(".") and not set(device) & set('/\\:*?"<>|\0')


def _shown(file: Path, root: Path) -> str:
    """Return the path from the root; the whole path if the folder lies elsewhere."""
    return (file.relative_to(root) if file.is_relative_to(root) else file).as_posix()


def _with_environments(group: Sequence[Baseline], around: Environments) -> tuple[dict[str, Baseline], list[Path]]:
    """Return lines with the digests of their environments, and the newly written files."""
    lines: dict[str, Baseline] = {}
    files: list[Path] = []
    for baseline in group:
        digest, file = around.write(baseline.surroundings) if baseline.surroundings else (baseline.environment, None)
        lines[baseline.key.test] = replace(baseline, environment=digest)
        files += [file] if file is not None else []
    return lines, files


def _grouped(baselines: Sequence[Baseline]) -> dict[str, dict[str, list[Baseline]]]:
    """Return lines by device and test file."""
    groups: dict[str, dict[str, list[Baseline]]] = {}
    for baseline in baselines:
        if not baseline.key.test:
            raise PerfgateError("baseline-path", f"'{baseline.key}' names no test in a file")
        groups.setdefault(baseline.device, {}).setdefault(baseline.key.path, []).append(baseline)
    return groups


def _text(file: Path) -> str | None:
    try:
        data = content(file)
    except FileNotFoundError:
        return None
    except OSError as fault:
        raise PerfgateError("baseline-unreadable", f"it cannot be opened: {fault}", place=str(file)) from fault
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as fault:
        what = f"byte {fault.start} is not UTF-8"
        raise PerfgateError("baseline-unreadable", what, place=str(file)) from fault
    if not text.strip():
        raise PerfgateError("baseline-unreadable", "the file is empty", place=str(file))
    return text


def _written_path(test: str) -> str:
    """Return a test's path below the device's folder, with ``..`` written as ``%2E%2E``."""
    parts = PurePosixPath(test.replace("\\", "/")).parts
    if not parts or parts[0] == "/":
        raise PerfgateError("baseline-path", f"the test path '{test}' is not relative to the root")
    return "/".join("%2E%2E" if part == ".." else part for part in parts)


def _read_path(file: PurePath) -> str:
    return "/".join(".." if part == "%2E%2E" else part for part in file.as_posix().removesuffix(".yaml").split("/"))
