"""Two real arms: a slower head is confirmed, a suspect of a stored baseline is tried beside its commit."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from tests.plugin.projects import Project
from tests.plugin.two_builds import KERNEL, SLOW, SLOWER, TESTS, digest, git, repository

__all__ = ["repository"]


@SLOW
def test_a_slower_head_is_confirmed_and_nothing_of_the_user_is_touched(repository: Project) -> None:
    before = digest(Path(sys.prefix))
    repository.write("kern.py", SLOWER)
    run = repository.run("--perfgate-against", "HEAD", "tests")
    assert run.code == 1, run.text
    assert "2 tests in two builds, 7 to 30 rounds" in run.text
    assert re.search(r"2 of 2 cases decided in \d+ to \d+ rounds", run.text)
    assert "REGRESSED" in run.says("test_work")
    assert "10 rounds against" in run.says("test_work")
    assert run.outcome("test_other") == "passed", run.text
    assert git(repository.root, "status", "--porcelain") == "M kern.py"
    assert git(repository.root, "worktree", "list").count("\n") <= 2
    assert digest(Path(sys.prefix)) == before
    assert not list((repository.root / ".perfgate" / "rounds").glob("*.bin"))


def test_a_commit_of_a_line_that_only_ci_had_is_the_one_that_brought_the_line(repository: Project) -> None:
    """The next step of a verdict in CI names the merge commit of a pull request, which no clone has."""
    line = "perfgate: 1\nbaselines:\n  'test_work': {time: 1.0us, commit: c5862dac960c}\n"
    repository.write("baselines/NVIDIA-H200/tests/test_kern.py.yaml", line)
    repository.configure(settings='build = "false"', pytest_ini='pythonpath = ["."]')
    for message in ("the line", "later", "later still"):
        git(repository.root, "add", "-A")
        git(repository.root, "commit", "-q", "--allow-empty", "-m", message)
    brought = git(repository.root, "rev-parse", "HEAD~2")
    run = repository.run("--perfgate-against", "c5862dac960c", "tests")
    assert f"c5862dac96 is not in this clone; {brought[:10]} brought its line in" in run.text
    assert f"the base build ({brought[:10]}" in run.text, "no two builds, for the command fails"
    run = repository.run("--perfgate-against", "c5862dac960d", "tests")
    assert "revision-missing" in run.text


@SLOW
def test_a_slower_kernel_of_the_test_file_is_confirmed_beside_the_version_of_the_base(repository: Project) -> None:
    own = "{kernel}\n\ndef test_work(perfgate):\n    perfgate(work, 300)\n\ndef test_other(perfgate):\n    perfgate(sum, [1] * 300)\n"
    for kernel, message in [(KERNEL, "one"), (SLOWER, "two")]:
        repository.write("tests/test_kern.py", own.format(kernel=kernel))
        git(repository.root, "add", "-A")
        git(repository.root, "commit", "-q", "-m", message)
    run = repository.run("--perfgate-against", "HEAD~1", "tests")
    assert "REGRESSED" in run.says("test_work"), run.text
    assert "the base has another work in tests/test_kern.py, and ran its own test file" in run.text.replace(
        "\n       ", ""
    )
    assert run.outcome("test_other") == "passed", run.text


CONFTEST = """
    import pytest

    @pytest.fixture
    def size():
        return {size}
