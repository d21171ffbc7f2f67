"""The disassembler itself: few files, for each call of it costs half a second."""

from __future__ import annotations

import shutil
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_perfgate.adapters.readers import cubin, cubin_elf
from pytest_perfgate.adapters.readers import cubin as tools
from pytest_perfgate.adapters.readers.cubin import read_cubins, stated_launches
from pytest_perfgate.adapters.readers.cubin_elf import is_cubin, parse_cubin
from pytest_perfgate.core.analysis.kernels.sass_facts import identity, kernels, loops
from pytest_perfgate.core.analysis.kernels.sass_mix import mix
from pytest_perfgate.model.errors import PerfgateError
from tests.kernels import ARTIFACTS, CUBINS, FILES, disassembly
from tests.tools import needs_tools

COPY = CUBINS / "copy.sm_86.cubin"
ODD = ARTIFACTS / "odd"


@needs_tools
def test_a_cubin_is_read_as_committed(tmp_path: Path) -> None:
    odd = tmp_path / "$(touch pwned); copy 'x'.cubin"
    shutil.copy(COPY, odd)
    (code,) = read_cubins([odd])
    (here, there) = kernels(code), kernels(disassembly(COPY.name))
    assert [(k.name, k.arch, k.code.opcodes, k.code.controls) for k in here] == [
        (k.name, k.arch, k.code.opcodes, k.code.controls) for k in there
    ]
    assert [k.resources for k in here] == [k.resources for k in there]
    assert sorted(p.name for p in tmp_path.iterdir()) == [odd.name], "untrusted names never reach a shell"
    assert odd.read_bytes() == COPY.read_bytes()


@needs_tools
@pytest.mark.parametrize(
    "text",
    [
        "", "[" * 10**6, '{"num_warps": -4}', '{"num_warps": 0}', '{"num_warps": 64}', '{"num_warps": Infinity}',
        '{"num_warps": 4, "shared": -1}', '{"num_warps": -4, "target": {"warp_size": -32}}',
    ],
)  # fmt: skip
def test_a_launch_that_cannot_be_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "k.json").write_text(text)
    assert stated_launches(tmp_path / "k.cubin") == {}
    (tmp_path / "k.json").write_text('{"num_warps": 4}')
    assert [launch.threads for launch in stated_launches(tmp_path / "k.cubin").values()] == [128]


@needs_tools
def test_an_unknown_architecture_is_distinct_names(tmp_path: Path) -> None:
    data = bytearray(COPY.read_bytes())
    struct.pack_into("<I", data, 48, 0x600EE04)
    (tmp_path / "new.cubin").write_bytes(data)
    with pytest.raises(PerfgateError) as caught:
        read_cubins([tmp_path / "new.cubin"])
    assert caught.value.code.name in {"kernel-arch", "kernel-tool-failed"}
    assert "new.cubin" in str(caught.value)


def test_a_stripped_cubin_is_distinct_names_from_a_broken_one() -> None:
    """Written by ``objcopy --strip-all``, with the machine that binutils do not know put back."""
    stripped = ODD / "stripped.cubin"
    parsed = parse_cubin(stripped.read_bytes(), "stripped")
    assert parsed.symbols == {}
    assert set(parsed.words) == {"copy_wide", "copy_narrow"}
    with pytest.raises(PerfgateError) as caught:
        read_cubins([stripped])
    assert caught.value.code.name == "kernel-stripped"


@needs_tools
def test_an_object_file_of_nvcc_gives_the_kernels_inside() -> None:
    """Written by ``nvcc -c``: host code with a fatbin in it."""
    (code,) = read_cubins([ODD / "copy.o"])
    assert {(k.name, k.arch) for k in kernels(code)} == {("copy_wide", "sm_80"), ("copy_narrow", "sm_80")}
    assert "copy.o" in code.source


@needs_tools
def test_a_fatbin_gives_the_kernels_inside_and_leaves_nothing_behind(tmp_path: Path) -> None:
    shutil.copy(CUBINS / "copy.fatbin", tmp_path / "lib.o")
    facts = [k for code in read_cubins([tmp_path]) for k in kernels(code)]
    assert {(k.name, k.arch) for k in facts} == {
        (n, a) for n in ("copy_wide", "copy_narrow") for a in ("sm_80", "sm_90")
    }
    assert [p.name for p in tmp_path.iterdir()] == ["lib.o"]


