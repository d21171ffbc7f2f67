"""Machine code as text: lines of the disassembler, opcodes and modifiers by name, likely typing errors in them.

The names are those of NVIDIA's instruction set reference and of its disassembler's output, sm_75 to sm_120.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.profiles import FROM_LOG, KernelCode, Resources

_SINCE_75 = """
ATOM ATOMG ATOMS B2R BAR BMMA BMOV BMSK BPT BRA BREAK BREV BRX BRXU BSSY BSYNC CALL CCTL CCTLL CCTLT CS2R DADD DEPBAR
DFMA DMUL DSETP ERRBAR EXIT F2F F2I F2IP FADD FADD32I FCHK FFMA FFMA32I FLO FMNMX FMUL FMUL32I FRND FSEL FSET FSETP
FSWZADD GETLMEMBASE HADD2 HADD2_32I HFMA2 HFMA2_32I HMMA HMUL2 HMUL2_32I HSET2 HSETP2 I2F I2FP I2I I2IP IABS IADD IADD3
IADD32I IDE IDP IDP4A IMAD IMMA IMNMX IMUL IMUL32I ISCADD ISCADD32I ISETP JMP JMX JMXU KILL LD LDC LDG LDL LDS LDSM LEA
LEPC LOP LOP3 LOP32I MATCH MEMBAR MOV MOV32I MOVM MUFU NANOSLEEP NOP P2R PLOP3 PMTRIG POPC PRMT PSETP QSPC R2B R2P R2UR
RED RET RPCMOV RTT S2R S2UR SEL SETCTAID SETLMEMBASE SGXT SHF SHFL SHL SHR ST STG STL STS SUATOM SULD SURED SUST TEX TLD
TLD4 TMML TXD TXQ UBMSK UBREV UCLEA UFLO UIADD3 UIMAD UISETP ULDC ULEA ULOP ULOP3 ULOP32I UMOV UP2UR UPLOP3 UPOPC UPRMT
UPSETP UR2UP USEL USGXT USHF USHL USHR VABSDIFF VABSDIFF4 VOTE VOTEU WARPSYNC YIELD
"""
_SINCE_80 = "DMMA F2FP FMNMX2 GATHER GENMETADATA HMNMX2 LDGDEPBAR LDGSTS REDUX SCATTER SPMETADATA UF2FP"
_SINCE_90 = """
ACQBULK ARRIVES BGMMA CGAERRBAR ELECT ENDCOLLECTIVE FENCE HGMMA IGMMA LDGMC PREEXIT QGMMA REDAS REDG STAS STSM SYNCS
UBLKCP UBLKPF UBLKRED UCGABAR_ARV UCGABAR_WAIT ULEPC USETMAXREG USETSHMSZ UTMACCTL UTMACMDFLUSH UTMALDG UTMAPF UTMAREDG
UTMASTG VHMNMX VIADD VIADDMNMX VIMNMX VIMNMX3 WARPGROUP WARPGROUPSET
"""
_SINCE_100 = """
ATOMGMC CREDUX CS2UR FADD2 FFMA2 FHADD FHFMA FMNMX3 FMUL2 LDCU LDT LDTM MEMSET OMMA QMMA STT STTM UATOMG UCREDUX UF2F
UF2I UF2IP UFADD UFFMA UFMNMX UFMUL UFRND UFSEL UFSET UFSETP UGETNEXTWORKID UI2F UI2FP UI2I UI2IP UIABS UIMNMX UMEMSETS
UREDGR USTGR UTCATOMSWS UTCBAR UTCCP UTCHMMA UTCIMMA UTCLDSWS UTCOMMA UTCQMMA UTCSHIFT UTCSTSWS UVIADD UVIADDMNMX
UVIMNMX UVIMNMX3 UVIRTCOUNT
"""
_MODIFIERS = """
E U X 2 4 8 16 32 64 128 256 32I U4 S4 U8 S8 U16 S16 U24 S24 U32 S32 U64 S64 B1 F16 F16x2 BF16 BF16_V2 TF32 F32 F64
E2M1 E2M3 E3M2 E4M3 E5M2 E6M2 E8 PACK_AB PACK_B UNPACK_B MERGE_C F16_V2 CONSTANT STRONG WEAK MMIO GPU SYS CTA VC SM CI
LTC64B LTC128B LTC256B EF EL EU ENL LU NA NC BYPASS ACCESS ZFILL ARRIVE WAIT PRIVATE SPLIT TILE IM2COL MULTICAST
GATHER4 1D 2D 3D 4D 5D 848 884 1684 1688 8816 8832 88128 16816 16832 16864 168128 168256 168512 SP SPARSE ROW COL SAT
RELU SATFINITE SYNC SYNCALL ARV RED RED_GPU SCAN DEFER_BLOCKING IDX UP DOWN BFLY AND OR XOR NOT PAND POR PXOR INC DEC
MIN MAX ADD EXCH CAS ABS NEG LT LE GT GE EQ NE LTU LEU GTU GEU EQU NEU NUM NAN T F RZ RN RM RP RS FTZ FMZ DIV3 CARRY
WIDE HI LO HILO XHI XLO PO SX32 L R W CLAMP LUT MSB SH POPC ALL ANY EX2 LG2 RCP RSQ SIN COS SQRT TANH RCP64H RSQ64H
M88 M816 MT88 M832 B3 B4 SIMPLE ALIGN DC D2 CUBE LL LZ LB SCR FLOOR CEIL TRUNC NODEC REL NOINC IVALL IVALLP PF1 PF2
CONV DIV NOP EXCLUSIVE SHARED PARITY TRANS64 TRANS TRYWAIT A1T0 ART0 A0T1 A0TR A0TX PHASECHK ONCE COPY FENCE VIEW
ASYNC ALLOC DEALLOC DEPBAR COMMIT_BATCH GSB0 GSB1 64x8x16 64x16x16 64x32x16 64x64x16 64x96x16 64x128x16 64x192x16
64x256x16 64x8x32 64x64x32 64x128x32 64x256x32 CTAID TRY_ALLOC 2CTA 1CTA T2 T1 x1 x2 x4 x8 x16 x32 x64 x128 16dp32bit
16dp64bit 16dp128bit 16dp256bit 32dp32bit MOV IADD SHL MMA TRAP FIND_AND_SET SMPOOL PERMUTE POPCU QUAD G S V
COLLECTIVE CONVERGE RECONVERGENT RELIABLE DEL ENTRY EX NTZ CLEAR RESULT SC SF SUM 16x2 F4E
"""
SINCE: Mapping[str, int] = {
    **dict.fromkeys(_SINCE_75.split(), 75),
    **dict.fromkeys(_SINCE_80.split(), 80),
    **dict.fromkeys(_SINCE_90.split(), 90),
    **dict.fromkeys(_SINCE_100.split(), 100),
}
"""The first architecture with each opcode; those of sm_75 may be older."""
MODIFIERS = frozenset(_MODIFIERS.split())
"""Modifiers that an instruction may have; those in a file are accepted as well."""
TOTALS = frozenset({"MMA"})
"""Names that stand for several opcodes."""
_SHAPE = re.compile(r"\d+x\d+x\d+|[A-Z]+[0-9]+x[0-9]+|(?:[A-Z]+[0-9]*_)+[A-Z0-9]+")


def matches_opcode(written: str, opcode: str) -> bool:
    """Return whether a name matches an instruction: the same opcode, and the written modifiers in their order."""
    # ``LDG``, ``LDG.E``, ``LDG.128`` and ``LDG.E.128`` all mean ``LDG.E.128.CONSTANT``.
    root, *wanted = written.split(".")
    here, *modifiers_of = opcode.split(".")
    rest = iter(modifiers_of)
    return root == here and all(part in rest for part in wanted)


def counted(written: str, exact: Mapping[str, float]) -> float:
    return sum(number for opcode, number in exact.items() if matches_opcode(written, opcode))


def is_pattern(written: str) -> bool:
    """Return whether a name matches several opcodes."""
    return any(char in written for char in "*?[")


def has_instruction(written: str, listed: Iterable[str] = ()) -> bool:
    """Return whether an architecture, or a file with these opcodes, has such an instruction."""
    root, *parts = written.split(".")
    there = set(listed)
    if root in TOTALS:
        return not parts
    if root not in SINCE and all(opcode.partition(".")[0] != root for opcode in there):
        return False
    shown = {part for opcode in there for part in opcode.split(".")[1:]}
    return all(part in MODIFIERS or part in shown or _SHAPE.fullmatch(part) for part in parts)


def opcode_name(labels: Iterable[tuple[str, str]]) -> str:
    """Return the instruction of the labels ``opcode`` and ``modifiers`` of a scope together."""
    names = dict(labels)
    opcode, modifiers = names.get("opcode", ""), names.get("modifiers", "")
    return f"{opcode.partition('.')[0]}.{modifiers}" if modifiers else opcode


def since(written: str) -> int:
    """Return the first architecture with the opcode; zero if unknown."""
    return SINCE.get(written.partition(".")[0], 0)


def closest(written: str, listed: Iterable[str] = ()) -> tuple[str, ...]:
    """Return instructions with names similar to an unknown one, the nearest first."""
    there = sorted(set(listed))
    root, *parts = written.split(".")
    roots = sorted({*SINCE, *TOTALS, *(opcode.partition(".")[0] for opcode in there)})
    if root not in roots:
        upper = [root.upper()] if root.upper() in roots else []
        swapped = [name for name in roots if sorted(name) == sorted(root.upper())]
        swapped.sort(key=lambda name: name[0] != root[:1].upper())
        near = get_close_matches(root.upper(), roots, n=3, cutoff=0.5)
        return tuple(dict.fromkeys(".".join((name, *parts)) for name in (*upper, *swapped, *near)))[:3]
    own = [opcode for opcode in there if opcode.partition(".")[0] == root and opcode != root]
    if not parts:
        return ()
    shown = {part for opcode in own for part in opcode.split(".")[1:]}
    swaps = [part if part in shown else _repaired(part, sorted(shown)) for part in parts]
    repaired = ".".join((root, *swaps))
    guesses = [repaired] if repaired != written and has_instruction(repaired, there) else []
    return tuple(dict.fromkeys([*guesses, *get_close_matches(written, own, n=3, cutoff=0.5)]))[:3]


def _repaired(part: str, shown: list[str]) -> str:
    """Return the probable modifier, preferably one that occurs in the file."""
    if part in MODIFIERS:
        return part
    for names in (shown, sorted(MODIFIERS)):
        swapped = [name for name in names if sorted(name) == sorted(part.upper())]
        near = [*swapped, *get_close_matches(part.upper(), names, n=1, cutoff=0.5)]
        if near:
            return near[0]
    return part


Column = tuple[str, ...]

INSTRUCTION = 16
"""Bytes, on every architecture from sm_70 on."""

_CONTROL_SHIFT, _CONTROL_MASK = 41, 0x1FFFFF


def parse_listing(listing: bytes, words: Mapping[str, bytes]) -> Iterator[tuple[str, str, KernelCode]]:
    """Yield (function, architecture, code) of everything in the listing, without padding."""
    header, functions, *shared = json.loads(listing)
    version = header.get("SM", {}).get("version", {})
    arch = f"sm_{version.get('major', '')}{version.get('minor', '')}"
    compiler = header.get(".note.nv.tkinfo", {}).get("tki_toolVersion", "")
    kinds = _columns(shared[0]) if shared else ()
    for function in functions:
        name = function["function-name"]
        columns = tuple(tuple(map(kind.__getitem__, function["places"])) for kind in kinds)
        columns = columns or _columns(function["sass-instructions"])
        here = words.get(name, b"")[int(function.get("start", 0)) :]
        yield name, arch, _code(columns, here, compiler)


def _columns(instructions: Sequence[Mapping[str, Any]]) -> tuple[Column, ...]:
    """Return opcodes, operands, predicates."""
    return (
        tuple(i["opcode"] for i in instructions),
        tuple(i.get("operands", "") for i in instructions),
        tuple(i.get("predicate", "") for i in instructions),
    )


def _code(columns: tuple[Column, ...], words: bytes, compiler: str) -> KernelCode:
    opcodes, operands, predicates = columns
    count = _end(opcodes, operands)
    here = words[: count * INSTRUCTION]
    return KernelCode(
        words=here if len(here) == count * INSTRUCTION else b"",
        opcodes=opcodes[:count],
        operands=operands[:count],
        predicates=predicates[:count],
        controls=parse_controls(here, count),
        compiler=compiler,
    )


def parse_controls(words: bytes, count: int) -> tuple[int, ...]:
    """Return the scheduling bits of each instruction; empty if the words are incomplete or zeroed."""
    if len(words) < count * INSTRUCTION or not words.strip(b"\0"):
        return ()
    import numpy as np  # imported here: limits use this module for names, and a child must not load numpy for that

    pairs = np.frombuffer(words, dtype="<u8", count=2 * count)
    return tuple(((pairs[1::2] >> np.uint64(_CONTROL_SHIFT)) & np.uint64(_CONTROL_MASK)).tolist())


def _end(opcodes: Column, operands: Column) -> int:
    """Return where code ends and padding begins: ``NOP`` after the ``BRA`` to itself."""
    end = len(opcodes)
    while end and opcodes[end - 1] == "NOP":
        end -= 1
    idle = end and opcodes[end - 1] == "BRA" and branch_target(operands[end - 1]) == (end - 1) * INSTRUCTION
    return end - 1 if idle else end


def branch_target(operands: str) -> int | None:
    """Return the address of a branch, if it is written as one."""
    last = operands.rpartition(",")[2].strip().strip("`()")
    try:
        return int(last, 16) if last.startswith("0x") else None
    except ValueError:
        return None


_ENTRY = re.compile(r"Compiling entry function '(.+)' for '(sm_\w+)'")

_SAID = re.compile(
    rf"{_ENTRY.pattern}|Function properties for (?P<function>.+)|(?P<stack>\d+) bytes stack frame"
    r"|Used (?P<registers>\d+) registers(?P<used>.*)"
)

_ANY_DEPTH = re.compile(r"Stack size for entry function '(.+)' cannot be statically determined")

_SHARED = re.compile(r"(\d+)(?:\+\d+)? bytes smem")


def parse_log(log: str, source: str) -> tuple[tuple[str, str, Resources], ...]:
    """Return (kernel, architecture, resources) of ``ptxas -v``; mixed lines of two compilers are refused."""
    kernels: list[tuple[str, str, Resources]] = []
    entry, function, stack = ("", ""), "", None
    deep = frozenset(_ANY_DEPTH.findall(log))
    for line in _SAID.finditer(log):
        if line[1]:
            if entry[0]:
                raise _mixed_log(f"of {entry[0]} it gives no registers", source)
            entry, function, stack = (line[1], line[2]), "", None
        elif line["function"]:
            function = line["function"].strip()
        elif line["stack"]:
            stack = int(line["stack"]) if function == entry[0] and stack is None else stack
        elif entry[0]:
            if stack is None:
                raise _mixed_log(f"of {entry[0]} it gives no stack frame", source)
            kernels.append((*entry, _used(int(line["registers"]), stack, line["used"], entry[0] in deep)))
            entry = ("", "")
    if entry[0]:
        raise _mixed_log(f"it ends before it gives the registers of {entry[0]}", source)
    return tuple(dict.fromkeys(kernels))


def _used(registers: int, stack: int, rest: str, deep: bool) -> Resources:
    shared = _SHARED.search(rest)
    return Resources(
        registers=registers,
        shared=int(shared[1]) if shared else 0,
        stack=stack,
        source=FROM_LOG,
        unstated=("stack",) if deep else (),
    )


def _mixed_log(what: str, source: str) -> PerfgateError:
    fix = "write the log of one compiler at a time (make -j1, ninja, or make --output-sync), or name the cubin"
    return PerfgateError("kernel-broken", f"a log of ptxas -v: {what}", place=source, fix=fix)
