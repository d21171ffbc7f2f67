"""Reports of Nsight Compute, through `ncu_report`."""

from __future__ import annotations

import gzip
import math
import os
import re
import shutil
import struct
import sys
import tempfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from pytest_perfgate.adapters.readers.ncu_csv import parse_csv
from pytest_perfgate.adapters.readers.ncu_labels import NcuCode, impossible, kernel_facts
from pytest_perfgate.adapters.system.files import first_bytes, unpacked_head
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.metric import Finding, Interval, Severity
from pytest_perfgate.model.profiles import Counter, KernelFacts, SourceLine

_LINK = re.compile(r"@(section|url|source):([^@:]*):?([^@]*?)@")

_VERSION = re.compile(rb"\b(20\d\d\.\d+\.\d+)\.\d+ \(build \d+\)")
"""The version of ncu that wrote the report, among the facts of its session."""

_GZIP, _LONG = b"\x1f\x8b", 1 << 20

_SEVERITIES = {1: Severity.INFO, 2: Severity.NOTE}

_LOCAL = 1


def read_ncu(paths: Sequence[Path]) -> tuple[KernelFacts, ...]:
    """Return every kernel launch of these reports, in their order."""
    with tempfile.TemporaryDirectory(prefix="perfgate-ncu-") as room:
        parts = [_part(Path(path), Path(room) / f"{number}.ncu-rep") for number, path in enumerate(paths)]
        reports = _read_in_child([part for part in parts if isinstance(part, _Report)], Path(room) / "kernels")
        return tuple(facts for part in parts for facts in (next(reports) if isinstance(part, _Report) else part))


def long_head(path: Path) -> bytes:
    """Return a file's beginning, as much as a program may print before ncu's page; empty if damaged."""
    try:
        head = first_bytes(path, _LONG)
    except OSError:
        return b""
    return unpacked_head(head, _LONG) if head.startswith(_GZIP) else head


class _Report(NamedTuple):
    path: str
    place: str
    announced: int
    notes: dict[str, str]


def _part(path: Path, plain: Path) -> _Report | tuple[KernelFacts, ...]:
    """Return a report that another process is to read, unpacked where it is packed; the kernels of a page."""
    data, place = path.read_bytes(), str(path)
    if data.startswith(_GZIP):
        data, path = _unpacked(data, place), plain
        plain.write_bytes(data)
    if not data.startswith(MAGIC):
        return tuple(parse_csv(data, place))
    version = _VERSION.search(data)
    notes = {"profiler": f"ncu {version[1].decode()}"} if version else {}
    return _Report(str(path), place, check_not_cut(data, place), notes)


def _unpacked(data: bytes, place: str) -> bytes:
    try:
        return gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as error:
        raise PerfgateError("ncu-report", f"the gzip file is damaged or cut short: {error}", place=place) from error


def _read_in_child(reports: Sequence[_Report], result: Path) -> Iterator[tuple[KernelFacts, ...]]:
    """Yield the kernels of each report, read in another process: ncu's module crashes in one with torch and CUPTI."""
    from pytest_perfgate.adapters.system.processes import run_captured

    env = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    todo = result.with_suffix(".todo")
    todo.write_bytes(msgspec.msgpack.encode([report[:3] for report in reports]))
    done = run_captured([sys.executable, "-m", __name__, str(todo), str(result)], None, env=env)
    for number, report in enumerate(reports):
        part = result.with_suffix(f".{number}")
        if not part.is_file():
            words = done.stderr.decode("utf-8", "replace").strip().splitlines()
            died = [f"signal {-done.returncode}", *words[:1]] if done.returncode < 0 else [*words[-1:], "no result"]
            what = f"the process that reads it with ncu_report ended with {': '.join(died)}"
            raise PerfgateError("ncu-report", what, place=report.place)
        code, what, kernels = msgspec.msgpack.decode(part.read_bytes(), type=tuple[str, str, tuple[KernelFacts, ...]])
        if code:
            raise PerfgateError(code, what, place=report.place)
        yield tuple(replace(facts, notes=report.notes) for facts in kernels)


def _read_here(path: Path, place: str, announced: int) -> Iterator[KernelFacts]:
    for index, action in enumerate(actions := _actions(path, place, announced)):
        try:
            facts = _facts(action, index, place)
        except Exception as error:  # the binding raises what its C++ threw, here for a damaged result
            if isinstance(error, PerfgateError):
                raise
            what = f"result {index + 1} of {len(actions)} is damaged: {error}"
            raise PerfgateError("ncu-report", what, place=place) from error
        yield facts


