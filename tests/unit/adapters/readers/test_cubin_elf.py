"""Tests of adapters/readers/cubin_elf."""

from __future__ import annotations

import json
import os
import re
import struct
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from pytest_perfgate.adapters.devices.visible import DeviceCatalogue
from pytest_perfgate.adapters.readers import cubin
from pytest_perfgate.adapters.readers.cubin import read_cubins
from pytest_perfgate.adapters.readers.cubin_elf import _entry, _representatives, architecture, parse_cubin
from pytest_perfgate.app.inspections.cubin import Cubin
from pytest_perfgate.core.analysis.kernels.diagnosis import diagnose
from pytest_perfgate.core.analysis.kernels.metrics import metrics_of
from pytest_perfgate.core.analysis.kernels.sass_facts import kernels, loops, spilled, unread_note
from pytest_perfgate.core.judge.against_limit import judge_artifact
from pytest_perfgate.core.limits.grammar import parse_limit
from pytest_perfgate.core.metric_kinds import by_name
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.plan import Outcome
from pytest_perfgate.model.profiles import KernelCode, KernelFacts
from tests.kernels import ARTIFACTS, CUBINS, FILES, listing_of
from tests.tools import has_tools

needs_cuobjdump = pytest.mark.skipif(not has_tools("cuobjdump"), reason="cuobjdump is not installed (extra: ncu)")
needs_both = pytest.mark.skipif(
    not has_tools("cuobjdump", "nvdisasm"),
    reason="nvdisasm and cuobjdump are not installed (extra: ncu)",
)
PACKED = ARTIFACTS / "variants.tar.xz"
DRIVERS_OWN = 1024
"""Bytes of shared memory that a cubin from sm_90 on counts among a block's, and its assembler does not."""
_USED = re.compile(r"Function (\w+):\s+REG:(\d+) STACK:(\d+) SHARED:(\d+) LOCAL:(\d+) .*?CONSTANT\[0\]:(\d+)")

_FIELDS = ("registers", "stack", "shared", "local")


@pytest.fixture(scope="module")
def variants() -> dict[str, bytes]:
    with tarfile.open(PACKED) as packed:
        return {entry.name: packed.extractfile(entry).read() for entry in packed}


def test_every_assembler_says_of_every_architecture_what_the_file_says(variants: dict[str, bytes]) -> None:
    """Registers, shared memory and stack: 12.1 for sm_90 is one of which cuobjdump 13 finds no code."""
    every = json.loads(variants["said.json"])
    assert len(every) > 90
    assert {name.rpartition(".sm_")[0] for name in every} == {"11.8.89", "12.1.105", "12.4.131", "12.9.86", "13.5.37"}
    for name, expected in every.items():
        parsed = parse_cubin(variants[name], name)
        number = int(re.search(r"sm_(\d+)", name)[1])
        own = DRIVERS_OWN if number >= 90 else 0
        assert architecture(variants[name]) == number, name
        assert {k: [r.registers, max(0, r.shared - own), r.stack] for k, r in parsed.kernels.items()} == expected, name
        assert parsed.bounds == {"plain": 256}, name
        assert set(parsed.kernels) == {"plain", "framed", "calling"}, "the function that one calls is none"


def test_resources_are_what_cuobjdump_says_of_the_committed_kernels() -> None:
    for name in FILES:
        expected = {
            function: dict(zip(_FIELDS, map(int, numbers)))
            for function, *numbers in _USED.findall(listing_of(name)["resources"])
        }
        assert expected
        for function, resources in parse_cubin((CUBINS / name).read_bytes(), name).kernels.items():
            assert {field: getattr(resources, field) for field in _FIELDS} == expected.pop(function), name
        assert not expected


def written(folder: Path, variants: dict[str, bytes], *names: str) -> list[Path]:
    for name in names:
        (folder / name).write_bytes(variants[name])
    return [folder / name for name in names]


@pytest.fixture
def opened(tmp_path: Path):
    """What is found in files, without the disassembler, which takes half a second."""

    def kernels_of(*paths: Path) -> list[tuple[str, str]]:
        room = tmp_path / "room"
        room.mkdir(exist_ok=True)
        every = [one for path in paths for one in cubin._with_kernels(path, room, ())]
        return [(name, f"sm_{architecture(one.data)}") for one in every for name in one.code.kernels]

    return kernels_of


@needs_cuobjdump
@pytest.mark.parametrize(
    "name",
    ["stored.fatbin", "packed.fatbin", "with_ptx.fatbin", "object.o", "relocatable.o", "program", "archive.a"],
)
def test_a_kernel_is_found_in_every_wrapping_once(tmp_path: Path, variants, opened, name: str) -> None:
    (path,) = written(tmp_path, variants, name)
    assert opened(path) == [("kernel", "sm_80"), ("kernel", "sm_90")]


