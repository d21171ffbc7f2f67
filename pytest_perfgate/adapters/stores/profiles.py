"""Folders of profiles, and attached files."""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pytest_perfgate.adapters.system.files import file_tail, indented, json_table, replace_content
from pytest_perfgate.model.errors import PerfgateError

_UNSAFE = re.compile(r"[^\w.\-=+]+")

_LONGEST, _DIGITS = 80, 8

_TAIL_LINES = 20

_PARAMETERS, _READ = "params.json", "metrics.json"
"""The files written before the profile is read, and after."""

Pages = Callable[[Path, Mapping[str, Any]], None]


class ProfileFolders:
    """Folders of profiles under a project's root, or under a given folder."""

    def __init__(self, root: Path, pages: Pages | None = None, home: Path | None = None) -> None:
        self._home, self._pages = home or root / ".perfgate" / "profiles", pages

    def fresh(self, mode: str, nodeid: str) -> Path:
        """Create an empty folder for one profile; simultaneous calls get different ones."""
        case, _, params = nodeid.partition("[")
        home = self._home / safe(mode) / safe(case) / (unique_name(params.removesuffix("]")) or "none")
        stamp = time.strftime("%Y%m%dT%H%M%S")
        for number in range(1000):
            folder = home / (f"{stamp}-{number}" if number else stamp)
            try:
                folder.mkdir(parents=True)
            except FileExistsError:
                continue
            return folder
        raise FileExistsError(home)

    def earlier(self, folder: Path) -> Path | None:
        """Return the previous profile of the same case, or None."""
        others = sorted(path for path in folder.parent.iterdir() if path.is_dir() and path.name < folder.name)
        return others[-1] if others else None

    def statement(self, artifact: Path) -> dict[str, str]:
        """Return options for an inspector from the artifact's folder: the work of the call, the previous profile."""
        folder = next((home for home in artifact.parents if (home / _PARAMETERS).is_file()), None)
        if folder is None:
            return {}
        data = json_table(folder / _PARAMETERS)
        before = self.earlier(folder)
        baseline = before / artifact.relative_to(folder) if before and (before / _READ).is_file() else None
        called = [data.get(key) for key in ("parameters", "notes")]
        problem = ", ".join(_named(part) for part in called if part)
        stated: dict[str, Any] = {"problem": problem, "version": data.get("version")}
        work = data.get("work")
        if isinstance(work, dict):
            stated |= work
        if baseline is not None and baseline.is_file():
            stated["baseline"] = baseline
        return {name: _named(text) for name, text in stated.items() if text}

    def write_text(self, folder: Path, name: str, text: str) -> None:
        """Write the file atomically."""
        replace_content(folder / name, text.encode("utf-8"))

    def write_json(self, folder: Path, name: str, value: Any) -> None:
        self.write_text(folder, name, json.dumps(value, indent=2, ensure_ascii=False, default=str) + "\n")

    def read_json(self, folder: Path, name: str) -> dict[str, Any]:
        """Return what a child wrote, and remove it; empty if the file is missing or incomplete."""
        data = json_table(folder / name)
        (folder / name).unlink(missing_ok=True)
        return data

    def tail(self, folder: Path, name: str) -> str:
        """Return the last lines of a log, indented."""
        return indented(file_tail(folder / name, _TAIL_LINES)).removeprefix("\n")

    def write_pages(self, folder: Path, views: Mapping[str, Any]) -> None:
        """Write tables, pictures and pages of all views."""
        if self._pages is not None:
            self._pages(folder, views)


def _named(raw: Any) -> str:
    """Return parameters by name in one line; anything else as text."""
    return ", ".join(f"{name}={text}" for name, text in raw.items()) if isinstance(raw, dict) else str(raw)


def safe(text: str) -> str:
    """Return a file name that shows its origin and cannot leave its folder; a long one is cut and gets a digest."""
    name = _UNSAFE.sub("-", text.replace("..", "-")).strip("-.")
    return name if len(name) <= _LONGEST else _with_digest(name, text)


def unique_name(text: str) -> str:
    """Return a file name that no other text has: where signs were replaced, it gets a digest."""
    name = safe(text)
    return name if name == text else _with_digest(name, text)


def folder_name(nodeid: str) -> str:
    """Return the name of a case's own folder."""
    case, bracket, params = nodeid.partition("[")
    return safe(f"{case}{bracket}{unique_name(params.removesuffix(']'))}")


def _with_digest(name: str, text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]
    return f"{name[: _LONGEST - _DIGITS - 1]}-{digest}"


COMPILED = "compiled"
"""The folder of a profile with every stage of a compilation, and not only the machine code."""

MACHINE_CODE = (".cubin", ".fatbin", ".o", ".so")

MOST_FILES = 1000

