"""Suites of 40 tests by block resampling of recorded rounds, under five conditions.

Each of the 40 tests draws one of the recorded kernels and a starting round; its processes are the rounds
that follow, so what the machine did in a row stays in a row. Quiet and hogs are as recorded. A hog that
starts half way takes the second half from the recording with hogs. Bimodal: 30 % of processes are 11 %
slower. Drift: times grow by 10 % from the begin of a run to its end. Slowdowns up to 10 % are recorded; one of 40 %
is the recorded one of 10 % with its times multiplied.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from tape import Tape, read

TESTS, LONGEST = 40, 60
CONDITIONS = ("quiet", "hogs", "hog half way", "bimodal", "drift")
ARM = {0: 1, 3: 2, 5: 3, 10: 4, 40: 4}
"""The arm of a slowdown in percent; none is A'."""
MORE = {40: 1.4 / 1.1}
"""By what the times of that arm are multiplied."""
Array = np.ndarray


def summaries(tape: Tape) -> dict[str, Array]:
    """One number a process in several ways: rounds x kernels x arms, and the samples themselves."""
    wall, busy = np.stack(tape.wall), np.stack(tape.busy)
    flat, cpu = (times.reshape(*times.shape[:3], -1) for times in (wall, busy))
    low, middle, high = np.quantile(flat, (0.25, 0.5, 0.75), axis=-1)
    undisturbed = np.where(flat <= 1.02 * cpu, flat, np.nan)
    few = np.isnan(undisturbed).sum(-1) > 0.8 * flat.shape[-1]
    with np.errstate(all="ignore"):
        calm = np.where(few, middle, np.nanmedian(np.where(few[..., None], 1.0, undisturbed), -1))
    return {
        "samples": flat,
        "median": middle,
        "iqr": (high - low) / middle,
        "mean": flat.mean(-1),
        "min": flat.min(-1),
        "q10": np.quantile(flat, 0.1, axis=-1),
        "q25": low,
        "undisturbed": calm,
        "cpu": np.median(cpu, -1),
        "cpu q25": np.quantile(cpu, 0.25, axis=-1),
        "cpu q10": np.quantile(cpu, 0.10, axis=-1),
        "cpu min": cpu.min(-1),
        "cpu turns": np.median(busy, -1),
        "cpu turn minima": busy.min(-1),
        "wall turns": wall.min(-1),
        "cpu iqr": (np.quantile(cpu, 0.75, axis=-1) - np.quantile(cpu, 0.25, axis=-1)) / np.median(cpu, -1),
    }


class Library:
    """Both recordings, summarised once."""

    def __init__(self, folder: Path) -> None:
        tapes = [read(folder / f"{name}.npz") for name in ("quiet", "hogs")]
        self.kernels = tapes[0].kernels
        self.rounds = min(len(tape.wall) for tape in tapes)
        parts = [summaries(tape) for tape in tapes]
        self.tables = {name: np.stack([p[name][: self.rounds] for p in parts]) for name in parts[0]}


@dataclass
class Suite:
    """Forty tests: which kernel, which rounds, which arm, and what the condition does to each process."""

    library: Library
    condition: str
    kernel: Array
    start: Array
    arm: Array
    coins: Array
    more: Array

    def times(self, table: str, head: bool, at: Array, when: Array) -> Array:
        """Tests x processes: the summary of the processes ``at``, which run ``when`` (0 to 1) in the run."""
        rounds = (self.start[:, None] + at) % self.library.rounds
        noisy = np.broadcast_to(self._noisy(when), rounds.shape).astype(int)
        arm = self.arm[:, None] if head else np.zeros((TESTS, 1), int)
        summaries = self.library.tables[table][noisy, rounds, self.kernel[:, None], arm]
        if table.endswith("iqr"):
            return summaries
        factor = self._factor(head, at, np.broadcast_to(when, rounds.shape)) * (self.more[:, None] if head else 1.0)
        return summaries * (factor[..., None] if summaries.ndim > 2 else factor)

    def _noisy(self, when: Array) -> Array:
        if self.condition == "hog half way":
            return np.asarray(when) >= 0.5
        return np.full(np.shape(when), self.condition == "hogs")

    def _factor(self, head: bool, at: Array, when: Array) -> Array:
        if self.condition == "bimodal":
            return np.where(self.coins[:, at, int(head)], 1.11, 1.0)
        return 1 + 0.1 * when if self.condition == "drift" else np.ones(when.shape)


def suite(library: Library, condition: str, slowdown: int, slowed: int, dice: np.random.Generator) -> Suite:
    """One suite, of which the first ``slowed`` tests really do more work."""
    order = np.arange(TESTS)
    return Suite(
        library=library,
        condition=condition,
        kernel=dice.permutation(order % len(library.kernels)),
        start=dice.integers(0, library.rounds, TESTS),
        arm=np.where(order < slowed, ARM[slowdown], ARM[0]),
        coins=dice.random((TESTS, LONGEST, 2)) < 0.3,
        more=np.where(order < slowed, MORE.get(slowdown, 1.0), 1.0),
    )