@needs_cuobjdump
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("function.o", "functions that kernels call (_Z6scaledf), and no kernel"),
        ("ptx_alone.fatbin", "PTX and no machine code"),
        ("link_time.o", "code for the linker (LTO-IR)"),
        ("host.o", "an ELF file of"),
    ],
)
def test_what_holds_no_kernel_says_what_it_holds(tmp_path: Path, variants, opened, name: str, message: str) -> None:
    (path,) = written(tmp_path, variants, name)
    with pytest.raises(PerfgateError, match=re.escape(message)) as caught:
        opened(path)
    assert caught.value.code.name == "kernel-none"


@needs_cuobjdump
def test_a_folder_passes_over_the_host_and_functions_and_nothing_that_is_damaged(
    tmp_path: Path, variants, opened
) -> None:
    build = tmp_path / "build"
    build.mkdir()
    written(build, variants, "object.o", "host.o", "function.o")
    assert opened(build) == [("kernel", "sm_80"), ("kernel", "sm_90")]
    for name, data in (("cut.o", variants["object.o"][:-900]), ("packed.cubin", b"\x1f\x8b" + bytes(60))):
        (build / name).write_bytes(data)
        with pytest.raises(PerfgateError) as caught:
            opened(build)
        assert caught.value.place == str(build / name)
        (build / name).unlink()


@needs_cuobjdump
@pytest.mark.parametrize("name", ["stored.fatbin", "packed.fatbin", "object.o", "program"])
def test_a_wrapping_that_is_cut_anywhere_is_damaged(tmp_path: Path, variants, opened, name: str) -> None:
    whole = variants[name]
    for end in (len(whole) // 3, len(whole) * 2 // 3, len(whole) - 1):
        (tmp_path / name).write_bytes(whole[:end])
        with pytest.raises(PerfgateError) as caught:
            opened(tmp_path / name)
        assert caught.value.code.name == "kernel-broken", end


@needs_cuobjdump
def test_a_fatbin_whose_second_part_is_damaged_is_not_half_read(tmp_path: Path, variants, opened) -> None:
    data = bytearray(variants["stored.fatbin"])
    _, _, head, size = struct.unpack_from("<HHIQ", data, 16)
    struct.pack_into("<Q", data, 16 + head + size + 8, 1 << 40)
    (tmp_path / "half.fatbin").write_bytes(data)
    with pytest.raises(PerfgateError, match="Invalid fatbin"):
        opened(tmp_path / "half.fatbin")


def sections(data: bytes) -> Iterator[tuple[int, int]]:
    """(offset, end) of each section that takes room."""
    (offset,), (count,) = struct.unpack_from("<Q", data, 40), struct.unpack_from("<H", data, 60)
    for number in range(count):
        _, kind, _, _, begin, size, *_ = struct.unpack_from("<IIQQQQIIQQ", data, offset + 64 * number)
        if kind not in {0, 8}:
            yield begin, begin + size


@pytest.mark.parametrize("name", ["11.8.89.sm_90.cubin", "12.4.131.sm_61.cubin", "13.5.37.sm_121a.cubin"])
def test_a_cubin_that_ends_at_any_section_is_damaged(variants: dict[str, bytes], name: str) -> None:
    data = variants[name]
    ends = {at for section in sections(data) for at in section if 64 <= at < len(data)}
    assert len(ends) > 10
    for end in ends:
        with pytest.raises(PerfgateError) as caught:
            parse_cubin(data[:end], name)
        assert caught.value.code.name == "kernel-broken", end


def test_attributes_that_nobody_knows_are_stepped_over_and_damaged_ones_refused(variants: dict[str, bytes]) -> None:
    data = variants["13.5.37.sm_90.cubin"]
    whole = parse_cubin(data, "x")
    bounds = struct.pack("<BBHIII", 4, 0x05, 12, 128, 2, 1)
    at = data.index(bounds)
    new = data[: at + 1] + b"\xf7" + data[at + 2 :]
    assert parse_cubin(new, "x").bounds == {}
    assert parse_cubin(new, "x").kernels == whole.kernels
    with pytest.raises(PerfgateError, match="runs over the end"):
        parse_cubin(data[: at + 2] + struct.pack("<H", 60000) + data[at + 4 :], "x")
    with pytest.raises(PerfgateError, match="how many registers"):
        parse_cubin(data.replace(b".nv.info\0", b".xx.info\0"), "x")


@pytest.mark.parametrize(("name", "fix"), [("12.4.131.sm_50.cubin", "sm_70"), ("12.4.131.sm_61.cubin", "sm_70")])
def test_an_architecture_with_other_instructions_is_refused(tmp_path: Path, variants, name: str, fix: str) -> None:
    (path,) = written(tmp_path, variants, name)
    with pytest.raises(PerfgateError, match="before sm_70") as caught:
        read_cubins([path])
    assert (caught.value.code.name, fix in caught.value.fix) == ("kernel-arch", True)


def fatbin(*cubins: bytes) -> bytes:
    """Return the cubins as a library holds them: a header, then one entry for each."""
    entries = b""
    for cubin_ in cubins:
        padded = cubin_ + bytes(-len(cubin_) % 8)
        head = struct.pack(
            "<HHIQIIHHIIIQQQ", 2, 0x101, 64, len(padded), 0, 0, 8, 1, architecture(cubin_), 0, 0, 17, 0, 0
        )
        entries += head + padded
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(entries)) + entries