def _actions(path: Path, place: str, announced: int) -> list[Any]:
    ncu_report = _module(place)
    try:
        context = ncu_report.load_report(str(path))
        ranges = [context.range_by_idx(number) for number in range(context.num_ranges())]
        actions = [r.action_by_idx(number) for r in ranges for number in range(r.num_actions())]
    except Exception as error:  # the binding raises what its C++ threw
        raise PerfgateError("ncu-report", f"ncu_report does not read it: {error}", place=place) from error
    if announced and not actions:
        what = f"it announces {announced} results, and ncu_report reads none of them"
        raise PerfgateError("ncu-report", what, place=place)
    if not actions:
        raise PerfgateError("ncu-nothing", "the report holds no kernel", place=place)
    return actions


def _module(place: str) -> Any:
    """Return the installed package, else the module that Nsight Compute brings in its own folder."""
    try:
        return import_module("ncu_report")
    except (ImportError, OSError) as error:
        missing = error
    for folder in module_folders():
        sys.path.append(folder)
        try:
            return import_module("ncu_report")
        except (ImportError, OSError) as error:
            sys.path.remove(folder)
            missing = error
    raise PerfgateError("kernel-tool", f"ncu_report does not import: {missing}", place=place) from missing


INSTALLED = Path("/opt/nvidia/nsight-compute")
"""Packages of a system install it here, one folder a version; a CUDA toolkit's `ncu` is a script that starts it."""


def module_folders() -> list[str]:
    """Return folders with the Python module: beside `ncu` (a link, or a script), in its toolkit, or the newest."""
    program = shutil.which("ncu")
    homes = list(dict.fromkeys(Path(program).resolve().parents) if program else ())[:4]
    versions = [*(path for home in homes for path in _newest(home, "nsight-compute*")), *_newest(INSTALLED, "*")]
    near = [home / "extras" / "python" for home in (*homes, *versions)]
    return [str(folder) for folder in near if (folder / "ncu_report.py").is_file()]


def _newest(folder: Path, pattern: str) -> list[Path]:
    """Return the folders by version, so that 2025.10 comes before 2025.9: a newer module reads older reports."""
    return sorted(
        folder.glob(pattern), key=lambda path: [int(part) for part in re.findall(r"\d+", path.name)], reverse=True
    )


def _facts(action: Any, index: int, source: str) -> KernelFacts:
    if action.name() is None:
        raise ValueError("ncu_report finds no kernel in it")
    numbers, texts = _metrics(action)
    for name, number in numbers.items():
        if wrong := impossible(name, number.value):
            raise ValueError(f"{name} is {number.value:g}, and {wrong}")
    return kernel_facts(
        name=action.name(action.NameBase_DEMANGLED) or action.name(),
        counters=numbers,
        texts=texts,
        place=(source, index),
        findings=tuple(_findings(action)),
        code=NcuCode(lines=code_lines(action), sources=source_texts(action), executed=executed_opcodes(action)),
    )


def _metrics(action: Any) -> tuple[dict[str, Counter], dict[str, str]]:
    """Return numbers under their full names, and texts."""
    numbers: dict[str, Counter] = {}
    texts: dict[str, str] = {}
    for name in action.metric_names():
        metrics = action.metric_by_name(name)
        raw = metrics.value() if metrics is not None else None
        if isinstance(raw, (int, float)) and math.isfinite(raw):
            numbers[name] = Counter(name=name, value=float(raw), unit=metrics.unit() or "")
        elif isinstance(raw, str):
            texts[name] = raw
    return numbers, texts


def _findings(action: Any) -> Iterator[Finding]:
    """Yield the results of NVIDIA's own rules, with their estimated gain."""
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


_ALL = 100.0  # per cent of a kernel's time: a rule cannot save more


def rule_finding(
    rule: tuple[str, str],
    message: str,
    focus: tuple[str, Any],
    speedup: float | None,
    *,
    local: bool = False,
    severity: Severity = Severity.NOTE,
) -> Finding:
    """Return a rule's result as a finding; its per cent are of the kernel's time, or of a part if it is local."""
    identifier, title = rule
    name, number = focus
    usable = isinstance(speedup, (int, float)) and 0 < speedup <= _ALL
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
    """Return a rule's sentence without its links."""
    return _LINK.sub(lambda link: link[2] if link[1] == "url" else link[3] or link[2], message)


