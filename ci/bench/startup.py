"""What the plugin costs a session that gates nothing: CPU time of ``pytest --collect-only``, with and without it.

Other plugins are left out on both sides, and ours comes by ``PYTEST_PLUGINS``: naming it with ``-p`` while discovery
is off would charge it with pytest's own scan of every installed distribution. User and system time together: the
kernel knows their sum to the microsecond and splits it by sampling. What else runs on the machine only ever adds, so
the difference of the quickest tenths stands beside the median of the pairs.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

KEPT = {name: text for name, text in os.environ.items() if not name.startswith(("PYTEST_", "PYTHON"))}
WITH = {"PYTEST_PLUGINS": "pytest_perfgate.plugin"}


def cpu_seconds(folder: Path, **more: str) -> float:
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q"]
    child = subprocess.Popen(command, cwd=folder, env=environment(folder) | more, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    assert child.returncode == 0, command
    return usage.ru_utime + usage.ru_stime


def environment(folder: Path) -> dict[str, str]:
    """Byte code is cached, as it is for every installed package, in a place of its own."""
    own = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONHASHSEED": "0", "PYTHONPYCACHEPREFIX": str(folder / "cache")}
    return KEPT | own


def pairs_of(count: int) -> list[tuple[float, float]]:
    """Milliseconds without and with the plugin, taking turns; the first of a pair changes."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "test_nothing.py").write_text("def test_nothing():\n    pass\n")
        cpu_seconds(folder), cpu_seconds(folder, **WITH)
        seen = []
        for number in range(count):
            sides = [cpu_seconds(folder, **more) for more in (({}, WITH) if number % 2 else (WITH, {}))]
            without, with_it = sides if number % 2 else sides[::-1]
            seen.append((1e3 * without, 1e3 * with_it))
    return seen


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=100)
    pairs = parser.parse_args().pairs
    seen = pairs_of(pairs)
    differences = sorted(with_it - without for without, with_it in seen)
    half = 1.96 * pairs**0.5 / 2
    low, high = differences[max(0, int(pairs / 2 - half))], differences[min(pairs - 1, int(pairs / 2 + half))]
    quick = [sorted(side)[pairs // 10] for side in zip(*seen)]
    print(f"pytest --collect-only without the plugin: {statistics.median(w for w, _ in seen):.1f} ms of CPU")
    print(
        f"the plugin adds: median of {pairs} interleaved pairs {statistics.median(differences):.2f} ms, "
        f"95 % interval [{low:.2f}, {high:.2f}]; quickest tenths {quick[1] - quick[0]:.2f} ms; budget 5 ms"
    )


if __name__ == "__main__":
    main()
