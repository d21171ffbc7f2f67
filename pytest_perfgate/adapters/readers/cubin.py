"""Machine code, disassembled by nvdisasm."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from pytest_perfgate.adapters.readers.cubin_elf import (
    AMD_MACHINE,
    MACHINES,
    CubinFile,
    architecture,
    check_not_cut,
    elf_machine,
    is_cubin,
    parse_cubin,
    read_head,
)
from pytest_perfgate.adapters.system.processes import run_captured
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.profiles import CODE_SUFFIXES, PTXAS_LOG, SOURCE, Disassembly, Launch
from pytest_perfgate.model.values import value

_ALWAYS_CODE = (".cubin", ".fatbin")

_LARGE = 1 << 17
"""Bytes of code above which only a sample is disassembled: the rest would take seconds."""

_FEW = 2
"""Number of files of one architecture up to which each is disassembled whole: each start takes half a second."""

_SECONDS, _HEAD = 120, 4096

_IT_IS = "it is "
"""The start of an error that says what a file is instead."""

_NOT_COMPILED = "No ELF file found"
"""What ``cuobjdump`` prints for a file that contains only PTX or code for the linker."""

_FATAL = "fatal"
"""The word with which it marks a fatal error, even halfway."""

FATBIN = b"\x50\xed\x55\xba"

_NO_ARCH = re.compile(r"(?i)architecture|sm version|unsupported arch|compatibility section|for option 'binary'")

_DAMAGED = re.compile(
    r"invalid|not a supported elf|unrecognized operation|illegal instruction|out of data", re.IGNORECASE
)

_TOO_OLD, _NO_VOLTA, _REMOVED, _NO_JSON = "deprecated", "'SM7", "has been removed", "Unknown option 'json'"
_CRASHED = "nvdisasm printed nothing"
"""Messages of tools that no longer support an architecture, and of a disassembler that cannot print JSON."""

_OLDER = "put the bin folder of an older CUDA toolkit on PATH, such as that of 12.9 or 11.8"

_FIRST_ARCH, _INSTRUCTION = 70, 16
"""The first architecture with instructions of sixteen bytes, which include the scheduling."""


def read_cubins(paths: Sequence[Path], build: Sequence[str] = ()) -> tuple[Disassembly, ...]:
    """Return every cubin in these files and directories, disassembled, and every log of ``ptxas -v``.

    ``build`` is the command that compiles a source.
    """
    logs = [path for path in map(Path, paths) if path.is_file() and PTXAS_LOG in b"\n" + read_head(path, _HEAD)]
    printed = tuple(
        Disassembly(source=str(path), arch="", listing=b"", words={}, resources={},
                    log=path.read_text(encoding="utf-8", errors="replace"))
        for path in logs
    )  # fmt: skip
    return (*printed, *_disassemble([path for path in map(Path, paths) if path not in logs], build))


def _disassemble(paths: Sequence[Path], build: Sequence[str]) -> tuple[Disassembly, ...]:
    with tempfile.TemporaryDirectory(prefix="perfgate-cubin-") as room:
        cubins = [cubin for path in paths for cubin in _with_kernels(path, Path(room), build)]
        with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
            answers = list(pool.map(_known_listings, _batches(cubins)))
        listings = {name: text for part in answers if isinstance(part, dict) for name, text in part.items()}
        unread = [cubin for cubin in cubins if cubin.name not in listings]
        if unread and (not listings or any(cubin.name == str(cubin.path) for cubin in unread)):
            raise next(part for part in answers if isinstance(part, PerfgateError))
        left_out = tuple(f"sm_{arch}" for arch in sorted({architecture(cubin.data) for cubin in unread}))
        readable = (cubin for cubin in cubins if cubin.name in listings)
        return tuple(_disassembly(cubin, listings[cubin.name], left_out) for cubin in readable)


@value
class _Opened:
    """A cubin that was read, and its name for messages."""

    path: Path
    name: str
    data: bytes
    code: CubinFile

    @property
    def large(self) -> bool:
        return sum(map(len, self.code.words.values())) > _LARGE


def _with_kernels(path: Path, room: Path, build: Sequence[str]) -> list[_Opened]:
    """Return the cubins of a path, without those that hold only data, or functions for others to call."""
    cubins = [_compile(path, room, build)] if path.suffix == SOURCE else _cubins(path, room)
    opened = [_open(*cubin) for cubin in cubins]
    launched = [one for one in opened if one.code.kernels]
    if not launched:
        names = ", ".join(sorted({name for one in opened for name in one.code.symbols})[:4])
        what = f"it holds functions that kernels call ({names}), and no kernel" if names else "it holds no code"
        raise PerfgateError("kernel-none", what, place=str(path), fix="name the file that it is linked into")
    return launched


def _compile(path: Path, room: Path, build: Sequence[str]) -> tuple[Path, str]:
    """Return the cubin that the command compiles from a source; its flags decide the code, so none are assumed."""
    if not build:
        fix = f"--set build='nvcc -arch=sm_90 -O3' with your flags; or name what it made: {path.stem}.cubin"
        raise PerfgateError("kernel-option", "a source needs the command that compiles it", place=str(path), fix=fix)
    out = Path(tempfile.mkdtemp(dir=room)) / f"{path.stem}.cubin"
    fix = "fix the source, or the command that build= names: perfgate adds -cubin -o FILE and the source"
    done = _run([*build, "-cubin", "-o", str(out), str(path.resolve())], fix=fix)
    if done.returncode or not out.is_file():
        lines = (done.stderr or done.stdout).decode("utf-8", "replace").strip().splitlines()
        what = next((line for line in lines if "error" in line or "fatal" in line), "it wrote no cubin")
        raise PerfgateError("kernel-tool-failed", f"{build[0]}: {what}", place=str(path), fix=fix)
    return out, str(path)


def _open(path: Path, name: str) -> _Opened:
    data = path.read_bytes()
    code = parse_cubin(data, name)
    if code.words and not code.symbols:
        raise PerfgateError("kernel-stripped", "it has code and no symbol of a function", place=name)
    if architecture(data) >= _FIRST_ARCH and any(len(words) % _INSTRUCTION for words in code.words.values()):
        raise PerfgateError("kernel-broken", "a function ends inside an instruction", place=name)
    return _Opened(path=path, name=name, data=data, code=code)


def _batches(cubins: Sequence[_Opened]) -> list[list[_Opened]]:
    """Return batches for the disassembler: all files of an architecture if there are many, or one is large."""
    by_arch: dict[int, list[_Opened]] = {}
    for cubin in cubins:
        by_arch.setdefault(architecture(cubin.data), []).append(cubin)
    batches: list[list[_Opened]] = []
    for alike in by_arch.values():
        together = len(alike) > _FEW or any(cubin.large for cubin in alike)
        batches += [alike] if together else [[cubin] for cubin in alike]
    return batches


def _known_listings(batch: Sequence[_Opened]) -> dict[str, bytes] | PerfgateError:
    """Return the listings of one architecture, or that it is not read: a library has code for many."""
    arch = architecture(batch[0].data)
    if arch < _FIRST_ARCH:
        what = f"it is compiled for sm_{arch}, and machine code from before sm_{_FIRST_ARCH} is not read here"
        fix = f"compile it for sm_{_FIRST_ARCH} or a later one"
        return PerfgateError("kernel-arch", what, place=batch[0].name, fix=fix)
    try:
        return _listings(batch)
    except PerfgateError as error:
        if error.code.name != "kernel-arch":
            raise
        return error


def _listings(batch: Sequence[_Opened]) -> dict[str, bytes]:
    """Return listings by file name; a batch that fails is halved until the failing file is alone."""
    if len(batch) == 1 and not batch[0].large:
        return {batch[0].name: _full_listing(batch[0])}
    try:
        return _list_by_samples(batch)
    except PerfgateError:
        if len(batch) == 1:
            raise
    half = len(batch) // 2
    return {**_listings(batch[:half]), **_listings(batch[half:])}


def _full_listing(cubin: _Opened) -> bytes:
    """Return the listing as printed; by a sample if the tool or the file's names prevent JSON, or the tool crashes."""
    try:
        listing = _listing(["-json", str(cubin.path.resolve())], cubin.name)
        json.loads(listing)
    except PerfgateError as error:
        if not any(text in error.what for text in (_NO_JSON, _TOO_OLD, _CRASHED)):
            raise
    except ValueError:
        pass
    else:
        return listing
    return _list_by_samples([cubin])[cubin.name]