MAGIC = b"NVR\0"

_BLOCK_VERSION = 7  # the known version of the container; others are not checked here

_RESULTS, _PAYLOAD = 2, 5  # the fields of a block's header with the number of its results and of its bytes


def check_not_cut(data: bytes, place: str) -> int:
    """Return the number of results that the blocks announce, if their form is known.

    Raise if the chain of blocks does not end with the file: the library would silently read only a part.
    """
    results = 0
    try:
        (size,) = struct.unpack_from("<I", data, len(MAGIC))
        at = len(MAGIC) + 4 + size
        head = dict(_fields(data[len(MAGIC) + 4 : at])) if at <= len(data) else {1: _BLOCK_VERSION}
        if head and head.get(1) != _BLOCK_VERSION:
            return 0
        while at < len(data):
            (size,) = struct.unpack_from("<I", data, at)
            header = dict(_fields(data[at + 4 : at + 4 + size]))
            at += 4 + size
            at += header.get(_PAYLOAD, 0)
            results += header.get(_RESULTS, 0)
    except (struct.error, IndexError) as error:
        raise PerfgateError(
            "ncu-report", f"the report of {len(data):,} bytes ends inside a block", place=place
        ) from error
    if at != len(data):
        raise PerfgateError(
            "ncu-report", f"the report is cut short: {len(data):,} bytes of {at:,} at the least", place=place
        )
    return results


def _fields(message: bytes) -> Iterator[tuple[int, int]]:
    """Yield (number, value) of the whole numbers of a protobuf message; texts are skipped."""
    at = 0
    while at < len(message):
        key, at = _number(message, at)
        kind = key & 7
        if kind == 0:
            number, at = _number(message, at)
            yield key >> 3, number
        elif kind == 2:
            length, at = _number(message, at)
            at += length
        else:
            at += 8 if kind == 1 else 4


def _number(message: bytes, at: int) -> tuple[int, int]:
    total = shift = 0
    while True:
        byte = message[at]
        at += 1
        total |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return total, at


_SAMPLES, _EXECUTED = "smsp__pcsamp_sample_count", "inst_executed"

_STALLED, _NOT_ISSUED, _ISSUING = "smsp__pcsamp_warps_issue_stalled_", "_not_issued", frozenset({"selected"})

_PER_OPCODE = ("sass__inst_executed_per_opcode_with_modifier_all", "sass__inst_executed_per_opcode")
"""Opcodes, with modifiers if the report has them."""


def code_lines(action: Any) -> tuple[SourceLine, ...]:
    """Return every instruction that was sampled or counted, in the order of the code."""
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
    """Return the source files imported into the report that have a text."""
    return {str(name): str(text) for name, text in dict(action.source_files()).items() if text}


def executed_opcodes(action: Any) -> Mapping[str, float]:
    """Return warp instructions by opcode, as the profiler counted them."""
    every = (action.metric_by_name(name) for name in _PER_OPCODE)
    metric = next((one for one in every if one is not None and one.has_correlation_ids()), None)
    if metric is None:
        return {}
    names = metric.correlation_ids()
    return {str(names.value(i)): float(metric.value(i)) for i in range(metric.num_instances())}


def _text(text: str | None) -> str:
    return (text or "").strip()


def _place(action: Any, address: int) -> str:
    where = action.source_info(address)
    return f"{where.file_name()}:{where.line()}" if where is not None else ""


def _reasons(action: Any) -> dict[int, str]:
    """Return the most sampled stall reason of each instruction."""
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
    metric = action.metric_by_name(name)
    if metric is None or not metric.num_instances() or not metric.has_correlation_ids():
        return {}
    address, number = metric.correlation_ids().as_uint64, metric.as_double
    return {address(i): number(i) for i in range(metric.num_instances())}


def main(todo: str, result: str) -> None:
    """Write the kernels of each report, or its error, into a file of its own for ``_read_in_child``."""
    for number, (path, place, announced) in enumerate(msgspec.msgpack.decode(Path(todo).read_bytes())):
        try:
            outcome = ("", "", tuple(_read_here(Path(path), place, announced)))
        except PerfgateError as error:
            outcome = (error.code.name, error.what, ())
        Path(result).with_suffix(f".{number}").write_bytes(msgspec.msgpack.encode(outcome))


if __name__ == "__main__":
    main(*sys.argv[1:])
