"""Records real fresh processes in lock-step: ``python ci/bench/verdicts/record.py --minutes 15``.

A round starts two processes with one hash seed, pinned to one core. For each kernel they alternate in batches of five
4 ms samples, ten times: the base arm in the middle, around it the other process with the same work, and with
3, 5 and 10 % more of it. Rounds of the two conditions (quiet, two bursty hogs) take turns, so that
stopping early leaves as many of each; run again, it adds rounds to what is there.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from kernels import UNITS, kernels
from tape import ARMS, BATCHES, SAMPLES, SLOWER, Tape, read

HERE = Path(__file__).parent
SAMPLE_NS, WARM_NS = 4e6, 60e6
ORDERS = ((1, 2, 0, 3, 4), (3, 4, 0, 1, 2), (2, 1, 0, 4, 3), (4, 3, 0, 2, 1))


class Worker:
    """A live process of a round."""

    def __init__(self, core: int, seed: str) -> None:
        self.pipe = subprocess.Popen(
            [sys.executable, str(HERE / "worker.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            preexec_fn=lambda: os.sched_setaffinity(0, {core}),  # noqa: PLW1509 - no threads here
            env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONHASHSEED": seed},
        )

    def run(self, name: str, units: int, samples: int, calls: int) -> list[float]:
        assert self.pipe.stdin is not None
        assert self.pipe.stdout is not None
        self.pipe.stdin.write(f"{name} {units} {samples} {calls}\n")
        self.pipe.stdin.flush()
        return [float(word) for word in self.pipe.stdout.readline().split()]

    def close(self) -> None:
        self.pipe.kill()
        self.pipe.wait()


def warm_up(base: Worker, other: Worker, name: str) -> int:
    """Warm up both processes; return the calls that fill one sample."""
    spent, fastest = 0.0, float("inf")
    while spent < WARM_NS:
        walls = base.run(name, UNITS, 3, 4)[:3]
        other.run(name, UNITS, 3, 4)
        fastest, spent = min(fastest, *walls), spent + sum(walls) * 4
    return max(1, round(SAMPLE_NS / fastest))


def one_round(names: list[str], core: int) -> tuple[np.ndarray, np.ndarray]:
    """Run every kernel once in two fresh processes."""
    wall = np.zeros((len(names), len(ARMS), BATCHES, SAMPLES))
    busy = np.zeros_like(wall)
    seed = str(int.from_bytes(os.urandom(3), "big"))
    base, other = Worker(core, seed), Worker(core, seed)
    try:
        for k, name in enumerate(names):
            calls = warm_up(base, other, name)
            for b in range(BATCHES):
                for arm in ORDERS[b % len(ORDERS)]:
                    units = UNITS + UNITS * SLOWER[arm] // 100
                    taken = (other if arm else base).run(name, units, SAMPLES, calls)
                    wall[k, arm, b], busy[k, arm, b] = taken[:SAMPLES], taken[SAMPLES:]
    finally:
        base.close()
        other.close()
    return wall, busy


def hogs(count: int) -> list[subprocess.Popen[bytes]]:
    return [subprocess.Popen([sys.executable, str(HERE / "worker.py"), "hog", str(seed)]) for seed in range(count)]


def take(path: Path, names: list[str], noisy: bool, core: int) -> None:
    """Add one round to a condition's tape."""
    neighbours = hogs(2 if noisy else 0)
    try:
        if neighbours:
            time.sleep(0.3)
        wall, busy = one_round(names, core)
    finally:
        for neighbour in neighbours:
            neighbour.kill()
            neighbour.wait()
    tape = read(path) if path.exists() else Tape(kernels=names, reference=np.median(wall[:, 0], axis=(1, 2)))
    tape.wall.append(wall)
    tape.busy.append(busy)
    tape.seconds.append(time.time())
    tape.load.append(os.getloadavg()[0])
    tape.write(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=15.0)
    parser.add_argument("--out", type=Path, default=HERE / "recordings")
    parser.add_argument("--core", type=int, default=max(os.sched_getaffinity(0)))
    chosen = parser.parse_args()
    names, until, rounds = list(kernels()), time.monotonic() + chosen.minutes * 60, 0
    while time.monotonic() < until:
        for noisy in (False, True):
            take(chosen.out / f"{'hogs' if noisy else 'quiet'}.npz", names, noisy, chosen.core)
        rounds += 1
        print(f"round {rounds} of each condition; {max(0.0, until - time.monotonic()) / 60:.1f} min left", flush=True)


if __name__ == "__main__":
    main()
