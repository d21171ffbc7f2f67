"""What the plugin costs a session that gates nothing: user CPU of ``pytest --collect-only``, with and without it."""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

KEPT = {name: text for name, text in os.environ.items() if not name.startswith(("PYTEST_", "PYTHON"))}
WITH = ("-p", "pytest_perfgate.plugin")


def user_seconds(folder: Path, *arguments: str) -> float:
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", *arguments]
    child = subprocess.Popen(command, cwd=folder, env=environment(folder), stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    assert child.returncode == 0, command
    return usage.ru_utime


def environment(folder: Path) -> dict[str, str]:
    """Byte code is cached, as it is for every installed package, in a place of its own."""
    return {**KEPT, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPYCACHEPREFIX": str(folder / "cache")}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=100)
    pairs = parser.parse_args().pairs
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "test_nothing.py").write_text("def test_nothing():\n    pass\n")
        user_seconds(folder), user_seconds(folder, *WITH)
        seen = [(user_seconds(folder), user_seconds(folder, *WITH)) for _ in range(pairs)]
    differences = sorted(1e3 * (with_it - without) for without, with_it in seen)
    low, high = differences[int(0.025 * pairs)], differences[min(pairs - 1, int(0.975 * pairs))]
    print(f"pytest --collect-only without the plugin: {1e3 * statistics.median(w for w, _ in seen):.1f} ms of user CPU")
    print(f"the plugin adds (median of {pairs} interleaved pairs): {statistics.median(differences):.2f} ms")
    print(f"mean {statistics.fmean(differences):.2f} ms, 95 % of pairs in [{low:.1f}, {high:.1f}] ms; budget 5 ms")


if __name__ == "__main__":
    main()