def _cubins(path: Path, room: Path) -> Iterator[tuple[Path, str]]:
    """Yield (file, name) of each cubin that a path leads to."""
    if path.is_dir():
        files = sorted(p for p in path.rglob("*") if p.suffix in CODE_SUFFIXES and p.is_file())
        if not files:
            raise PerfgateError("kernel-none", f"no {', '.join(CODE_SUFFIXES)} file in it", place=str(path))
        pairs = [pair for file in files for pair in _cubins_of_file(file, room)]
        if not pairs:
            what = f"none of its {', '.join(CODE_SUFFIXES)} files holds code of a GPU"
            raise PerfgateError("kernel-none", what, place=str(path))
        yield from pairs
    elif is_cubin(read_head(path)):
        yield path, str(path)
    elif _lacks_cuda_code(path):
        raise _no_kernel(path, "")
    else:
        yield from _extract(path, room)


def _cubins_of_file(file: Path, room: Path) -> list[tuple[Path, str]]:
    """Return the cubins of a file in a directory; none for an object file of the host, but code of AMD is refused."""
    try:
        return list(_cubins(file, room))
    except PerfgateError as error:
        ignored = file.suffix not in _ALWAYS_CODE and error.what.startswith(_IT_IS) and error.fix != _ROCPROF
        if error.code.name == "kernel-none" and ignored:
            return []
        raise


