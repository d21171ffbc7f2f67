"""Baselines begun from another tool's results; a line that stands already is not touched."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from pytest_perfgate.model.baseline import Baseline
from pytest_perfgate.model.benchmark import BenchFile, BenchResult
from pytest_perfgate.model.plan import CaseKey, parse_case_key
from pytest_perfgate.model.ports import BaselineStore
from pytest_perfgate.model.values import value


@value
class Imported:
    """What an import came to."""

    lines: tuple[Baseline, ...]
    kept: tuple[str, ...] = ()
    """Cases that had a line already."""
    left: tuple[str, ...] = ()
    """Benchmarks without a time."""


def imported(file: BenchFile, device: str, store: BaselineStore, *, who: str, when: str) -> Imported:
    """The lines that an import would write."""
    known = store.read_all(device)
    lines, kept, left = [], [], []
    for result in file.results:
        key = case_key(file.tool, result)
        if not result.time:
            left.append(result.name)
        elif str(key) in known:
            kept.append(str(key))
        else:
            lines.append(_line(key, result, file, device))
    signed = tuple(_signed(line, who, when) for line in _once(lines))
    return Imported(lines=signed, kept=tuple(kept), left=tuple(left))


def case_key(tool: str, result: BenchResult) -> CaseKey:
    """A node id where the tool has them; otherwise a file named after the tool."""
    name = result.name if re.match(r"[^:\[]+\.py::", result.name) else f"{tool}::{result.name}"
    return parse_case_key(name)


def _line(key: CaseKey, result: BenchResult, file: BenchFile, device: str) -> Baseline:
    why = f"imported from {file.tool}, {result.statistic}"
    return Baseline(key=key, device=device, time=result.time or 0.0, commit=_hash(file.commit), why=why)


def _hash(commit: str) -> str:
    return commit if re.fullmatch(r"[0-9a-f]{7,40}", commit) else ""


def _signed(line: Baseline, who: str, when: str) -> Baseline:
    return replace(line, who=who, when=when)


def _once(lines: Sequence[Baseline]) -> list[Baseline]:
    """The first of several with one name: devices of another tool's file share names."""
    return list({str(line.key): line for line in reversed(lines)}.values())[::-1]