@needs_both
@pytest.mark.parametrize(
    ("old", "left_out"),
    [
        (["12.4.131.sm_50.cubin", "12.4.131.sm_61.cubin"], "sm_50, sm_61"),
        (["12.4.131.sm_61.cubin"], "sm_61"),
        ([], ""),
    ],
)
def test_a_library_is_read_without_the_architectures_that_are_not(tmp_path, variants, old, left_out) -> None:
    path = tmp_path / "lib.fatbin"
    path.write_bytes(fatbin(*(variants[name] for name in old), (CUBINS / "copy.sm_80.cubin").read_bytes()))
    facts = [k for code in read_cubins([path]) for k in kernels(code)]
    assert {(k.name, k.arch) for k in facts} == {("copy_wide", "sm_80"), ("copy_narrow", "sm_80")}
    assert unread_note(facts) == (f"without the code for {left_out}, which is not read" if left_out else "")


@needs_both
def test_a_library_of_old_architectures_alone_is_refused(tmp_path, variants) -> None:
    path = tmp_path / "lib.fatbin"
    path.write_bytes(fatbin(variants["12.4.131.sm_50.cubin"], variants["12.4.131.sm_61.cubin"]))
    with pytest.raises(PerfgateError, match="before sm_70") as caught:
        read_cubins([path])
    assert caught.value.code.name == "kernel-arch"


def test_a_function_that_calls_itself_has_no_bytes_of_spills_rather_than_none(variants: dict[str, bytes]) -> None:
    """Its stack is told as zero, though it stores to it."""
    resources = parse_cubin(variants["recursive.cubin"], "x").kernels["recursive"]
    assert resources.stack == 0
    code = KernelCode(opcodes=("STL", "LDL", "EXIT"), operands=("",) * 3, predicates=("",) * 3)
    facts = KernelFacts(name="recursive", arch="sm_90", code=code, resources=resources)
    assert spilled(facts) is None
    metrics = metrics_of([diagnose(facts, "recursive", None)], "cubin")
    assert not metrics.find("spills")
    assert "2 LDL and STL use a stack of no fixed size" in metrics.missing("spills").why


UNLINKED = ARTIFACTS / "odd" / "unlinked.cubin"


def test_an_object_that_is_not_linked_does_not_say_what_the_linker_settles() -> None:
    """A tile of a kilobyte and a stack of any depth: both read zero in the file."""
    parts = {name: r.unstated for name, r in parse_cubin(UNLINKED.read_bytes(), "x").kernels.items()}
    assert parts == {"alone": (), "tile": ("shared",), "caller": ("shared", "stack", "registers")}


def test_an_object_for_an_older_gpu_has_relocations_of_two_kinds() -> None:
    """Those of data have no addends before Hopper: a tile of the whole file read zero bytes there."""
    kernels = parse_cubin((ARTIFACTS / "odd" / "unlinked_sm80.cubin").read_bytes(), "x").kernels
    assert {name: (r.unstated, r.shared) for name, r in kernels.items()} == {
        "own_tile": ((), 256),
        "tile_of_file": (("shared",), 0),
        "caller_of_file": (("shared", "stack", "registers"), 0),
    }