def _lacks_cuda_code(path: Path) -> bool:
    """Return whether the file cannot contain NVIDIA's code; archives and host objects may hold a fatbin."""
    head = read_head(path, _HEAD)
    return bool(foreign_kind(head)[0]) and elf_machine(head) in {None, AMD_MACHINE} and not head.startswith(ARCHIVE)


def _extract(path: Path, room: Path) -> Iterable[tuple[Path, str]]:
    """Return the cubins that ``cuobjdump`` finds in a fatbin, an object file, a library or an archive."""
    out = Path(tempfile.mkdtemp(dir=room))
    result = _run([str(tool("cuobjdump")), "--extract-elf", "all", str(path.resolve())], where=out)
    extracted = sorted(out.iterdir())
    output = (result.stderr or result.stdout).decode("utf-8", "replace").strip()
    head = read_head(path)
    if elf_machine(head) is not None:
        check_not_cut(path.read_bytes(), str(path))
    holds_code = bool(extracted) or head.startswith((FATBIN, ARCHIVE)) or elf_machine(head) is not None
    if result.returncode and _FATAL in output and holds_code:
        code, fix = ("kernel-arch", _OLDER) if _REMOVED in output else ("kernel-broken", "")
        raise PerfgateError(code, f"cuobjdump says: {_last_line(output, path)}", place=str(path), fix=fix)
    if not extracted:
        raise _no_kernel(path, output)
    return [(file, f"{path}:{file.name}") for file in extracted]


def _last_line(output: str, path: Path) -> str:
    last = output.splitlines()[-1].replace(f"'{path.resolve()}'", "it") if output else "nothing"
    return last.partition(" : ")[2].strip() or last


def _no_kernel(path: Path, output: str) -> PerfgateError:
    """Return the error for a file without a kernel, with its kind by its first bytes or the tool."""
    is_a, fix = foreign_kind(head := read_head(path, _HEAD))
    if _NOT_COMPILED in output:
        listed = _run([str(tool("cuobjdump")), "--list-ptx", str(path.resolve())]).stdout
        what, fix = not_compiled(listed.decode("utf-8", "replace"))
        return PerfgateError("kernel-none", what, place=str(path), fix=fix)
    if is_a:
        return PerfgateError("kernel-none", f"{_IT_IS}{is_a}", place=str(path), fix=fix)
    what = "neither a cubin nor a file that holds one" if head.strip() else "the file is empty"
    return PerfgateError("kernel-none", what, place=str(path))


def _disassembly(cubin: _Opened, listing: bytes, left_out: tuple[str, ...]) -> Disassembly:
    return Disassembly(
        source=cubin.name, arch="", listing=listing, words=cubin.code.words, resources=cubin.code.kernels,
        launches=stated_launches(cubin.path), bounds=cubin.code.bounds, left_out=left_out,
    )  # fmt: skip


def _list_by_samples(batch: Sequence[_Opened]) -> dict[str, bytes]:
    """Return listings of files of one architecture, from one instruction of each encoding."""
    from pytest_perfgate.adapters.readers.cubin_elf import sampled_listings

    names = ", ".join(cubin.name for cubin in batch[:3])
    with tempfile.TemporaryDirectory(prefix="perfgate-sample-") as room:
        files = [(cubin.code, cubin.data) for cubin in batch]
        listings = sampled_listings(files, Path(room), lambda words: _listing(words, names))
    return {cubin.name: listing for cubin, listing in zip(batch, listings)}


def _listing(arguments: Sequence[str], name: str) -> bytes:
    """Return the output of the first disassembler that supports the architecture and the options."""
    failures = []
    for program in every_tool("nvdisasm"):
        result = _run([str(program), *arguments])
        if result.stdout.strip() and not result.returncode:
            return result.stdout
        failures.append(_failure(result.stderr.decode("utf-8", "replace"), arguments[-1], name))
        if failures[-1].code.name != "kernel-arch" and _NO_JSON not in failures[-1].what:
            break
    raise failures[-1]


