"""What an ``.ncu-rep`` holds of the code: instructions with their samples, source files, executed opcodes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytest_perfgate.model.kernel import SourceLine

_SAMPLES = "smsp__pcsamp_sample_count"
_EXECUTED = "inst_executed"
_STALLED = "smsp__pcsamp_warps_issue_stalled_"
_NOT_ISSUED = "_not_issued"
_ISSUING = frozenset({"selected"})
_PER_OPCODE = ("sass__inst_executed_per_opcode_with_modifier_all", "sass__inst_executed_per_opcode")
"""With their modifiers where the report has them."""


def code_lines(action: Any) -> tuple[SourceLine, ...]:
    """Every instruction that was sampled or counted, in the order of the code."""
    samples, executed = _by_address(action, _SAMPLES), _by_address(action, _EXECUTED)
    addresses = sorted({*samples, *executed})
    if not addresses:
        return ()
    reasons = _reasons(action) if samples else {}
    return tuple(
        SourceLine(
            place=_place(action, address),
            text=_text(action.sass_by_pc(address)),
            samples=samples.get(address, 0.0) if samples else None,
            executed=executed.get(address, 0.0) if executed else None,
            reason=reasons.get(address, ""),
            offset=address - addresses[0],
            ptx=_text(action.ptx_by_pc(address)),
        )
        for address in addresses
    )


def source_texts(action: Any) -> Mapping[str, str]:
    """Source files that were imported into the report; a name without a text is left out."""
    return {str(name): str(text) for name, text in dict(action.source_files()).items() if text}


def executed_opcodes(action: Any) -> Mapping[str, float]:
    """Warp instructions by opcode, as the profiler counted them."""
    every = (action.metric_by_name(name) for name in _PER_OPCODE)
    found = next((one for one in every if one is not None and one.has_correlation_ids()), None)
    if found is None:
        return {}
    names = found.correlation_ids()
    return {str(names.value(i)): float(found.value(i)) for i in range(found.num_instances())}


def _text(said: str | None) -> str:
    return (said or "").strip()


def _place(action: Any, address: int) -> str:
    where = action.source_info(address)
    return f"{where.file_name()}:{where.line()}" if where is not None else ""


def _reasons(action: Any) -> dict[int, str]:
    """The reason that most samples of an instruction give for waiting."""
    leading: dict[int, tuple[float, str]] = {}
    for name in action.metric_names():
        if not name.startswith(_STALLED) or name.endswith(_NOT_ISSUED):
            continue
        reason = name[len(_STALLED) :]
        if reason in _ISSUING:
            continue
        for address, count in _by_address(action, name).items():
            leading[address] = max(leading.get(address, (0.0, "")), (count, reason))
    return {address: reason for address, (count, reason) in leading.items() if count}


def _by_address(action: Any, name: str) -> Mapping[int, float]:
    found = action.metric_by_name(name)
    if found is None or not found.num_instances() or not found.has_correlation_ids():
        return {}
    address, number = found.correlation_ids().as_uint64, found.as_double
    return {address(i): number(i) for i in range(found.num_instances())}
