"""What a report holds of the code, read from an action that behaves as NVIDIA's."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from pytest_perfgate.adapters.readers.ncu_report import code_lines, executed_opcodes, read_ncu, source_texts
from tests.corpus import corpus


class Instances:
    """A metric with a value for each address or name."""

    def __init__(self, values: dict) -> None:
        self._values = list(values.items())

    def num_instances(self) -> int:
        return len(self._values)

    def has_correlation_ids(self) -> bool:
        return True

    def correlation_ids(self) -> SimpleNamespace:
        name = lambda at: self._values[at][0]  # noqa: E731
        return SimpleNamespace(value=name, as_uint64=name)

    def value(self, at: int) -> float:
        return self._values[at][1]

    as_double = value


class Action:
    """One launch."""

    def __init__(self, **metrics: dict) -> None:
        self._metrics = {name: Instances(values) for name, values in metrics.items()}

    def metric_names(self) -> list[str]:
        return list(self._metrics)

    def metric_by_name(self, name: str) -> Instances | None:
        return self._metrics.get(name)

    def sass_by_pc(self, address: int) -> str | None:
        return {0x1000: " LDG.E R2, [R4] "}.get(address)

    def ptx_by_pc(self, address: int) -> str:
        return "ld.global" if address == 0x1000 else ""

    def source_info(self, address: int) -> SimpleNamespace | None:
        return SimpleNamespace(file_name=lambda: "k.cu", line=lambda: 7) if address == 0x1000 else None

    def source_files(self) -> dict[str, str]:
        return {"k.cu": "text", "gone.cu": ""}


FULL = {
    "smsp__pcsamp_sample_count": {0x1000: 30, 0x1010: 10},
    "inst_executed": {0x1000: 8, 0x1010: 8, 0x1020: 8},
    "smsp__pcsamp_warps_issue_stalled_wait": {0x1000: 10, 0x1010: 3},
    "smsp__pcsamp_warps_issue_stalled_long_scoreboard": {0x1000: 19},
    "smsp__pcsamp_warps_issue_stalled_long_scoreboard_not_issued": {0x1010: 90},
    "smsp__pcsamp_warps_issue_stalled_selected": {0x1010: 7},
    "sass__inst_executed_per_opcode": {"LDG": 8, "FFMA": 16},
}


def test_every_instruction_with_its_samples_and_what_it_waits_for() -> None:
    first, second, third = code_lines(Action(**FULL))
    assert (first.offset, first.text, first.place, first.ptx) == (0, "LDG.E R2, [R4]", "k.cu:7", "ld.global")
    assert (first.samples, first.executed, first.reason) == (30, 8, "long_scoreboard")
    assert (second.text, second.place, second.reason) == ("", "", "wait")
    assert (third.samples, third.reason, third.offset) == (0, "", 32)


def test_counts_without_samples_and_nothing_at_all() -> None:
    (line,) = code_lines(Action(inst_executed={16: 4}))
    assert line.samples is None
    assert code_lines(Action()) == ()
    assert code_lines(Action(inst_executed={})) == ()


def test_sources_and_opcodes() -> None:
    assert source_texts(Action()) == {"k.cu": "text"}
    assert executed_opcodes(Action(**FULL)) == {"LDG": 8, "FFMA": 16}
    assert executed_opcodes(Action()) == {}


def test_a_real_report_says_what_was_executed_and_where_it_waits() -> None:
    pytest.importorskip("ncu_report", reason="ncu-report is not installed (extra: ncu)")
    (facts,) = read_ncu([corpus("ncu/matmul_h100.ncu-rep")])
    assert facts.executed["LDG.E"] == 2 * facts.executed["FFMA"]
    hottest = max(facts.lines, key=lambda line: line.samples)
    assert hottest.reason
    assert hottest.text == "", "this report's machine code was zeroed out"
