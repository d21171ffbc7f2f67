"""What the plugin costs a session that gates nothing: CPU time of ``pytest --collect-only``, installed and not.

Two folders of links stand for two environments: pytest and what it needs, and the same with this package. Both are
discovered as pytest discovers any installed plugin, so neither side is charged with what the other one pays as well.
User and system time together: the kernel knows their sum to the microsecond and splits it by sampling. What else runs
on the machine only ever adds, so the difference of the quickest tenths stands beside the median of the pairs.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement

import pytest_perfgate

KEPT = {name: text for name, text in os.environ.items() if not name.startswith(("PYTEST_", "PYTHON"))}


# the two environments


def needed(name: str) -> set[str]:
    """The distribution and all that it requires, without extras."""
    wanted = [Requirement(text) for text in distribution(name).requires or ()]
    here = [each.name for each in wanted if each.marker is None or each.marker.evaluate({"extra": ""})]
    return {name}.union(*(needed(each) for each in here))


def tops(found: Distribution) -> set[Path]:
    """What the distribution put into its folder of packages, and nothing that it put elsewhere."""
    home = Path(str(found.locate_file("")))
    names = {file.parts[0] for file in found.files or () if ".." not in file.parts and file.suffix != ".pth"}
    return {home / name for name in names if name != "__pycache__"}


def environments(folder: Path) -> tuple[Path, Path]:
    """Two folders of packages: pytest alone, and pytest with this plugin."""
    bare, whole = folder / "bare", folder / "whole"
    shared = {top for name in needed("pytest") for top in tops(distribution(name))}
    described = {top for top in tops(distribution("pytest-perfgate")) if top.suffix == ".dist-info"}
    own = {Path(pytest_perfgate.__file__).parent} | described
    for place, links in ((bare, shared), (whole, shared | own)):
        place.mkdir()
        for target in links:
            (place / target.name).symlink_to(target)
    return bare, whole


def cpu_seconds(packages: Path, tests: Path) -> float:
    """One run with byte code cached, as it is for every installed package, in a place of its own."""
    command = [sys.executable, "-S", "-m", "pytest", "--collect-only", "-q"]
    own = {"PYTHONPATH": str(packages), "PYTHONHASHSEED": "0", "PYTHONPYCACHEPREFIX": str(packages.parent / "cache")}
    child = subprocess.Popen(command, cwd=tests, env=KEPT | own, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    assert child.returncode == 0, command
    return usage.ru_utime + usage.ru_stime


def loads_it(packages: Path, tests: Path) -> bool:
    command = [sys.executable, "-S", "-m", "pytest", "--help"]
    shown = subprocess.run(
        command, cwd=tests, env=KEPT | {"PYTHONPATH": str(packages)}, capture_output=True, text=True, check=True
    )
    return "--perfgate-against" in shown.stdout


def pairs_of(count: int) -> list[tuple[float, float]]:
    """Milliseconds without and with the plugin, taking turns; the first of a pair changes."""
    with tempfile.TemporaryDirectory() as name:
        tests = Path(name) / "tests"
        tests.mkdir()
        (tests / "test_nothing.py").write_text("def test_nothing():\n    pass\n")
        bare, whole = environments(Path(name))
        assert [loads_it(each, tests) for each in (bare, whole)] == [False, True], "the plugin is in one of the two"
        for packages in (bare, whole):
            cpu_seconds(packages, tests)
        seen = []
        for number in range(count):
            sides = [cpu_seconds(packages, tests) for packages in ((bare, whole) if number % 2 else (whole, bare))]
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
