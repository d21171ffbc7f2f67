"""Plain pytest in CI: two builds decide what the accepted times cannot, and nothing slower passes for a slow run."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.plugin.projects import Project, Run
from tests.plugin.two_builds import SLOW, TESTS, git

CHANGE = {"GITHUB_ACTIONS": "true", "GITHUB_BASE_REF": "main", "GITHUB_EVENT_NAME": "pull_request"}
KERNEL = """from itertools import repeat


def work(n):
    total = 0
    for _ in repeat(None, n):
        total += n * n
    return total
"""
TWO_FIFTHS_MORE = KERNEL.replace("(None, n)", "(None, 7 * n // 5)")
"""As much more time: a loop over range() makes its numbers above 256 anew, and takes half as much again."""
SOMETIMES = TWO_FIFTHS_MORE.replace("\n\ndef work(n):\n", "\n\ndef work(n):\n    n = {}\n")
"""A kernel that does more at some calls or in some processes only."""
COUNTED = "import itertools\ncalls = itertools.count()\n"
OFTEN = COUNTED + SOMETIMES.format("n if next(calls) % 10 else 5 * n // 7")
SELDOM = COUNTED + KERNEL.replace("total = 0\n", "total = 0\n    n = n if next(calls) % 10 else 10 * n\n")
THIRD = """import os
seed = os.environ.get("PYTHONHASHSEED", "")  # of two builds, the number of the round
times = 3 if seed.isdigit() and int(seed) % 3 == 0 else 1
""" + KERNEL.replace("(None, n)", "(None, times * n)")
NO_COLLECTOR = "import gc\ngc.disable()\ngc.freeze()\n"
FROZEN = "import time\nfor name in ('perf_counter', 'perf_counter_ns', 'thread_time_ns'):\n    setattr(time, name, lambda: 0)\n"
BUSY = """import subprocess, sys
LOOP = "import os; parent = os.getppid()\\nwhile os.getppid() == parent: pass"
loops = [subprocess.Popen([sys.executable, "-c", LOOP]) for _ in range(3)]
"""
"""Three busy loops beside each process, which end with it."""
ACCEPT = "import sys; from pytest_perfgate.cli import main; sys.exit(main(['accept', '--new', '--reason', 'first']))"


class Upstream:
    """A bare repository with accepted times, and clones of it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.seed = Project(folder / "seed") if (folder / "seed").mkdir() is None else None
        self.seed.configure('arms = "worktree"\nbudget = "60 ms"\ndevices = ["*"]', 'pythonpath = ["."]')
        self.seed.write("kern.py", KERNEL)
        self.seed.write("tests/test_kern.py", TESTS.replace("30%", "10%"))
        self.seed.write(".gitignore", ".perfgate/\n__pycache__/\njunit.xml\n")
        git(self.seed.root, "init", "-q", "-b", "main")
        self._commit(self.seed.root, "code")

    def accept(self, times: float) -> None:
        """The run that is accepted reads so many times what the code takes."""
        assert self.seed.run("--perfgate=full", "tests").code == 0
        subprocess.run([sys.executable, "-c", ACCEPT], cwd=self.seed.root, check=True, capture_output=True)
        (lines,) = (self.seed.root / "baselines").rglob("*.yaml")
        text = lines.read_text()
        assert "time: " in text
        lines.write_text(re.sub(r"time: ([0-9.]+)", lambda match: f"time: {times * float(match[1]):.4f}", text))
        self._commit(self.seed.root, "accepted")

    def run(self, kernel: str, *words: str, settings: str = "", conftest: str = "", call: str = "") -> Run:
        """A fresh clone, one commit on a branch, and plain pytest; without a kernel the package stays as it is."""
        root = self._folder / "clone"
        git(self._folder, "clone", "-q", "--bare", "seed", "origin.git")
        git(self._folder, "clone", "-q", "origin.git", "clone")
        git(root, "checkout", "-q", "-b", "change")
        if kernel:
            (root / "kern.py").write_text(f"{kernel}# the change\n", encoding="utf-8")
        if settings:
            with (root / "pyproject.toml").open("a", encoding="utf-8") as file:
                file.write(f"\n{settings}\n")
        if call:
            tests = root / "tests" / "test_kern.py"
            text = tests.read_text(encoding="utf-8")
            assert "perfgate(work, 300)" in text
            tests.write_text(text.replace("perfgate(work, 300)", call), encoding="utf-8")
        if conftest:
            (root / "tests" / "conftest.py").write_text(conftest, encoding="utf-8")
        self._commit(root, "change")
        clone = Project.__new__(Project)
        clone.root = root
        return clone.run(*words, ci=True, **CHANGE)

    @staticmethod
    def _commit(root: Path, text: str) -> None:
        git(root, "add", "-A")
        git(root, "-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-q", "-m", text)


@pytest.fixture
def upstream(tmp_path: Path) -> Upstream:
    return Upstream(tmp_path)


