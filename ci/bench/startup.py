"""What the plugin costs a session that gates nothing: CPU time of ``pytest --collect-only``, installed and not.

With --inspect: what ``perfgate inspect`` of a tiny trace takes, beside Python and NumPy alone and the code BEFORE.

Folders of packages stand for environments: pytest and what it needs alone; with this package from its checkout; with
its wheel as pip and uv install it, because pytest reads the list of files of every plugin and a wheel's is long; and
with pytest-benchmark, where that is here. Each plugin is discovered as pytest discovers any, all taking turns. User and
system time together: the kernel knows their sum to the microsecond and splits it by sampling. What else runs on the
machine only ever adds, so the difference of the quickest tenths stands beside the median of the pairs.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement

import pytest_perfgate
from ci.bench.trace_maker import write_trace

ROOT = Path(__file__).resolve().parents[2]
KEPT = {name: text for name, text in os.environ.items() if not name.startswith(("PYTEST_", "PYTHON", "PIP_"))}
BARE, CHECKOUT, PEER = "pytest alone", "from a checkout", "pytest-benchmark"
WHEELS = {"from a wheel, by pip": (), "from a wheel, by uv": ("--no-compile",)}
"""pip lists the byte code that it writes beside each module; uv writes none, so that its list is half as long."""


# the environments


def requirements(name: str) -> set[str]:
    """Return the distribution and all that it requires, without extras."""
    wanted = [Requirement(text) for text in distribution(name).requires or ()]
    here = [each.name for each in wanted if each.marker is None or each.marker.evaluate({"extra": ""})]
    return {name}.union(*(requirements(each) for each in here))


def installed_paths(distribution: Distribution) -> set[Path]:
    """Return what the distribution installed into its folder of packages, and nothing elsewhere."""
    home = Path(str(distribution.locate_file("")))
    names = {file.parts[0] for file in distribution.files or () if ".." not in file.parts and file.suffix != ".pth"}
    return {home / name for name in names if name != "__pycache__"}


def link_packages(place: Path, *names: str) -> Path:
    place.mkdir()
    for target in {top for name in names for top in installed_paths(distribution(name))}:
        (place / target.name).symlink_to(target)
    return place


def environments(folder: Path) -> dict[str, Path]:
    """Return a folder of packages for each environment."""
    shared = requirements("pytest")
    folders = {BARE: link_packages(folder / "bare", *shared)}
    folders[CHECKOUT] = link_packages(folder / "checkout", *shared, "pytest-perfgate")
    for module in ("pytest_perfgate", "perfgate_presence.py"):
        if not (folders[CHECKOUT] / module).exists():
            (folders[CHECKOUT] / module).symlink_to(Path(pytest_perfgate.__file__).parents[1] / module)
    quietly = ("--quiet", "--no-deps", "--disable-pip-version-check")
    for number, (kind, words) in enumerate(WHEELS.items()):
        folders[kind] = link_packages(folder / f"wheel{number}", *shared)
        command = [sys.executable, "-m", "pip", "install", *quietly, *words, "--target", folders[kind], ROOT]
        subprocess.run(command, check=True)
    try:
        folders[PEER] = link_packages(folder / "peer", *shared, *requirements(PEER))
    except PackageNotFoundError:
        print(f"{PEER} is not installed: not measured")
    return folders


# one session


def run(packages: Path, tests: Path, *words: str) -> tuple[float, str]:
    """Return CPU seconds and output; byte code is cached in a place of its own, as for an installed package."""
    command = [sys.executable, "-S", "-m", "pytest", *words]
    own = {"PYTHONPATH": str(packages), "PYTHONHASHSEED": "0", "PYTHONPYCACHEPREFIX": str(packages.parent / "cache")}
    with tempfile.TemporaryFile("w+") as out:
        child = subprocess.Popen(command, cwd=tests, env=KEPT | own, stdout=out)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        assert child.returncode == 0, command
        out.seek(0)
        return usage.ru_utime + usage.ru_stime, out.read()


def rounds_of(count: int) -> dict[str, list[float]]:
    """Return milliseconds by environment, one of each a round; each round begins with another one."""
    with tempfile.TemporaryDirectory() as name:
        tests = Path(name) / "tests"
        tests.mkdir()
        (tests / "test_nothing.py").write_text("def test_nothing():\n    pass\n")
        places = environments(Path(name))
        for kind, packages in places.items():
            output = run(packages, tests, "--help")[1]
            assert ("--perfgate-against" in output) == (kind in {CHECKOUT, *WHEELS}), kind
            assert ("--benchmark-json" in output) == (kind == PEER), kind
            run(packages, tests, "--collect-only", "-q")
        times: dict[str, list[float]] = {kind: [] for kind in places}
        kinds = list(places)
        for number in range(count):
            turn = number % len(kinds)
            for kind in kinds[turn:] + kinds[:turn]:
                times[kind].append(1e3 * run(places[kind], tests, "--collect-only", "-q")[0])
    return times


def line_of(kind: str, bare: list[float], loaded: list[float]) -> str:
    count = len(bare)
    differences = sorted(with_it - without for without, with_it in zip(bare, loaded))
    half = 1.96 * count**0.5 / 2
    low, high = differences[max(0, int(count / 2 - half))], differences[min(count - 1, int(count / 2 + half))]
    quick = sorted(loaded)[count // 10] - sorted(bare)[count // 10]
    return (
        f"{kind:21}  +{statistics.median(differences):.2f} ms, median of {count} interleaved pairs, "
        f"95 % interval [{low:.2f}, {high:.2f}]; quickest tenths +{quick:.2f} ms"
    )


# one command


COMMAND = "import sys; sys.path.insert(0, sys.argv.pop(1)); from pytest_perfgate.cli import main; sys.exit(main())"


def inspections(count: int, before: str) -> dict[str, list[tuple[float, float]]]:
    """Return milliseconds of processor and clock by program, one a round; each round begins with another one."""
    with tempfile.TemporaryDirectory() as folder:
        tiny = Path(folder) / "tiny.json"
        write_trace(tiny, 60)
        trees = {"perfgate inspect": str(ROOT), **({"the code before": str(Path(before).absolute())} if before else {})}
        commands = {name: [sys.executable, "-c", COMMAND, tree, "inspect", str(tiny)] for name, tree in trees.items()}
        commands["python and numpy alone"] = [sys.executable, "-c", "import numpy"]
        times: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
        for number in range(-1, count):
            names = list(commands)
            turn = number % len(names)
            for name in names[turn:] + names[:turn]:
                took = process_times(commands[name], Path(folder))
                times[name] += [took] if number >= 0 else []  # the first round writes byte code
    return times


def process_times(command: list[str], folder: Path) -> tuple[float, float]:
    """Return milliseconds of processor and clock of a whole process."""
    begun = time.perf_counter()
    child = subprocess.Popen(command, cwd=folder, env=KEPT, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    clock = time.perf_counter() - begun
    child.returncode = os.waitstatus_to_exitcode(status)
    assert child.returncode == 0, command
    return 1e3 * (usage.ru_utime + usage.ru_stime), 1e3 * clock


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=100)
    parser.add_argument("--inspect", action="store_true", help="the start of `perfgate inspect` instead")
    parser.add_argument("--before", default="", help="with --inspect: a checkout of other code, which takes turns")
    options = parser.parse_args()
    if options.inspect:
        print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; the clock may show 250 ms")
        for name, took in inspections(options.pairs, options.before).items():
            for kind, ms in zip(("CPU", "clock"), zip(*took)):
                print(f"{name:23} {kind:6} {min(ms):4.0f} ms at best, {statistics.median(ms):4.0f} in the middle")
        return
    times = rounds_of(options.pairs)
    bare = times.pop(BARE)
    print(f"pytest --collect-only alone: {statistics.median(bare):.1f} ms of CPU; the plugin may add 5 ms")
    for kind, both in times.items():
        print(line_of(kind, bare, both))


if __name__ == "__main__":
    main()
