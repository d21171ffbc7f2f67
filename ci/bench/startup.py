"""What the plugin costs a session that gates nothing: CPU time of ``pytest --collect-only``, with and without it.

Both sides find the same installed plugins through their entry points; one is told ``-p no:perfgate``. (Naming the
plugin with ``-p`` while discovery is off would charge it with pytest's own scan of every installed distribution.)
User and system time together: the kernel knows their sum to the microsecond and splits it by sampling.
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
WITHOUT = ("-p", "no:perfgate")


def cpu_seconds(folder: Path, *arguments: str) -> float:
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", *arguments]
    child = subprocess.Popen(command, cwd=folder, env=environment(folder), stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    assert child.returncode == 0, command
    return usage.ru_utime + usage.ru_stime


def environment(folder: Path) -> dict[str, str]:
    """Byte code is cached, as it is for every installed package, in a place of its own."""
    return {**KEPT, "PYTHONHASHSEED": "0", "PYTHONPYCACHEPREFIX": str(folder / "cache")}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=100)
    pairs = parser.parse_args().pairs
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "test_nothing.py").write_text("def test_nothing():\n    pass\n")
        cpu_seconds(folder, *WITHOUT), cpu_seconds(folder)
        seen = [(cpu_seconds(folder, *WITHOUT), cpu_seconds(folder)) for _ in range(pairs)]
    differences = sorted(1e3 * (with_it - without) for without, with_it in seen)
    half = 1.96 * pairs**0.5 / 2
    low, high = differences[max(0, int(pairs / 2 - half))], differences[min(pairs - 1, int(pairs / 2 + half))]
    print(f"pytest --collect-only without the plugin: {1e3 * statistics.median(w for w, _ in seen):.1f} ms of CPU")
    print(
        f"the plugin adds (median of {pairs} interleaved pairs): {statistics.median(differences):.2f} ms, "
        f"95 % interval [{low:.2f}, {high:.2f}] ms; budget 5 ms"
    )


if __name__ == "__main__":
    main()
