"""Machine code of kernels from cubins, fatbins, object files and directories, by NVIDIA's own disassembler."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from pytest_perfgate.adapters.readers.elf import CubinFile, is_cubin, parse_cubin, read_head
from pytest_perfgate.adapters.readers.tools import tool
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.kernel import Disassembly, Launch

SUFFIXES = (".cubin", ".fatbin", ".o", ".so")
_LARGE = 1 << 17
"""Bytes of code from which the disassembler is shown a sample: it would take seconds."""
_SECONDS = 120
_HOST_ONLY = "does not contain device code"
"""What ``cuobjdump`` says of a whole file without a kernel."""
_NO_ARCH = re.compile(r"architecture|sm version|unsupported arch", re.IGNORECASE)
_DAMAGED = re.compile(r"invalid|not a supported elf|unrecognized operation", re.IGNORECASE)


def read_cubins(paths: Sequence[Path]) -> tuple[Disassembly, ...]:
    """Every cubin in these files and directories, disassembled side by side."""
    with tempfile.TemporaryDirectory(prefix="perfgate-cubin-") as room:
        cubins = [found for path in paths for found in _cubins(Path(path), Path(room))]
        with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
            return tuple(pool.map(lambda pair: _disassembled(*pair), cubins))


def _cubins(path: Path, room: Path) -> Iterator[tuple[Path, str]]:
    """(file, how to name it) of each cubin that a path leads to."""
    if path.is_dir():
        files = sorted(p for p in path.rglob("*") if p.suffix in SUFFIXES and p.is_file())
        if not files:
            raise PerfgateError("kernel-none", f"no {', '.join(SUFFIXES)} file in it", place=str(path))
        found = [pair for file in files for pair in _within(file, room)]
        if not found:
            what = f"none of its {', '.join(SUFFIXES)} files holds code of a GPU"
            raise PerfgateError("kernel-none", what, place=str(path))
        yield from found
    elif is_cubin(read_head(path)):
        yield path, str(path)
    else:
        yield from _extracted(path, room)


def _within(file: Path, room: Path) -> list[tuple[Path, str]]:
    """Of a file of a directory, where object files of the host lie beside those of kernels."""
    try:
        return list(_cubins(file, room))
    except PerfgateError as error:
        if error.code.name == "kernel-none" and _HOST_ONLY in error.what:
            return []
        raise


def _extracted(path: Path, room: Path) -> Iterable[tuple[Path, str]]:
    """Cubins that ``cuobjdump`` finds inside a fatbin, an object file or a library."""
    out = Path(tempfile.mkdtemp(dir=room))
    done = _run([str(tool("cuobjdump")), "--extract-elf", "all", str(path.resolve())], where=out)
    found = sorted(out.iterdir())
    if not found:
        said = (done.stderr or done.stdout).decode("utf-8", "replace").strip().splitlines()
        raise PerfgateError("kernel-none", said[-1] if said else "cuobjdump finds no kernel in it", place=str(path))
    return [(file, f"{path}:{file.name}") for file in found]


def _disassembled(path: Path, name: str) -> Disassembly:
    data = path.read_bytes()
    cubin = parse_cubin(data, name)
    if not cubin.symbols:
        raise PerfgateError("kernel-stripped", "it has code and no symbol of a function", place=name)
    nvdisasm, cuobjdump = str(tool("nvdisasm")), str(tool("cuobjdump"))
    target = str(path.resolve())
    listing = _sampled(cubin, data, name) if _large(cubin) else _listing([nvdisasm, "-json", target], name)
    resources = _run([cuobjdump, "--dump-resource-usage", target])
    return Disassembly(
        source=name,
        arch="",
        listing=listing,
        words=cubin.words,
        resources=resources.stdout.decode("utf-8", "replace"),
        launches=_launches(path),
        bounds=cubin.bounds,
    )


def _large(cubin: CubinFile) -> bool:
    return sum(map(len, cubin.words.values())) > _LARGE


def _sampled(cubin: CubinFile, data: bytes, name: str) -> bytes:
    """A large cubin by one instruction of each encoding."""
    from pytest_perfgate.adapters.readers.sampled import sampled_listing

    with tempfile.TemporaryDirectory(prefix="perfgate-sample-") as room:
        nvdisasm = str(tool("nvdisasm"))
        return sampled_listing(cubin, data, Path(room), lambda words: _listing([nvdisasm, *words], name))


def _listing(command: Sequence[str], name: str) -> bytes:
    done = _run(command)
    if done.returncode or not done.stdout.strip():
        said = done.stderr.decode("utf-8", "replace").replace(f"File {command[-1]}", command[-1])
        said = said.replace(command[-1], "the file").strip()
        raise PerfgateError(_code(said), said.splitlines()[0] if said else "nvdisasm printed nothing", place=name)
    return done.stdout


def _code(said: str) -> str:
    """What is wrong by the disassembler's own words, the name of the file left out."""
    if _NO_ARCH.search(said):
        return "kernel-arch"
    return "kernel-broken" if _DAMAGED.search(said) else "kernel-tool-failed"


def _run(command: Sequence[str], where: Path | None = None) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(
            command, cwd=where, capture_output=True, check=False, timeout=_SECONDS, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise PerfgateError("kernel-tool-failed", f"{Path(command[0]).name}: {error}") from error


def _launches(path: Path) -> Mapping[str, Launch]:
    """The launch that Triton, or a build, wrote beside a cubin: ``NAME.json`` with num_warps and shared."""
    beside = path.with_suffix(".json")
    if not beside.is_file():
        return {}
    try:
        told = json.loads(beside.read_text(encoding="utf-8"))
        warps, shared = int(told["num_warps"]), int(told.get("shared", 0))
        warp = int((told.get("target") or {}).get("warp_size", 32))
    except (ValueError, KeyError, TypeError, AttributeError):
        return {}
    return {str(told.get("name", "")): Launch(block=(warps * warp, 1, 1), shared_dynamic=shared, source=beside.name)}