def test_cut_short_at_any_byte_is_an_error_or_the_whole(tmp_path: Path) -> None:
    data = COPY.read_bytes()
    for end in (*range(0, 64, 7), *(len(data) * part // 50 for part in range(1, 50)), len(data) - 64, len(data) - 1):
        try:
            result = parse_cubin(data[:end], "cut.cubin")
        except PerfgateError as error:
            result = error.code.name
        codes = {"kernel-broken", "kernel-none"} if isinstance(result, str) else None
        assert result in codes if codes else result.words == parse_cubin(data, "whole").words


@pytest.mark.parametrize("content", [b"", b"\x7fELF", b"#!/bin/sh\n", Path("/bin/sh").read_bytes()[:4096]])
def test_what_is_no_cubin_is_not_taken_for_one(content: bytes) -> None:
    assert not is_cubin(content[:64])


@needs_tools
def test_files_without_kernels_say_so(tmp_path: Path) -> None:
    for name, content in (("text.cubin", b"not machine code"), ("host.o", Path("/bin/sh").read_bytes())):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(PerfgateError) as caught:
            read_cubins([tmp_path / name])
        assert caught.value.code.name == "kernel-none"
        assert (tmp_path / name).read_bytes() == content


def test_an_empty_directory_says_so(tmp_path: Path) -> None:
    with pytest.raises(PerfgateError, match="kernel-none"):
        read_cubins([tmp_path])


@needs_tools
def test_object_files_of_the_host_may_lie_beside_those_of_kernels(tmp_path: Path) -> None:
    shutil.copy(COPY, tmp_path / "k.cubin")
    (tmp_path / "host.o").write_bytes(b"\x7fELF" + bytes(100))
    assert [k.source for k in read_cubins([tmp_path])] == [str(tmp_path / "k.cubin")]
    (tmp_path / "k.cubin").unlink()
    with pytest.raises(PerfgateError, match="none of its"):
        read_cubins([tmp_path])


def test_code_of_other_gpus_beside_those_of_kernels_is_not_passed_over(tmp_path: Path) -> None:
    shutil.copy(COPY, tmp_path / "k.cubin")
    for name, data in (("amd.o", elf_of(224)), ("bundle.o", b"__CLANG_OFFLOAD_BUNDLE__" + bytes(99))):
        (tmp_path / name).write_bytes(data)
        with pytest.raises(PerfgateError, match="AMD") as caught:
            read_cubins([tmp_path])
        assert (caught.value.code.name, "rocprof" in caught.value.fix) == ("kernel-none", True)
        (tmp_path / name).unlink()


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ("nvdisasm fatal   : Cannot decode architecture 'SM200'", "kernel-arch"),
        ("nvdisasm fatal   : File the file is an invalid ELF file", "kernel-broken"),
        ("nvdisasm error   : Unrecognized operation for functional unit 'uC' at address 0x0", "kernel-broken"),
        ('nvdisasm fatal   : Section ".nv.info.k": runs out of data at address 0x8', "kernel-broken"),
        ("nvdisasm fatal   : Value 'SM70' is not defined for option 'binary'", "kernel-arch"),
        ("nvdisasm: out of memory", "kernel-tool-failed"),
    ],
)
def test_what_the_disassembler_says_tells_damage_from_what_it_does_not_know(message: str, code: str) -> None:
    assert cubin._failure(message, "FILE", "k").code.name == code


def test_a_missing_tool_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tools, "_tool_paths", lambda name: iter(()))
    with pytest.raises(PerfgateError) as caught:
        read_cubins([COPY])
    assert "[ncu]" in str(caught.value)
    assert caught.value.exit == 14