def _failure(output: str, file: str, name: str) -> PerfgateError:
    for called in (f"Elf file {file}", f"File {file}", file):
        output = output.replace(called, "the file")
    first = output.strip().splitlines()[0] if output.strip() else _CRASHED
    fix = _OLDER if _TOO_OLD in output or _NO_VOLTA in output else ""
    damaged = "kernel-broken" if _DAMAGED.search(output) else "kernel-tool-failed"
    code = "kernel-arch" if _NO_ARCH.search(output) else damaged
    return PerfgateError(code, first.partition(" : ")[2].strip() or first, place=name, fix=fix)


def _run(command: Sequence[str], where: Path | None = None, fix: str = "") -> subprocess.CompletedProcess[bytes]:
    try:
        return run_captured(command, _SECONDS, folder=where)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise PerfgateError("kernel-tool-failed", f"{Path(command[0]).name}: {error}", fix=fix) from error


def stated_launches(path: Path) -> Mapping[str, Launch]:
    """Return the launch written beside a cubin by Triton or a build: ``NAME.json`` with num_warps and shared."""
    note = path.with_suffix(".json")
    try:
        data = json.loads(note.read_text(encoding="utf-8"))
        warps, shared = int(data["num_warps"]), int(data.get("shared", 0))
        warp = int((data.get("target") or {}).get("warp_size", 32))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        return {}
    launch = Launch(block=(warps * warp, 1, 1), shared_dynamic=shared, source=note.name)
    return {str(data.get("name", "")): launch} if min(warps, warp) > 0 <= shared and launch.threads <= 1024 else {}


_FOLDERS = ("nvidia/*/bin", "triton/backends/nvidia/bin")
"""Folders of site-packages: NVIDIA's own wheels, then Triton's tools."""


def tool(name: str) -> Path:
    """Return the path of a tool; the error names the extra that installs it."""
    return every_tool(name)[0]


def every_tool(name: str) -> tuple[Path, ...]:
    """Return every place of a tool, since an older toolkit on PATH may lack what a wheel supports."""
    tools = tuple(dict.fromkeys(_tool_paths(name)))
    if not tools:
        raise PerfgateError("kernel-tool", f"{name} is neither on PATH nor among the installed wheels")
    return tools


def _tool_paths(name: str) -> Iterator[Path]:
    on_path = shutil.which(name)
    if on_path:
        yield Path(on_path)
    for entry in filter(None, sys.path):
        for folder in _FOLDERS:
            for place in sorted(Path(entry).glob(folder), reverse=True):
                if (place / name).is_file():
                    yield place / name


ARCHIVE = b"!<arch>\n"

_MARKS = (
    (b"__CLANG_OFFLOAD_BUNDLE__", "a bundle of clang, which holds code for GPUs of AMD"),
    (b"CCOB", "a compressed bundle of clang, which holds code for GPUs of AMD"),
    (b"BC\xc0\xde", "bitcode of LLVM, which no assembler has seen yet"),
    (ARCHIVE, "an archive, without code of an NVIDIA GPU"),
    (b"\x1f\x8b", "packed with gzip: unpack it"),
    (b"PK\x03\x04", "a zip archive: unpack it"),
    (b"\0asm", "WebAssembly"),
    (b"\xcf\xfa\xed\xfe", "an object file of macOS"),
)

_PTX = re.compile(rb"^\s*\.version\s+\d[^\0]*^\s*\.target\s+sm_\d+", re.MULTILINE)

_ROCPROF = "registers and counters of AMD's kernels come from rocprof: name its CSV files"

_PTXAS = "compile it: ptxas -arch=sm_90 FILE.ptx -o FILE.cubin, or nvcc -arch=sm_90"


def foreign_kind(head: bytes) -> tuple[str, str]:
    """Return (kind, what to do instead) by the first bytes; empty texts if unknown."""
    if _PTX.search(head):
        return "PTX, which ptxas has not compiled yet", _PTXAS
    machine = elf_machine(head)
    if machine is not None:
        named = MACHINES.get(machine, f"machine {machine}")
        return f"an ELF file of {named}, without code of an NVIDIA GPU", _ROCPROF if machine == AMD_MACHINE else ""
    kind = next((kind for mark, kind in _MARKS if head.startswith(mark)), "")
    return kind, _ROCPROF if "AMD" in kind else ""


def not_compiled(listed: str) -> tuple[str, str]:
    """Return (kind, what to do) for a file without machine code, by the PTX that ``cuobjdump`` lists."""
    if "PTX file" in listed:
        return "it holds PTX and no machine code: the driver compiles it", _PTXAS
    return "it holds code for the linker (LTO-IR) and no machine code", "link it, and name what the linker writes"
