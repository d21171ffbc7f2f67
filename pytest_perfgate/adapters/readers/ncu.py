"""Nsight Compute: reports through NVIDIA's own ``ncu_report``, and every form of ``ncu --csv``."""

from __future__ import annotations

import gzip
import math
import re
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pytest_perfgate.adapters.readers.ncu_blocks import MAGIC, check_whole
from pytest_perfgate.adapters.readers.ncu_csv import parse_csv
from pytest_perfgate.adapters.readers.ncu_facts import NcuCode, kernel_facts
from pytest_perfgate.adapters.readers.ncu_source import code_lines, executed_opcodes, source_texts
from pytest_perfgate.adapters.system.files import first_bytes, unpacked_head
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.kernel import Counter, KernelFacts
from pytest_perfgate.model.problem import Finding, Severity
from pytest_perfgate.model.quantity import Interval

_LINK = re.compile(r"@(section|url|source):([^@:]*):?([^@]*?)@")
_VERSION = re.compile(rb"\b(20\d\d\.\d+\.\d+)\.\d+ \(build \d+\)")
"""Of the ncu that wrote the report, among the facts of its session."""
_GZIP = b"\x1f\x8b"
_LONG = 1 << 20
_SEVERITIES = {1: Severity.INFO, 2: Severity.NOTE}
_LOCAL = 1


def read_ncu(paths: Sequence[Path]) -> tuple[KernelFacts, ...]:
    """Every kernel launch of these reports, in their order."""
    return tuple(facts for path in paths for facts in _read(Path(path)))


def long_head(path: Path) -> bytes:
    """The beginning of a file as far as a program may print before the page of ncu; nothing of a damaged one."""
    try:
        head = first_bytes(path, _LONG)
    except OSError:
        return b""
    return unpacked_head(head, _LONG) if head.startswith(_GZIP) else head


def _read(path: Path) -> Iterator[KernelFacts]:
    data, place = path.read_bytes(), str(path)
    packed = data.startswith(_GZIP)
    if packed:
        data = _unpacked(data, place)
    if not data.startswith(MAGIC):
        yield from parse_csv(data, place)
    elif packed:
        with tempfile.TemporaryDirectory(prefix="perfgate-ncu-") as room:
            plain = Path(room) / "unpacked.ncu-rep"
            plain.write_bytes(data)
            yield from _report(plain, data, place)
    else:
        yield from _report(path, data, place)


def _unpacked(data: bytes, place: str) -> bytes:
    try:
        return gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as error:
        raise PerfgateError("ncu-report", f"the gzip file is damaged or cut short: {error}", place=place) from error


def _report(path: Path, data: bytes, place: str) -> Iterator[KernelFacts]:
    announced = check_whole(data, place)
    version = _VERSION.search(data)
    notes = {"profiler": f"ncu {version[1].decode()}"} if version else {}
    for index, action in enumerate(actions := _actions(path, place, announced)):
        try:
            facts = _facts(action, index, place)
        except Exception as error:  # the binding raises whatever its C++ threw, here of a damaged result
            if isinstance(error, PerfgateError):
                raise
            what = f"result {index + 1} of {len(actions)} is damaged: {error}"
            raise PerfgateError("ncu-report", what, place=place) from error
        yield replace(facts, notes=notes)


def _actions(path: Path, place: str, announced: int) -> list[Any]:
    try:
        import ncu_report
    except (ImportError, OSError) as error:
        raise PerfgateError("kernel-tool", f"ncu_report does not import: {error}", place=place) from error
    try:
        context = ncu_report.load_report(str(path))
        ranges = [context.range_by_idx(number) for number in range(context.num_ranges())]
        actions = [r.action_by_idx(number) for r in ranges for number in range(r.num_actions())]
    except Exception as error:  # the binding raises whatever its C++ threw
        raise PerfgateError("ncu-report", f"ncu_report does not read it: {error}", place=place) from error
    if announced and not actions:
        what = f"it announces {announced} results, and ncu_report reads none of them"
        raise PerfgateError("ncu-report", what, place=place)
    if not actions:
        raise PerfgateError("ncu-nothing", "the report holds no kernel", place=place)
    return actions


def _facts(action: Any, index: int, source: str) -> KernelFacts:
    if action.name() is None:
        raise ValueError("ncu_report finds no kernel in it")
    numbers, texts = _metrics(action)
    return kernel_facts(
        name=action.name(action.NameBase_DEMANGLED) or action.name(),
        counters=numbers,
        texts=texts,
        place=(source, index),
        findings=tuple(_findings(action)),
        code=NcuCode(lines=code_lines(action), sources=source_texts(action), executed=executed_opcodes(action)),
    )


def _metrics(action: Any) -> tuple[dict[str, Counter], dict[str, str]]:
    """Numbers under their full names, and what is text."""
    numbers: dict[str, Counter] = {}
    texts: dict[str, str] = {}
    for name in action.metric_names():
        found = action.metric_by_name(name)
        seen = found.value() if found is not None else None
        if isinstance(seen, (int, float)) and math.isfinite(seen):
            numbers[name] = Counter(name=name, value=float(seen), unit=found.unit() or "")
        elif isinstance(seen, str):
            texts[name] = seen
    return numbers, texts


def _findings(action: Any) -> Iterator[Finding]:
    """What NVIDIA's own rules said, with the gain they estimate."""
    for rule in action.rule_results_as_dicts():
        message = rule.get("rule_message") or {}
        if not message.get("message"):
            continue
        focus = (rule.get("focus_metrics") or [{}])[0]
        gain = rule.get("speedup_estimation") or {}
        yield rule_finding(
            (rule.get("rule_identifier", ""), message.get("title") or rule.get("name", "")),
            plain_text(message["message"]),
            (focus.get("name", ""), focus.get("value")),
            gain.get("speedup"),
            local=gain.get("type") == _LOCAL,
            severity=_SEVERITIES.get(message.get("type", 0), Severity.WARNING),
        )


def rule_finding(
    rule: tuple[str, str],
    message: str,
    focus: tuple[str, Any],
    speedup: float | None,
    *,
    local: bool = False,
    severity: Severity = Severity.NOTE,
) -> Finding:
    """A rule's result as a finding; its per cent are of the kernel's time, or of a part where it is local."""
    identifier, title = rule
    name, number = focus
    usable = isinstance(speedup, (int, float)) and math.isfinite(speedup) and speedup > 0
    return Finding(
        title=title or identifier,
        detail=message,
        trigger=f"{name}={number:.4g}" if name and isinstance(number, (int, float)) else f"rule={identifier}",
        gain=Interval(low=0.0, high=float(speedup or 0) / 100) if usable else None,
        doubt="a local estimate: of the part it concerns, not end to end" if usable and local else "",
        severity=severity,
        scope="ncu rule",
    )


def plain_text(message: str) -> str:
    """A rule's sentence without its links."""
    return _LINK.sub(lambda link: link[2] if link[1] == "url" else link[3] or link[2], message)