@SLOW
@pytest.mark.parametrize("times", [0.6, 1.8])
def test_two_fifths_more_is_a_regression_whatever_run_was_accepted(upstream: Upstream, times: float) -> None:
    """A slow accepted run let a plain slowdown of 40 % pass in eight of nine runs."""
    upstream.accept(times)
    run = upstream.run(TWO_FIFTHS_MORE)
    assert run.code == 1, run.text
    assert "REGRESSED" in run.says("test_work"), run.text
    assert re.search(r"slower than base \w+ in \d+ rounds: \+[34]\d", run.says("test_work")), run.text
    assert run.outcome("test_other") == "passed", run.text


@SLOW
@pytest.mark.parametrize(
    ("kernel", "words", "conftest"),
    [
        pytest.param(OFTEN, (), "", id="nine calls of ten"),
        pytest.param(SELDOM, (), "", id="one call of ten, ten times slower"),
        pytest.param(THIRD, (), "", id="every third process three times slower"),
        pytest.param(TWO_FIFTHS_MORE, (), NO_COLLECTOR, id="no garbage collector"),
        pytest.param(TWO_FIFTHS_MORE, (), FROZEN, id="frozen clocks"),
        pytest.param(TWO_FIFTHS_MORE, (), BUSY, id="busy loops beside each process"),
        pytest.param(TWO_FIFTHS_MORE, ("-n", "2"), "", id="two workers"),
        pytest.param(TWO_FIFTHS_MORE, ("--reruns", "2"), "", id="reruns"),
    ],
)
def test_a_slowdown_is_found_however_it_hides(
    upstream: Upstream, kernel: str, words: tuple[str, ...], conftest: str
) -> None:
    """Beside the rows of ``test_attacks.py``, those whose times must be real."""
    upstream.accept(1.8)
    run = upstream.run(kernel, *words, conftest=conftest)
    assert run.code == 1, run.text
    assert "REGRESSED" in run.says("test_work"), run.text
    assert run.outcome("test_other") == "passed", run.text


@SLOW
@pytest.mark.parametrize(
    ("call", "code", "message"),
    [
        pytest.param("perfgate(int, setup=lambda: work(300))", 0, "edited test", id="work in setup"),
        pytest.param("perfgate(work, 300, calls=2)", 1, "edited test", id="two calls a sample"),
    ],
)
def test_a_test_that_measures_something_else_is_named(upstream: Upstream, call: str, code: int, message: str) -> None:
    """Nobody can tell whether an edited test still asks what it asked: the edit leads the report."""
    upstream.accept(1.0)
    run = upstream.run(TWO_FIFTHS_MORE, call=call)
    assert run.code == code, run.text
    assert "this change edits its own gate" in run.text
    assert message in run.text, run.text


@SLOW
@pytest.mark.parametrize("times", [0.6, 1.8])
def test_unchanged_code_passes_whatever_run_was_accepted(upstream: Upstream, times: float) -> None:
    """Slower than accepted and as fast as the base is MOVED where no noise of the accepted run explains it."""
    upstream.accept(times)
    run = upstream.run(KERNEL)
    assert run.code == 0, run.text
    assert re.search("full: (2|1 moved, 1) passed", run.text), run.text
    assert "improved" not in run.text.lower()
    assert re.search(r"(9|10) min \d+ s of the budget are left", run.text), "it is said before it is spent"


@SLOW
def test_a_change_that_leaves_the_package_as_it_was_is_decided_in_one_round(upstream: Upstream) -> None:
    """Two builds of the same files could only measure the machine, for up to ten minutes."""
    upstream.accept(0.6)
    run = upstream.run("", conftest="SIZE = 300\n")
    assert run.code == 0, run.text
    assert "the package is the same in both builds" in run.text
    assert "2 of 2 cases decided in 1 round" in run.text
    assert "undecided" not in run.text


@SLOW
def test_a_case_without_a_line_is_decided_by_two_builds(upstream: Upstream) -> None:
    run = upstream.run(TWO_FIFTHS_MORE)
    assert run.code == 1, run.text
    assert "REGRESSED" in run.says("test_work"), run.text
    assert "no accepted time" in run.says("test_work"), run.text
    assert run.outcome("test_other") == "passed", run.text
    assert "1 case without an accepted time, decided by base and head; next: perfgate accept --from RECORD" in run.text
    assert "RECORD is the record of this run" in run.text


@SLOW
def test_a_base_that_cannot_be_built_is_said_once_before_the_tests(upstream: Upstream) -> None:
    upstream.accept(1.0)
    run = upstream.run(KERNEL, settings='build = "false"')
    before = run.text.partition("= perfgate =")[0]
    lines = [line for line in before.splitlines() if "not decided by base and head" in line]
    assert len(lines) == 1, run.text
    assert "only accepted times judge" in lines[0]
    assert "making the base build" in before
    assert "in two builds, " not in before, "no rounds are announced that nobody plays"
    assert re.search(r"full: (\d (undecided|suspect)(, )?)+\n", run.text), run.text
