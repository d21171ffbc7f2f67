"""What a test hands over, as files: a file, a folder, machine code as bytes, a compiled kernel of Triton."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pytest_perfgate.adapters.stores.profiles import safe
from pytest_perfgate.adapters.system.files import replace_content
from pytest_perfgate.model.errors import PerfgateError

COMPILED = "compiled"
"""The folder of a profile that takes every stage of a compilation, not the machine code alone."""
MACHINE_CODE = (".cubin", ".fatbin", ".o", ".so")
MOST_FILES = 1000
_ELF, _CUDA = b"\x7fELF", b"\xbe\x00"
_SECTIONS = (b".nv_fatbin", b"__nv_relfatbin")
_KINDS = ((_ELF, ".cubin"), (b"\x50\xed\x55\xba", ".fatbin"))
_OFFERED = "a path, bytes, or a compiled kernel of Triton (it has .asm['cubin'])"

Named = Iterator[tuple[str, Path]]
"""(name under which it is kept, where it lies)."""


def handed_files(name: str, thing: Any, room: Path) -> Named:
    """The files behind a thing; what is not a file yet is written into the room."""
    if isinstance(thing, (str, Path)):
        yield from _on_disk(name, Path(thing))
    elif isinstance(thing, (bytes, bytearray, memoryview)):
        yield _written(name, bytes(thing), room)
    elif isinstance(getattr(thing, "asm", None), Mapping):
        yield from _compiled(name, thing, room)
    elif isinstance(getattr(thing, "code", None), bytes):
        yield _written(name, thing.code, room)
    else:
        what = f"attach({name!r}) was given a {type(thing).__name__}"
        raise PerfgateError("call-wrong", what, mend=f"hand over {_OFFERED}")


def _on_disk(name: str, path: Path) -> Named:
    if path.is_file():
        yield name, path
        return
    if not path.is_dir():
        raise PerfgateError("call-wrong", f"attach({name!r}) found no file {path}")
    inside = sorted(p for p in path.rglob("*") if p.is_file())
    built = [p for p in inside if p.suffix in MACHINE_CODE]
    files = [p for p in built if not _of_the_host(p)] or built or inside
    if not files or len(files) > MOST_FILES:
        said = f"holds {len(files):,} files, {MOST_FILES:,} at the most" if files else "is empty"
        raise PerfgateError("call-wrong", f"attach({name!r}): the folder {path} {said}")
    yield from ((f"{name}/{file.relative_to(path).as_posix()}", file) for file in files)


def _of_the_host(path: Path) -> bool:
    """Whether an object file or library of a build carries no code of a GPU: nvcc keeps it in a section of its own."""
    if path.suffix not in {".o", ".so"}:
        return False
    content = path.read_bytes()
    return content[:4] == _ELF and content[18:20] != _CUDA and not any(name in content for name in _SECTIONS)


def _compiled(name: str, kernel: Any, room: Path) -> Named:
    """The machine code with its launch beside it; below ``compiled/`` every stage that led to it."""
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
        raise PerfgateError("kernel-none", what, mend=f"hand over {_OFFERED}")
    kept, path = _written(f"{name.removesuffix('.cubin')}.cubin", _raw(stages["cubin"]), room)
    _write_launch(kernel, path.with_suffix(".json"))
    yield kept, path


def _raw(content: Any) -> bytes:
    return content.encode() if isinstance(content, str) else bytes(content)


def _write_launch(kernel: Any, path: Path) -> None:
    """What Triton's metadata says of the launch, as a build writes it beside a cubin."""
    metadata = getattr(kernel, "metadata", None)
    warps = int(getattr(metadata, "num_warps", 0) or 0)
    if warps:
        told = {
            "name": str(getattr(metadata, "name", "")),
            "num_warps": warps,
            "shared": int(getattr(metadata, "shared", 0) or 0),
        }
        path.write_text(json.dumps(told), encoding="utf-8")


def _written(name: str, content: bytes, room: Path) -> tuple[str, Path]:
    """Whole or not at all, below the room whatever the name says."""
    parts = [part for part in Path(name).parts if part not in {"..", "."} and not Path(part).is_absolute()]
    if not parts:
        raise PerfgateError("call-wrong", f"attach({name!r}): this is no name for a file")
    path = room.joinpath(*parts)
    if not path.suffix:
        path = path.with_suffix(next((suffix for magic, suffix in _KINDS if content.startswith(magic)), ""))
    replace_content(path, content)
    return path.relative_to(room).as_posix(), path