@needs_both
def test_limits_on_what_the_linker_settles_are_not_measured() -> None:
    """The disassembler crashes as it writes JSON of this file, so a sample is taken."""
    text = "occupancy_limit(threads=256) >= 1%"
    analysis = Cubin(read_cubins, DeviceCatalogue).inspect([UNLINKED], {"limits": text})
    expected = ((text, 1), ("smem <= 1 B", 1), ("spills == 0", 2), ("registers <= 32", 2))
    for limit, passed in ((limit, ["alone", "tile"][:many]) for limit, many in expected):
        verdicts = judge_artifact(analysis, (parse_limit(limit, kinds=by_name()),))
        kernels_passed = [dict(v.metric.labels)["kernel"] for v in verdicts if v.outcome is Outcome.PASSED]
        assert sorted(kernels_passed) == passed
        assert {v.outcome for v in verdicts} == {Outcome.PASSED, Outcome.NOT_MEASURED}
    assert analysis.metrics.missing("smem", (("kernel", "tile"),)).why.startswith("the linker settles it")


@needs_both
def test_a_disassembler_that_prints_no_json_is_asked_for_a_sample(
    tmp_path: Path, variants, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That of CUDA 12.4, for one; names that break its JSON go the same way."""
    data = variants["11.8.89.sm_75.cubin"].replace(b"calling", b'call"g\\')
    path = tmp_path / "quoted.cubin"
    path.write_bytes(data)
    real = cubin._run

    def without_json(command, where=None):
        if "-json" not in command:
            return real(command, where)
        return subprocess.CompletedProcess(command, 1, b"", b"nvdisasm fatal   : Unknown option 'json'")

    broken = {k.name: k.code.opcodes for k in kernels(read_cubins([path])[0])}
    monkeypatch.setattr(cubin, "_run", without_json)
    assert {k.name: k.code.opcodes for k in kernels(read_cubins([path])[0])} == broken
    assert set(broken) == {"plain", "framed", 'call"g\\'}
    assert broken["framed"].count("STL") > 0


def test_an_older_toolkit_on_the_path_gives_way_to_the_wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = tmp_path / "path", tmp_path / "site" / "triton" / "backends" / "nvidia" / "bin"
    answers = {old: ("exit 1", "nvdisasm fatal : Cannot decode architecture SM120"), new: ("exit 0", "")}
    for folder, (end, words) in answers.items():
        folder.mkdir(parents=True)
        (folder / "nvdisasm").write_text(f"#!/bin/sh\necho '{words}' >&2\necho listing\n{end}\n")
        (folder / "nvdisasm").chmod(0o755)
    monkeypatch.setenv("PATH", f"{old}:{os.environ['PATH']}")
    monkeypatch.setattr("sys.path", [str(tmp_path / "site")])
    assert cubin._listing(["-json", "x.cubin"], "x.cubin") == b"listing\n"
    (new / "nvdisasm").unlink()
    with pytest.raises(PerfgateError, match="Cannot decode architecture SM120") as caught:
        cubin._listing(["-json", "x.cubin"], "x.cubin")
    assert caught.value.code.name == "kernel-arch"


SHUFFLE, LOAD, ADD = 0xF89, 0x381, 0x210


def shown(*words: tuple[int, int]) -> int:
    """How many of these instructions the disassembler is shown."""
    raw = b"".join(struct.pack("<QQ", low, high) for low, high in words)
    rows, stands_for = _representatives(np.frombuffer(raw, dtype="<u8").reshape(-1, 2))
    assert len(stands_for) == len(words)
    return len(rows)


@pytest.mark.parametrize(
    ("name", "first", "second", "count"),
    [
        ("SHFL.UP and SHFL.DOWN", (SHUFFLE | 1 << 58, 0), (SHUFFLE | 2 << 58, 0), 2),
        ("SHFL.UP by another lane", (SHUFFLE | 1 << 58, 0), (SHUFFLE | 1 << 58 | 3 << 53, 0), 1),
        ("LDG.E and LDG.E.LTC128B", (LOAD, 0), (LOAD, 1 << 4), 2),
        ("LDG.E and LDG.E.128", (LOAD, 4 << 8), (LOAD, 6 << 8), 2),
        ("IADD3 of another register", (ADD, 5), (ADD, 6), 1),
    ],
)
def test_what_another_word_stands_for(name: str, first: tuple[int, int], second: tuple[int, int], count: int) -> None:
    assert shown(first, second) == count, name


def test_an_indirect_branch_is_no_loop() -> None:
    """``BRXU`` adds a register to its offset: where it goes is in a table."""
    assert _entry(("", "BRXU", "UR4 -0x340"), 3) == {"opcode": "BRXU"}
    assert "distance" in _entry(("", "BRA.U", "`(0x40000010)"), 3)
    code = KernelCode(opcodes=("FFMA", "FFMA", "BRXU"), operands=("", "", "0x0"), predicates=("",) * 3)
    assert loops(code) == ()