_ELF, _CUDA = b"\x7fELF", b"\xbe\x00"

_SECTIONS = (b".nv_fatbin", b"__nv_relfatbin")

_KINDS = ((_ELF, ".cubin"), (b"\x50\xed\x55\xba", ".fatbin"))

_OFFERED = "a path, bytes, a dict or list for JSON, or a compiled kernel of Triton (it has .asm['cubin'])"

Named = Iterator[tuple[str, Path]]
"""Yields (name under which it is kept, its path)."""


def attachments(name: str, thing: Any, room: Path) -> Named:
    """Yield the files behind a thing; what is not a file yet is written into the room."""
    if isinstance(thing, (str, Path)):
        yield from _on_disk(name, Path(thing))
    elif isinstance(thing, (bytes, bytearray, memoryview)):
        yield _written(name, bytes(thing), room)
    elif isinstance(thing, (dict, list)):
        yield _written(name, json.dumps(thing, indent=2, default=str).encode(), room)
    elif isinstance(getattr(thing, "asm", None), Mapping):
        yield from _compiled(name, thing, room)
    elif isinstance(getattr(thing, "code", None), bytes):
        yield _written(name, thing.code, room)
    else:
        what = f"attach({name!r}) was given a {type(thing).__name__}"
        raise PerfgateError("call-wrong", what, fix=f"pass {_OFFERED}")


def _on_disk(name: str, path: Path) -> Named:
    if path.is_file():
        yield name, path
        return
    if not path.is_dir():
        fix = "name a file or folder that is there when the test attaches it"
        raise PerfgateError("call-wrong", f"attach({name!r}) found no file {path}", fix=fix)
    inside = sorted(p for p in path.rglob("*") if p.is_file())
    built = [p for p in inside if p.suffix in MACHINE_CODE]
    files = [p for p in built if not _of_the_host(p)] or built or inside
    if not files or len(files) > MOST_FILES:
        text = f"holds {len(files):,} files, {MOST_FILES:,} at the most" if files else "is empty"
        raise PerfgateError("call-wrong", f"attach({name!r}): the folder {path} {text}")
    yield from ((f"{name}/{file.relative_to(path).as_posix()}", file) for file in files)


def _of_the_host(path: Path) -> bool:
    """Return whether an object file or library has no GPU code; nvcc puts that in a section of its own."""
    if path.suffix not in {".o", ".so"}:
        return False
    content = path.read_bytes()
    return content[:4] == _ELF and content[18:20] != _CUDA and not any(name in content for name in _SECTIONS)


def _compiled(name: str, kernel: Any, room: Path) -> Named:
    """Yield the machine code with its launch beside it; below ``compiled/`` every stage of the compilation."""
    stages = kernel.asm
    if name.partition("/")[0] == COMPILED:
        stem = safe(str(getattr(getattr(kernel, "metadata", None), "name", ""))) or "kernel"
        for stage in stages:
            yield _written(f"{name}/{stem}.{safe(stage)}", _raw(stages[stage]), room)
            if stage == "cubin":
                _write_launch(kernel, room / f"{name}/{stem}.json")
        return
    if "cubin" not in stages:
        there = ", ".join(stages) or "nothing"
        what = f"attach({name!r}): the compiled kernel holds no cubin, only {there}"
        raise PerfgateError("kernel-none", what, fix=f"pass {_OFFERED}")
    cubin, path = _written(f"{name.removesuffix('.cubin')}.cubin", _raw(stages["cubin"]), room)
    _write_launch(kernel, path.with_suffix(".json"))
    yield cubin, path


def _raw(content: Any) -> bytes:
    return content.encode() if isinstance(content, str) else bytes(content)


def _write_launch(kernel: Any, path: Path) -> None:
    """Write the launch in Triton's metadata beside a cubin, in the form that a build writes."""
    metadata = getattr(kernel, "metadata", None)
    warps = int(getattr(metadata, "num_warps", 0) or 0)
    if warps:
        launch = {
            "name": str(getattr(metadata, "name", "")),
            "num_warps": warps,
            "shared": int(getattr(metadata, "shared", 0) or 0),
        }
        path.write_text(json.dumps(launch), encoding="utf-8")


def _written(name: str, content: bytes, room: Path) -> tuple[str, Path]:
    """Write the content atomically below the room, whatever the name contains."""
    parts = [part for part in Path(name).parts if part not in {"..", "."} and not Path(part).is_absolute()]
    if not parts:
        raise PerfgateError("call-wrong", f"attach({name!r}): this is not a name for a file")
    path = room.joinpath(*parts)
    if not path.suffix:
        path = path.with_suffix(next((suffix for magic, suffix in _KINDS if content.startswith(magic)), ""))
    replace_content(path, content)
    return path.relative_to(room).as_posix(), path
