"""Recordings on disk: compact, resumable, written whole or not at all."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

ARMS = ("A", "A'", "+3 %", "+5 %", "+10 %")
SLOWER = (0, 0, 3, 5, 10)
BATCHES, SAMPLES = 10, 5
STEP = 1e-4
"""Samples are kept as 16-bit steps of a hundredth of a percent from their kernel's reference."""


@dataclass
class Tape:
    """One condition: rounds x kernels x arms x batches x samples of wall time and of CPU time."""

    kernels: list[str]
    reference: np.ndarray
    wall: list[np.ndarray] = field(default_factory=list)
    busy: list[np.ndarray] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    load: list[float] = field(default_factory=list)

    def write(self, path: Path) -> None:
        """Replace the file in one step."""
        path.parent.mkdir(parents=True, exist_ok=True)
        scratch = path.with_suffix(".part.npz")
        np.savez_compressed(
            scratch,
            kernels=np.array(self.kernels),
            reference=self.reference,
            wall=self._packed(np.stack(self.wall)),
            busy=self._packed(np.stack(self.busy)),
            seconds=np.array(self.seconds, dtype=np.float32),
            load=np.array(self.load, dtype=np.float32),
        )
        scratch.replace(path)

    def _packed(self, times: np.ndarray) -> np.ndarray:
        steps = np.log(times / self.reference.reshape(1, -1, 1, 1, 1)) / STEP
        return np.clip(np.rint(steps), -32767, 32767).astype(np.int16)


def read(path: Path) -> Tape:
    """A tape as it was written, times in nanoseconds."""
    with np.load(path) as arrays:
        reference = arrays["reference"]

        def times(name: str) -> list[np.ndarray]:
            return list(reference.reshape(1, -1, 1, 1, 1) * np.exp(arrays[name] * STEP))

        return Tape(
            kernels=[str(name) for name in arrays["kernels"]],
            reference=reference,
            wall=times("wall"),
            busy=times("busy"),
            seconds=arrays["seconds"].tolist(),
            load=arrays["load"].tolist(),
        )