"""


@SLOW
@pytest.mark.parametrize(
    ("conftest", "why"),
    [
        ("\n    from new import SIZE" + CONFTEST.format(size="SIZE"), "cannot start with a conftest.py as it is here"),
        (CONFTEST.format(size='__import__("new").SIZE'), "fails at this test as it is here"),
    ],
)
def test_a_conftest_that_needs_what_only_the_head_has_is_the_base_s_own_there(
    repository: Project, conftest: str, why: str
) -> None:
    repository.write("tests/conftest.py", CONFTEST.format(size=300))
    repository.write("tests/test_kern.py", TESTS.replace("test_work(perfgate", "test_work(perfgate, size"))
    git(repository.root, "add", "-A")
    git(repository.root, "commit", "-q", "-m", "two")
    repository.write("new.py", "SIZE = 300\n")
    repository.write("kern.py", SLOWER)
    repository.write("tests/conftest.py", conftest)
    run = repository.run("--perfgate-against", "HEAD", "tests")
    assert "REGRESSED" in run.says("test_work"), run.text
    assert why in run.text
    assert "and ran its own conftest.py" in run.text.replace("\n", " ")
    assert run.outcome("test_other") == "passed", run.text


@SLOW
def test_a_suspect_is_tried_beside_the_commit_of_its_baseline(repository: Project) -> None:
    """Accepted at a commit, then slower in the working copy: two arms confirm, not the stored number."""
    repository.run("--perfgate=full", "tests/test_kern.py::test_work")
    repository.write("kern.py", SLOWER)
    run = repository.run("--perfgate=full", "tests/test_kern.py::test_work")
    assert run.code == 1, run.text
    assert "1 test in two builds, 7 to 30 rounds" in run.text
    assert "slower than" in run.says("test_work")
    assert "in 9 rounds" in run.says("test_work")


@SLOW
def test_a_machine_that_moved_is_named_and_not_the_code(repository: Project) -> None:
    """The stored time is of a faster and quiet machine with another Python; its own commit holds the same code."""
    repository.run("--perfgate=full", "--perfgate-rounds=6", "tests/test_kern.py::test_work")
    (lines,) = (repository.root / ".perfgate" / "baselines").rglob("*.yaml")
    (around,) = (repository.root / ".perfgate" / "baselines").rglob("environments/*.json")
    faster = re.sub(r"time: ([0-9.]+)", lambda match: f"time: {float(match[1]) / 10:.4f}", lines.read_text())
    lines.write_text(re.sub(r" detects: [^,]+,", "", faster))  # whatever ran beside this test meanwhile
    here = ".".join(map(str, sys.version_info[:3]))
    around.write_text(around.read_text().replace(f'"python": "{here}"', '"python": "3.0.1"'))
    run = repository.run("--perfgate=full", "--perfgate-rounds=6", "tests/test_kern.py::test_work")
    assert run.code == 0, run.text
    assert "which has the same code" in " ".join(run.text.split())
    assert "MOVED" in run.text
    assert f"python 3.0.1 -> {here}" in " ".join(run.text.split())


def test_an_unknown_revision_says_where_those_are_that_are_here(repository: Project) -> None:
    run = repository.run("--perfgate-against", "nowhere", "tests")
    assert run.code == 4, run.text
    assert "nowhere" in run.text
    assert "git log --oneline --all" in run.text
    assert "in two builds" not in run.text, "no cost is announced of what cannot be measured"
    assert "Traceback" not in run.text


def test_a_record_that_is_no_time_costs_no_other_case_its_verdict(repository: Project) -> None:
    """Zero in the head is INVALID; in the base alone the stored line judges, and the report says why."""
    repository.write(
        "tests/test_kern.py",
        """
        import pytest, kern

        @pytest.mark.perfgate("slowdown <= 300%")
        def test_fine(perfgate):
            perfgate.record([100.0, 101.0])

        @pytest.mark.perfgate("slowdown <= 300%")
        @pytest.mark.parametrize("arm", ["head", "base"])
        def test_zero(perfgate, arm):
            perfgate.record([0.0] if arm == kern.ARM else [100.0])
        """,
    )
    repository.write("kern.py", "ARM = 'base'\n")
    git(repository.root, "commit", "-qam", "two")
    repository.write("kern.py", "ARM = 'head'\n")
    run = repository.run("--perfgate-against", "HEAD", "tests", builds=True)
    assert run.code == 1, run.text
    assert run.outcome("test_fine") == "passed", run.text
    assert "reads 0.0 ns  [bad-timing]" in run.says("test_zero[head]")
    assert run.outcome("test_zero[base]") == "passed", run.text
    assert "1 invalid, 1 unbaselined, 1 passed" in run.text
    (record,) = (repository.root / ".perfgate" / "records").glob("*.json")
    assert "base: sample 1 of 1 reads 0.0 ns" in record.read_text()
    assert not list((repository.root / ".perfgate" / "rounds").glob("*.bin"))


def test_the_commit_under_test_beside_itself_fails_in_ci(repository: Project) -> None:
    """A push to main that is held against main: nothing was compared, and no progress line alone may say so."""
    repository.write(
        "tests/test_kern.py",
        """
        import pytest

        @pytest.mark.perfgate("slowdown <= 30%")
        def test_work(perfgate):
            perfgate.record([1.0, 1.1] * 15, unit="ms")
        """,
    )
    git(repository.root, "commit", "-q", "-a", "-m", "two")
    run = repository.run("--perfgate-against=main", "tests", ci=True, builds=True)
    assert run.code == 1, run.text
    assert run.outcome("uncompared") == "failed", run.text
    assert "the commit under test itself" in run.says("uncompared")
    assert '"uncompared"' in next((repository.root / ".perfgate" / "records").glob("*.json")).read_text()
    assert git(repository.root, "status", "--porcelain") == ""


FIGURES = """
    import pytest
    from kern import work

    def old(n):
        total = 0
        for i in range(n):
            total += i * i * i
        return total

    @pytest.mark.perfgate("change(speedup(over=old)) >= -10%")
    def test_ratio(perfgate):
        perfgate(work, 2000, name="ours")
        perfgate(old, 2000, name="old")

    @pytest.mark.perfgate("change(sent) <= 0")
    def test_sent(perfgate):
        perfgate.metric("sent", work(7), exact=True)
"""


@SLOW
def test_a_speed_up_and_a_figure_without_a_time_are_taken_in_both_builds(repository: Project) -> None:
    repository.write("tests/test_kern.py", FIGURES)
    git(repository.root, "commit", "-qam", "two")
    repository.write("kern.py", KERNEL.replace("range(n)", "range(n + n // 3)"))
    run = repository.run("--perfgate-against=HEAD")
    for name, metric in (("test_ratio", "speedup(over=old)"), ("test_sent", "sent")):
        assert "REGRESSED" in run.says(name), run.text
        assert metric in run.says(name)
