"""Files that lie where kernels lie and that no disassembler of NVIDIA reads: what they are, by their first bytes."""

from __future__ import annotations

import re
import struct

AMD_MACHINE = 224
_MACHINES = {
    3: "x86", 62: "x86-64", 183: "AArch64", 243: "RISC-V", 21: "PowerPC", 22: "S390", 40: "Arm", 224: "AMD's GPUs",
}  # fmt: skip
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


def stranger(head: bytes) -> tuple[str, str]:
    """(what it is, what to do instead); nothing where the bytes do not say."""
    if _PTX.search(head):
        return "PTX, which ptxas has not compiled yet", _PTXAS
    machine = elf_machine(head)
    if machine is not None:
        named = _MACHINES.get(machine, f"machine {machine}")
        return f"an ELF file of {named}, without code of an NVIDIA GPU", _ROCPROF if machine == AMD_MACHINE else ""
    said = next((said for mark, said in _MARKS if head.startswith(mark)), "")
    return said, _ROCPROF if "AMD" in said else ""


def elf_machine(head: bytes) -> int | None:
    """The number of the machine that an ELF file is for."""
    if head[:4] != b"\x7fELF" or len(head) < 20:
        return None
    return int(struct.unpack_from("<H" if head[5] == 1 else ">H", head, 18)[0])


def not_compiled(listed: str) -> tuple[str, str]:
    """(what, what to do) of a file without machine code, by the PTX that ``cuobjdump`` lists in it."""
    if "PTX file" in listed:
        return "it holds PTX and no machine code: the driver compiles it", _PTXAS
    return "it holds code for the linker (LTO-IR) and no machine code", "link it, and name what the linker writes"
