"""Who is who: the rank of each process, from the range it labels itself with or from its device."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.nsys import Activity, Preset, Ranges, pid_of
from pytest_perfgate.model.nsys_job import Rank, RankResult


def ranks(
    ranges: Ranges,
    processes: Sequence[tuple[int, int]],
    preset: Preset,
    file: int = 0,
    first: int = 0,
    threads: Sequence[tuple[int, str]] = (),
) -> tuple[Rank, ...]:
    """One rank per process and device; ``first`` is where counting goes on after other files."""
    titles = {pid: name for pid, name in reversed(threads) if re.search(preset.thread, name)}
    labels = {**titles, **_labels(ranges, preset)}
    devices: dict[int, int] = {}
    for pid, _ in processes:
        devices[pid] = devices.get(pid, 0) + 1
    order = sorted(processes, key=lambda pair: (pair[1], pair[0]))
    found = []
    for number, (pid, device) in enumerate(order, first):
        label = labels.get(pid, "")
        name = _rank(label, preset) if label else str(number)
        if label and devices[pid] > 1:
            name = f"{name}/gpu{device}"
        found.append(_named(name, pid, device, label, preset, file))
    return tuple(found)


def _labels(ranges: Ranges, preset: Preset) -> dict[int, str]:
    """Each process's first range that names a rank."""
    pattern = re.compile(preset.rank, re.IGNORECASE)
    names = np.array([bool(pattern.search(text)) for text in ranges.texts], dtype=bool)
    rows = np.flatnonzero(names[ranges.text]) if len(ranges) else np.empty(0, dtype=np.int64)
    rows = rows[np.argsort(ranges.start[rows], kind="stable")]
    found: dict[int, str] = {}
    for pid, text in zip(pid_of(ranges.tid[rows]).tolist(), ranges.text[rows].tolist()):
        found.setdefault(pid, ranges.texts[text])
    return found


def _rank(label: str, preset: Preset) -> str:
    hit = re.search(preset.rank, label, re.IGNORECASE) or re.search(preset.thread, label)
    return hit.group(1) if hit else ""


def _named(name: str, pid: int, device: int, label: str, preset: Preset, file: int) -> Rank:
    mesh = re.findall(preset.mesh, label, re.IGNORECASE)
    settings = re.findall(preset.settings, label, re.IGNORECASE)
    return Rank(
        name=name,
        pid=pid,
        device=device,
        file=file,
        label=label,
        mesh=tuple((axis.lower(), int(at), int(size)) for axis, at, size in mesh),
        settings=tuple((key.lower(), int(number)) for key, number in settings),
    )


def check_distinct(found: Sequence[Rank], files: Sequence[str]) -> None:
    """Two processes with one rank would be added up as one."""
    seen: dict[str, Rank] = {}
    for rank in found:
        other = seen.setdefault(rank.name, rank)
        if other is not rank:
            here, there = (f"process {r.pid} of {files[r.file]}" for r in (rank, other))
            raise PerfgateError("nsys-ranks", f"rank {rank.name} is {there} and {here}")


def check_copies(found: Sequence[RankResult], files: Sequence[str]) -> None:
    """Without labels, two files in which the same processes run the same kernels at the same times are one."""
    seen: dict[tuple[int, int, int, int], RankResult] = {}
    for result in (result for result in found if not result.rank.label):
        rank, window = result.rank, result.lane.window
        other = seen.setdefault((rank.pid, rank.device, window.start, window.end), result)
        if other.rank.file != rank.file and _same(other.lane.kernels, result.lane.kernels):
            here, there = files[rank.file], files[other.rank.file]
            what = "the same file was given twice" if here == there else f"{here} is a copy of {there}"
            raise PerfgateError("nsys-ranks", f"{what}: every kernel of process {rank.pid} is in both")


def _same(one: Activity, other: Activity) -> bool:
    return len(one) > 0 and np.array_equal(one.start, other.start) and np.array_equal(one.end, other.end)


def order(rank: Rank) -> tuple[int, str]:
    """Ranks by number, as people count."""
    digits = re.match(r"\d+", rank.name)
    return (int(digits.group()) if digits else 1 << 62, rank.name)
