"""What a drift of the code does to the tolerance of a gate: scatter from all runs, within commits, of neighbours.

Twenty runs with 2 % of noise, one or four a commit; forty gates on a CPU. Prints how far chance reaches by each.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from pytest_perfgate.core.stats.inference import degrees_of_freedom, predict, scatter_of_neighbours

RUNS, NOISE, TRIALS = 20, 0.02, 400
LEVELS = {
    "nothing moves": np.zeros(RUNS),
    "0.7 % slower with each run": 0.007 * np.arange(RUNS),
    "12 % slower half way": np.where(np.arange(RUNS) < RUNS // 2, 0.0, 0.113),
}
Rule = Callable[[np.ndarray], tuple[float, int]]


def of_all(logs: np.ndarray) -> tuple[float, int]:
    """Return the standard deviation of all runs, and its degrees of freedom."""
    return float(logs.std(ddof=1)), len(logs) - 1


def scatter_within(a_commit: int, logs: np.ndarray) -> tuple[float, int]:
    """Return the pooled standard deviation within commits, and its degrees of freedom."""
    groups = [logs[at : at + a_commit] for at in range(0, len(logs), a_commit)]
    freedom = len(logs) - len(groups)
    squares = sum(float(((group - group.mean()) ** 2).sum()) for group in groups)
    return ((squares / freedom) ** 0.5 if freedom else 0.0), freedom


def of_neighbours(logs: np.ndarray) -> tuple[float, int]:
    """Return the scatter that the gate uses."""
    return scatter_of_neighbours(np.exp(logs).tolist()), degrees_of_freedom(len(logs))


RULES: dict[str, Rule] = {
    "all runs": of_all,
    "within commits of 1": partial(scatter_within, 1),
    "within commits of 4": partial(scatter_within, 4),
    "neighbours": of_neighbours,
}


def reach(rule: Rule, levels: np.ndarray) -> float:
    """Return the mean over many histories of what chance explains."""
    dice = np.random.default_rng(11)
    reaches = []
    for _ in range(TRIALS):
        scatter, freedom = rule(levels + dice.normal(0, NOISE, RUNS))
        reaches.append(predict(0.04, scatter=scatter, runs=RUNS, gates=40, freedom=freedom).reach)
    return float(np.mean(reaches))


def main() -> None:
    print(f"{'chance explains up to':32}" + "".join(f"{name:>22}" for name in RULES))
    for name, levels in LEVELS.items():
        print(f"{name:32}" + "".join(f"{reach(rule, levels):>+22.1%}" for rule in RULES.values()))


if __name__ == "__main__":
    main()
