"""Whether a reference kernel as divisor lowers the scatter of recorded kernels: ``python ci/bench/verdicts/canary.py``.

For two such canaries: the scatter of the other nine kernels between rounds, as it is and divided by the canary of the
same round; once for a process's median wall time, as a stored baseline compares it, once for pairs of processes in
turns.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
from tape import Tape, read  # noqa: E402

CANARIES = ("arithmetic", "hashing")


def medians(tape: Tape) -> np.ndarray:
    """Rounds x kernels: logarithms of the base process's median wall time."""
    wall = np.stack(tape.wall)[:, :, 0]
    return np.log(np.median(wall.reshape(*wall.shape[:2], -1), -1))


def pairs(tape: Tape) -> np.ndarray:
    """Rounds x kernels: how far two processes of unchanged code are apart, turn by turn."""
    least = np.stack(tape.busy).min(-1)
    return np.median(np.log(least[:, :, 1] / least[:, :, 0]), -1)


def main() -> None:
    print(
        "| recording | condition | canary | process medians | divided | pairs in turns | divided | kernels it helps |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for folder in (HERE / "recordings", HERE / "recordings" / "loaded"):
        for condition in ("quiet", "hogs"):
            tape = read(folder / f"{condition}.npz")
            for name in CANARIES:
                at = tape.kernels.index(name)
                rest = [k for k in range(len(tape.kernels)) if k != at]
                cells, helped = [], []
                for table in (medians(tape), pairs(tape)):
                    alone, divided = table[:, rest].std(0), (table[:, rest] - table[:, [at]]).std(0)
                    cells += [f"{alone.mean():.1%}", f"{divided.mean():.1%}"]
                    helped.append(int((divided < alone).sum()))
                gains = f"{helped[0]} and {helped[1]} of {len(rest)}"
                print(f"| {folder.name} | {condition} | {name} | {' | '.join(cells)} | {gains} |")


if __name__ == "__main__":
    main()
