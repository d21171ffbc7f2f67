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

from pytest_perfgate.adapters.readers.elf import CubinFile, architecture, is_cubin, parse_cubin, read_head
from pytest_perfgate.adapters.readers.strangers import AMD_MACHINE, elf_machine, only_ptx, stranger
from pytest_perfgate.adapters.readers.tools import tool
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.kernel import Disassembly, Launch
from pytest_perfgate.model.values import value

SUFFIXES = (".cubin", ".fatbin", ".o", ".so")
_LARGE = 1 << 17
"""Bytes of code from which the disassembler is shown a sample: it would take seconds."""
_FEW = 2
"""Files of one architecture up to which each is shown whole: the disassembler takes half a second to start."""
_SECONDS, _HEAD = 120, 4096
_IT_IS = "it is "
"""How an error begins that says what a file is instead."""
_HOST_ONLY = "does not contain device code"
"""What ``cuobjdump`` says of a whole file without a kernel."""
_NO_ARCH = re.compile(r"architecture|sm version|unsupported arch|compatibility section", re.IGNORECASE)
_DAMAGED = re.compile(r"invalid|not a supported elf|unrecognized operation|out of data", re.IGNORECASE)


def read_cubins(paths: Sequence[Path]) -> tuple[Disassembly, ...]:
    """Every cubin in these files and directories, disassembled side by side."""
    with tempfile.TemporaryDirectory(prefix="perfgate-cubin-") as room:
        cubins = [_opened(*found) for path in paths for found in _cubins(Path(path), Path(room))]
        with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
            resources = pool.map(_resources, cubins)
            listings = {key: text for part in pool.map(_listings, _batches(cubins)) for key, text in part.items()}
            return tuple(_disassembly(one, listings[one.name], said) for one, said in zip(cubins, resources))


@value
class _Opened:
    """A cubin that was read, and how to name it."""

    path: Path
    name: str
    data: bytes
    code: CubinFile

    @property
    def large(self) -> bool:
        return sum(map(len, self.code.words.values())) > _LARGE


def _opened(path: Path, name: str) -> _Opened:
    data = path.read_bytes()
    code = parse_cubin(data, name)
    if not code.symbols:
        raise PerfgateError("kernel-stripped", "it has code and no symbol of a function", place=name)
    return _Opened(path=path, name=name, data=data, code=code)


def _batches(cubins: Sequence[_Opened]) -> list[list[_Opened]]:
    """What one call of the disassembler reads: all files of an architecture, where there are many or one is large."""
    by_arch: dict[int, list[_Opened]] = {}
    for one in cubins:
        by_arch.setdefault(architecture(one.data), []).append(one)
    apart = [len(alike) <= _FEW and not any(one.large for one in alike) for alike in by_arch.values()]
    return [
        batch
        for alone, alike in zip(apart, by_arch.values())
        for batch in ([[one] for one in alike] if alone else [alike])
    ]


def _listings(batch: Sequence[_Opened]) -> dict[str, bytes]:
    """Listings by name of the file; what cannot be read together is halved until the one that stops it is alone."""
    if len(batch) == 1 and not batch[0].large:
        return {batch[0].name: _whole(batch[0])}
    try:
        return _sampled(batch)
    except PerfgateError:
        if len(batch) == 1:
            raise
    half = len(batch) // 2
    return {**_listings(batch[:half]), **_listings(batch[half:])}


def _whole(one: _Opened) -> bytes:
    return _listing([str(tool("nvdisasm")), "-json", str(one.path.resolve())], one.name)


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
    elif _is_alien(path):
        raise _no_kernel(path, "")
    else:
        yield from _extracted(path, room)


def _within(file: Path, room: Path) -> list[tuple[Path, str]]:
    """Of a file of a directory, where object files of the host lie beside those of kernels."""
    try:
        return list(_cubins(file, room))
    except PerfgateError as error:
        if error.code.name == "kernel-none" and error.what.startswith(_IT_IS):
            return []
        raise


def _is_alien(path: Path) -> bool:
    """Whether nothing of NVIDIA can be in it; object files of the host may hold a fatbin."""
    head = read_head(path, _HEAD)
    return bool(stranger(head)[0]) and elf_machine(head) in {None, AMD_MACHINE}


def _extracted(path: Path, room: Path) -> Iterable[tuple[Path, str]]:
    """Cubins that ``cuobjdump`` finds inside a fatbin, an object file or a library."""
    out = Path(tempfile.mkdtemp(dir=room))
    done = _run([str(tool("cuobjdump")), "--extract-elf", "all", str(path.resolve())], where=out)
    found = sorted(out.iterdir())
    if not found:
        raise _no_kernel(path, (done.stderr or done.stdout).decode("utf-8", "replace").strip())
    return [(file, f"{path}:{file.name}") for file in found]


def _no_kernel(path: Path, said: str) -> PerfgateError:
    """What it is instead, as far as its first bytes or the tool say."""
    ptx, (is_a, mend) = only_ptx(said), stranger(read_head(path, _HEAD))
    if ptx is not None:
        return PerfgateError("kernel-none", ptx[0], place=str(path), mend=ptx[1])
    if is_a and (_HOST_ONLY in said or not said):
        return PerfgateError("kernel-none", f"{_IT_IS}{is_a}", place=str(path), mend=mend)
    last = said.splitlines()[-1].replace(f"'{path.resolve()}'", "it") if said else "cuobjdump finds no kernel in it"
    return PerfgateError("kernel-none", last.partition(" : ")[2].strip() or last, place=str(path))


def _resources(one: _Opened) -> str:
    done = _run([str(tool("cuobjdump")), "--dump-resource-usage", str(one.path.resolve())])
    return done.stdout.decode("utf-8", "replace")


def _disassembly(one: _Opened, listing: bytes, resources: str) -> Disassembly:
    return Disassembly(
        source=one.name,
        arch="",
        listing=listing,
        words=one.code.words,
        resources=resources,
        launches=_launches(one.path),
        bounds=one.code.bounds,
    )


def _sampled(batch: Sequence[_Opened]) -> dict[str, bytes]:
    """Files of one architecture by one instruction of each encoding."""
    from pytest_perfgate.adapters.readers.sampled import sampled_listings

    names = ", ".join(one.name for one in batch[:3])
    with tempfile.TemporaryDirectory(prefix="perfgate-sample-") as room:
        nvdisasm = str(tool("nvdisasm"))
        files = [(one.code, one.data) for one in batch]
        told = sampled_listings(files, Path(room), lambda words: _listing([nvdisasm, *words], names))
    return {one.name: listing for one, listing in zip(batch, told)}


def _listing(command: Sequence[str], name: str) -> bytes:
    done = _run(command)
    if done.returncode or not done.stdout.strip():
        said = done.stderr.decode("utf-8", "replace")
        for called in (f"Elf file {command[-1]}", f"File {command[-1]}", command[-1]):
            said = said.replace(called, "the file")
        first = said.strip().splitlines()[0] if said.strip() else "nvdisasm printed nothing"
        raise PerfgateError(_code(said), first.partition(" : ")[2].strip() or first, place=name)
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
