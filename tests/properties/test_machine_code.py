"""Files that nobody vouches for: any bytes are read, or refused with a code; nothing else comes out."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_perfgate.adapters.readers.cubin_elf import CUDA_MACHINE, architecture, parse_cubin
from pytest_perfgate.adapters.readers.ncu_csv import parse_csv
from pytest_perfgate.adapters.readers.ncu_report import MAGIC, check_not_cut
from pytest_perfgate.core.analysis.kernels.diagnosis import diagnose
from pytest_perfgate.core.analysis.kernels.sass_facts import identity, kernels, loops, main_loop
from pytest_perfgate.core.analysis.kernels.sass_mix import mix
from pytest_perfgate.core.analysis.kernels.sass_opcodes import INSTRUCTION, branch_target, parse_controls
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.profiles import Disassembly, KernelCode
from tests.kernels import CUBINS
from tests.launches import SM

REAL = (CUBINS / "copy.sm_86.cubin").read_bytes()


@given(st.integers(0, (1 << 21) - 1), st.integers(0, (1 << 41) - 1), st.integers(0, 3))
def test_a_control_word_gives_back_what_was_put_in(bits: int, low: int, top: int) -> None:
    word = struct.pack("<QQ", low, top << 62 | bits << 41 | low & (1 << 41) - 1)
    if not word.strip(b"\0"):
        return
    assert parse_controls(word, 1) == (bits,)


@given(st.binary(max_size=200), st.integers(0, 20))
def test_control_words_of_any_length_are_all_there_or_none(words: bytes, count: int) -> None:
    assert len(parse_controls(words, count)) in {0, count}


def outcome(call: Callable[[], object]) -> str:
    """``read``, or the code it was refused with; anything else that is raised fails the test."""
    try:
        call()
    except PerfgateError as fault:
        return fault.code.name
    return "read"


def read(data: bytes) -> str:
    return outcome(lambda: (parse_cubin(data, "any.cubin"), architecture(data)))


@settings(max_examples=100)
@given(st.binary(max_size=512))
def test_any_bytes_behind_the_magic_are_refused_with_a_code(tail: bytes) -> None:
    head = bytearray(b"\x7fELF" + bytes(16) + tail)
    struct.pack_into("<H", head, 18, CUDA_MACHINE)
    assert read(bytes(head)) in {"kernel-broken", "kernel-none"}
    assert read(tail) in {"kernel-none", "kernel-broken"}


@settings(max_examples=100)
@given(st.lists(st.tuples(st.integers(0, len(REAL) - 1), st.integers(0, 255)), max_size=8), st.integers(0, len(REAL)))
def test_a_damaged_cubin_is_read_or_refused(changes: list[tuple[int, int]], end: int) -> None:
    data = bytearray(REAL)
    for at, value in changes:
        data[at] = value
    assert read(bytes(data)) in {"read", "kernel-broken", "kernel-none"}
    assert read(bytes(data[:end])) in {"read", "kernel-broken", "kernel-none"}


@pytest.mark.parametrize("offset", [1 << 63, (1 << 64) - 1, 1 << 40, 1])
def test_a_section_table_beyond_everything_is_refused(offset: int) -> None:
    data = bytearray(REAL)
    struct.pack_into("<Q", data, 40, offset)
    assert read(bytes(data)) in {"kernel-broken", "kernel-none"}


JSON = st.recursive(
    st.none() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["SM", "function-name", "sass-instructions", "opcode", "start"]), inner)
    ),
    max_leaves=8,
)


@settings(max_examples=50)
@given(JSON | st.lists(JSON, max_size=3))
def test_any_listing_is_read_or_refused(listing: object) -> None:
    disassembly = Disassembly(source="x", arch="", listing=json.dumps(listing).encode(), words={}, resources={})
    assert outcome(lambda: kernels(disassembly)) in {"read", "kernel-tool-failed"}


OPCODES = st.sampled_from(["BRA", "FFMA", "LDG.E.128", "HMMA.16816.F32", "EXIT", "STL", "NOP", "BAR.SYNC", "LDGSTS.E"])
ROW = st.tuples(OPCODES, st.integers(-2, 14).map(lambda row: f"0x{16 * row:x}" if row >= 0 else "P0"))


@settings(max_examples=100)
@given(st.lists(ROW, max_size=12))
def test_any_code_has_loops_inside_itself_and_a_mix_that_adds_up(rows: list[tuple[str, str]]) -> None:
    code = KernelCode(
        opcodes=tuple(o for o, _ in rows), operands=tuple(p for _, p in rows), predicates=("",) * len(rows)
    )
    for loop in loops(code):
        assert 0 <= loop.first < loop.last < len(code)
        target = branch_target(code.operands[loop.last])
        assert target == loop.first * INSTRUCTION
    main = main_loop(code)
    assert main is None or main in loops(code)
    mixture = mix(code)
    roots = [o.partition(".")[0] for o in code.opcodes]
    assert all(mixture.counts[root] == roots.count(root) for root in roots)
    assert len(identity(code)) == 16


@settings(max_examples=60)
@given(st.binary(max_size=300) | st.text(max_size=300).map(str.encode))
def test_any_page_is_read_or_refused(body: bytes) -> None:
    for head in (
        b"",
        b'"ID","Kernel Name","Block Size","launch__registers_per_thread"\n',
        b"ID,Kernel Name,Metric Name\n",
    ):
        ending = outcome(lambda page=head + body: [diagnose(k, k.name, SM["sm_90"]) for k in parse_csv(page, "x.csv")])
        assert ending in {"read", "ncu-report", "ncu-nothing"}


CELL = st.sampled_from(["1", "1e400", "-5", "nan", "inf", "-inf", "n/a", "", "1,024", "0", "(1, 2, 3)", "256"])


@given(st.lists(CELL, min_size=5, max_size=5))
def test_numbers_that_make_no_sense_are_absent_or_refused_and_never_crash(cells: list[str]) -> None:
    head = '"ID","Kernel Name","launch__block_size","gpu__time_duration.sum","launch__registers_per_thread"\n'
    head += '"","","","ns",""\n'
    page = (head + '"0","k",' + ",".join(f'"{c}"' for c in cells[2:]) + "\n").encode()
    word = outcome(lambda: list(parse_csv(page, "x.csv")))
    assert word in {"read", "ncu-report"}
    if word != "read":
        return
    (facts,) = parse_csv(page, "x.csv")
    assert facts.duration is None or 0 < facts.duration < float("inf")
    diagnosis = diagnose(facts, "k", SM["sm_90"])
    assert all(abs(number) < float("inf") for number in diagnosis.numbers.values())


def varint(number: int) -> bytes:
    text = b""
    while True:
        text += bytes([number & 0x7F | (0x80 if number > 0x7F else 0)])
        number >>= 7
        if not number:
            return text


def block(size: int) -> bytes:
    """A header that announces one message of this size and the bytes that follow it, and those."""
    payload = struct.pack("<I", size) + bytes(size)
    header = b"\x08\x01" + b"\x28" + varint(len(payload))
    return struct.pack("<I", len(header)) + header + payload


@given(st.lists(st.integers(0, 300), min_size=1, max_size=4), st.data())
def test_a_report_is_whole_to_the_last_byte_only(sizes: list[int], data: st.DataObject) -> None:
    start = MAGIC + struct.pack("<I", 2) + b"\x08\x07"
    whole = start + b"".join(map(block, sizes))
    check_not_cut(whole, "x")
    ends = {len(start)}
    for size in sizes:
        ends.add(max(ends) + len(block(size)))
    cut = data.draw(st.integers(len(start), len(whole) - 1))
    if cut in ends:
        return
    with pytest.raises(PerfgateError) as caught:
        check_not_cut(whole[:cut], "x")
    assert caught.value.code.name == "ncu-report"


@given(st.binary(max_size=120))
def test_any_chain_of_blocks_is_accepted_or_refused(tail: bytes) -> None:
    for head in (MAGIC, MAGIC + struct.pack("<I", 2) + b"\x08\x07"):
        assert outcome(lambda data=head + tail: check_not_cut(data, "x")) in {"read", "ncu-report"}