@needs_tools
def test_many_or_large_cubins_say_from_a_sample_what_the_whole_listings_say(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every committed kernel, by one call of the disassembler for each architecture."""
    monkeypatch.setattr(cubin, "_LARGE", 0)
    by_name = {Path(one.source).name: one for one in read_cubins(sorted(CUBINS.glob("*.cubin")))}
    for name in FILES:
        for here, there in zip(kernels(by_name[name]), kernels(disassembly(name)), strict=True):
            assert (here.name, here.arch, here.code.opcodes) == (there.name, there.arch, there.code.opcodes)
            assert mix(here.code) == mix(there.code)
            assert loops(here.code) == loops(there.code)
            assert here.code.controls == there.code.controls
            assert here.code.compiler == there.code.compiler
            assert identity(here.code) == identity(there.code)


@needs_tools
def test_a_damaged_file_among_many_is_named(tmp_path: Path) -> None:
    """Its words are no instructions: what the disassembler cannot read together it reads one by one."""
    for number in range(3):
        shutil.copy(COPY, tmp_path / f"{number}.cubin")
    data = bytearray(COPY.read_bytes())
    code = parse_cubin(bytes(data), "x").words["copy_wide"]
    at = bytes(data).index(code)
    data[at : at + 32] = b"\xee" * 32
    (tmp_path / "bad.cubin").write_bytes(data)
    with pytest.raises(PerfgateError) as caught:
        read_cubins([tmp_path])
    assert (caught.value.code.name, caught.value.place) == ("kernel-broken", str(tmp_path / "bad.cubin"))


def elf_of(machine: int) -> bytes:
    data = bytearray(COPY.read_bytes())
    struct.pack_into("<H", data, 18, machine)
    return bytes(data)


PTX = b"//\n// Generated\n//\n.version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k()\n"


def test_a_function_that_ends_inside_an_instruction_is_damage(tmp_path: Path) -> None:
    data = bytearray(COPY.read_bytes())
    (table,) = struct.unpack_from("<Q", data, 40)
    names = cubin_elf._Elf(bytes(data)).names
    size = table + 64 * next(at for at, name in enumerate(names) if name.startswith(".text.")) + 32
    struct.pack_into("<Q", data, size, struct.unpack_from("<Q", data, size)[0] - 8)
    (tmp_path / "cut.cubin").write_bytes(data)
    with pytest.raises(PerfgateError) as caught:
        read_cubins([tmp_path / "cut.cubin"])
    assert (caught.value.code.name, "inside an instruction" in caught.value.what) == ("kernel-broken", True)


@pytest.mark.parametrize(
    ("name", "content", "what", "fix"),
    [
        ("kernel.hsaco", elf_of(224), "it is an ELF file of AMD's GPUs", "rocprof"),
        ("bundle.o", b"__CLANG_OFFLOAD_BUNDLE__" + bytes(99), "a bundle of clang", "rocprof"),
        ("k.ptx", PTX, "it is PTX", "ptxas -arch=sm_90"),
        ("k.cubin", b"", "the file is empty", ""),
        ("host.so", Path("/bin/sh").read_bytes(), "it is an ELF file of", ""),
    ],
)
def test_an_unrelated_file_is_named(tmp_path: Path, name: str, content: bytes, what: str, fix: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(PerfgateError) as caught:
        read_cubins([tmp_path / name])
    assert caught.value.code.name == "kernel-none"
    assert what in caught.value.what
    assert fix in caught.value.fix
    assert (tmp_path / name).read_bytes() == content


def test_what_cuobjdump_says_of_ptx_alone_is_said_in_plain_words(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    message = b"cuobjdump info    : No ELF file found to extract from 'x'. You may try with -all option."
    monkeypatch.setattr(cubin, "tool", Path)
    listed = {"--list-ptx": b"PTX file    1: x.1.sm_90.ptx"}
    monkeypatch.setattr(
        cubin,
        "_run",
        lambda command, where=None: subprocess.CompletedProcess(command, 1, listed.get(command[1], b""), message),
    )
    (tmp_path / "ptx.fatbin").write_bytes(b"\x50\xed\x55\xba" + bytes(99))
    with pytest.raises(PerfgateError, match="PTX and no machine code"):
        read_cubins([tmp_path / "ptx.fatbin"])
    listed.clear()
    with pytest.raises(PerfgateError, match="LTO-IR"):
        read_cubins([tmp_path / "ptx.fatbin"])


def test_links_in_circles_names_of_any_kind_and_what_is_no_file_stop_nothing(tmp_path: Path) -> None:
    (tmp_path / "up").symlink_to("..")
    (tmp_path / "self.cubin").symlink_to("self.cubin")
    (tmp_path / "folder.cubin").mkdir()
    with pytest.raises(PerfgateError, match=r"no \.cubin"):
        read_cubins([tmp_path])


@needs_tools
def test_odd_names_are_names(tmp_path: Path) -> None:
    names = ("-rf.cubin", "new\nline.cubin", "a 'b\".cubin", f"{'x' * 200}.cubin")
    for name in names:
        shutil.copy(COPY, tmp_path / name)
    assert sorted(Path(one.source).name for one in read_cubins([tmp_path])) == sorted(names)


COMPILER = """#!{python}
import shutil, sys
if "-O3" not in sys.argv:
    sys.exit("k.cu(3): error: identifier x is undefined")
shutil.copy({cubin!r}, sys.argv[sys.argv.index("-o") + 1])
"""


@needs_tools
def test_a_source_is_compiled_by_the_command_that_is_named(tmp_path: Path) -> None:
    source, compiler = tmp_path / "k.cu", tmp_path / "a compiler"
    source.write_text("__global__ void k() {}\n")
    compiler.write_text(COMPILER.format(python=sys.executable, cubin=str(COPY)))
    compiler.chmod(0o755)
    (code,) = read_cubins([source], [str(compiler), "-O3"])
    assert code.source == str(source)
    assert {kernel.name for kernel in kernels(code)} == {kernel.name for kernel in kernels(disassembly(COPY.name))}
    for build, what in ((str(compiler), "undefined"), ("no-such-compiler", "No such file")):
        with pytest.raises(PerfgateError) as error:
            read_cubins([source], [build])
        assert error.value.code.name == "kernel-tool-failed"
        assert what in error.value.what
        assert "the command that build= names" in error.value.fix
    with pytest.raises(PerfgateError) as error:
        read_cubins([source])
    assert (error.value.code.name, "--set build=" in error.value.fix) == ("kernel-option", True)
