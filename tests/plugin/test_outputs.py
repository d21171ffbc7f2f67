"""The files that --perfgate-json, --perfgate-html and --perfgate-markdown ask for."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from pytest_perfgate.adapters.stores.records import Records
from pytest_perfgate.model.errors import PerfgateError
from tests import reports
from tests.plugin.projects import Project
from tests.plugin.two_builds import git

SUITE = """
    import pytest

    @pytest.mark.perfgate("time <= 2ms")
    @pytest.mark.parametrize("name", ["<b>&"])
    def test_kept(perfgate, name):
        perfgate.record([1.0] * 30, unit="ms")

    @pytest.mark.perfgate("time <= 2ms")
    def test_broken(perfgate):
        perfgate.record([3.0] * 30, unit="ms")
"""


def test_the_record_a_page_and_markdown_of_one_run(project: Project) -> None:
    project.write("test_it.py", SUITE)
    files = ("--perfgate-json=out/r.json", "--perfgate-html=out/deep/r.html", "--perfgate-markdown=r.md")
    run = project.run(*files)
    assert run.code == 1, run.text
    for name in ("out/r.json", "out/deep/r.html", "r.md"):
        assert f"wrote {name}" in run.text.replace(os.sep, "/")
    record = Records(project.root).read(str(project.root / "out" / "r.json"))
    assert record == Records(project.root).read(), "one file holds what the record and its samples hold"
    assert [case.key.test for case in record.cases] == ["test_kept[<b>&]", "test_broken"]
    page = (project.root / "out" / "deep" / "r.html").read_text(encoding="utf-8")
    assert "test_kept[&lt;b&gt;&amp;]" in page.replace("<wbr>", "")
    assert "<b>&" not in page
    assert "BROKEN" in page
    assert "<script" not in page
    text = (project.root / "r.md").read_text(encoding="utf-8")
    assert "BROKEN" in text
    assert "test_broken" in text


def test_a_clean_run_prints_one_table_with_times_and_nothing_else(project: Project) -> None:
    project.write("test_it.py", SUITE)
    run = project.run("-k", "kept", ci=True)
    assert run.code == 0, run.text
    section = run.text.partition("= perfgate =")[2].splitlines()[1:]
    table = section[
        : next(at for at, line in enumerate(section) if (line.startswith(("-", "=")) and "=" in line) or "xml" in line)
    ]
    assert table[0].split() == ["outcome", "test", "time", "interval", "slowdown", "limit", "can", "detect"]
    assert table[2].split()[:5] == ["passed", "test_it.py::test_kept[<b>&]", "1", "ms", "[1"]
    assert table[3:] == ["full: 1 passed"], "no record, no next step"
    assert (project.root / ".perfgate" / "records").is_dir()


def test_a_file_that_cannot_be_written_fails_the_run_and_loses_nothing(project: Project) -> None:
    project.write("test_it.py", SUITE)
    project.write("file", "")
    run = project.run("--perfgate-html=file/r.html", "--perfgate-markdown=r.md", "-k", "kept")
    assert run.code == 4, run.text
    assert "it cannot be written" in run.text
    assert "[delivery-failed]" in run.text
    assert "1 passed" in run.text
    assert (project.root / "r.md").exists()
    assert len(Records(project.root).read().cases) == 1


def test_a_record_that_cannot_be_written_is_a_sentence_and_every_verdict_is_still_said(project: Project) -> None:
    project.write("test_it.py", SUITE)
    project.write(".perfgate/records", "a file where the folder would be")
    run = project.run()
    assert run.code == 1, run.text
    assert "[file-unwritable]" in run.text
    assert "Traceback" not in run.text
    assert "BROKEN     test_broken" in run.text
    assert "not kept: the record of this run  [file-unwritable]" in run.text
    assert "next  perfgate report" not in run.text, "it would show an earlier run"
    assert project.run("-k", "kept").code == 4, "a run whose record is lost has not passed"


def test_a_run_whose_history_alone_is_lost_names_its_record(project: Project) -> None:
    project.write("test_it.py", SUITE)
    # A child makes the folder: the parent has examined the history before it starts one, and reads it after that.
    hook = (
        "def pytest_collection_finish(session):\n    history = session.config.rootpath / '.perfgate' / 'history.db'\n"
    )
    in_child = "    if 'PERFGATE_CHILD' in os.environ:\n        history.mkdir(parents=True, exist_ok=True)\n"
    project.write("conftest.py", f"import os\n\n\n{hook}{in_child}")
    run = project.run("--perfgate=full", "--perfgate-rounds=1")
    assert "not kept: this run's part of the history  [file-unwritable]" in run.text
    assert "next  perfgate report" in run.text


def test_a_run_that_broke_off_in_ci_does_not_leave_the_record_of_an_earlier_one(project: Project) -> None:
    pointer = project.root / ".perfgate" / "records" / "last"
    for ci, expected in ((False, "a.json\n"), (True, "# the last run left no record: pytest ended with 2\n")):
        project.write(".perfgate/records/last", "a.json\n")
        project.write("test_it.py", "def (")
        assert project.run(ci=ci).code == 2
        assert pointer.read_text(encoding="utf-8") == expected


def test_a_run_of_other_tests_in_ci_leaves_the_record_of_the_gated_ones(project: Project) -> None:
    """A job that runs its benchmarks, then its unit tests, and reports at its end."""
    project.write("baselines/host-x/bench/test_it.py.yaml", "perfgate: 1\nbaselines:\n  'test_it': {time: 1ms}\n")
    project.write(".perfgate/records/last", "a.json\n")
    project.write("unit/test_plain.py", "def test_plain():\n    pass\n")
    run = project.run("unit", ci=True)
    assert run.code == 0, run.text
    assert (project.root / ".perfgate" / "records" / "last").read_text(encoding="utf-8") == "a.json\n"


def test_a_run_that_was_killed_does_not_leave_the_record_of_an_earlier_one(project: Project) -> None:
    Records(project.root).write(reports.run(reports.case("test_kept", 1e6)))
    assert len(Records(project.root).read().cases) == 1
    project.write("test_it.py", f"{SUITE}        __import__('os').kill(__import__('os').getpid(), 9)\n")
    assert project.run("-k", "broken").code == -9
    with pytest.raises(
        PerfgateError, match=r"the run that began at \S+ left no record: it is still running, or it was kil"
    ):
        Records(project.root).read()


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("-x", "test_it.py::test_zero", "test_it.py::test_kept"), 1),
        (("--perfgate-against", "nowhere", "-k", "kept"), 4),
        (("--setup-only", "-k", "kept"), 0),
        (("--perfgate=full", "--setup-plan", "-k", "kept"), 0),
        (("--perfgate=full", "--setup-only", "-k", "kept", "-n1"), 0),
        (("--perfgate=full", "--collect-only"), 0),
    ],
)
def test_a_run_that_measured_nothing_leaves_the_last_record_what_it_was(
    project: Project, words: tuple[str, ...], code: int
) -> None:
    project.write("test_it.py", f"{SUITE}\n    def test_zero():\n        assert False\n")
    Records(project.root).write(reports.run(reports.case("test_kept", 1e6)))
    before = (project.root / ".perfgate" / "records" / "last").read_text()
    run = project.run(*words)
    assert run.code == code, run.text
    assert (project.root / ".perfgate" / "records" / "last").read_text() == before
    assert len(list((project.root / ".perfgate" / "records").glob("*.json"))) == 1, "and nothing was measured"


def test_a_run_that_broke_after_it_began_leaves_none(project: Project) -> None:
    project.write("test_it.py", SUITE)
    Records(project.root).write(reports.run(reports.case("test_kept", 1e6)))
    project.write("conftest.py", "def pytest_runtest_protocol(item):\n    raise RuntimeError\n")
    assert project.run("-k", "kept").code == 3
    with pytest.raises(PerfgateError, match="left no record"):
        Records(project.root).read()


def test_a_record_is_kept_in_a_folder_with_letters_that_the_locale_does_not_have(tmp_path: Path) -> None:
    project = Project(tmp_path / "päth ✓")
    project.write("test_a.py", "def test_a(perfgate):\n    perfgate(int)\n")
    run = project.run(LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
    assert run.outcome("test_a") == "passed", run.text
    assert "not kept" not in run.text
    (record,) = (project.root / ".perfgate" / "records").glob("*.json")
    assert json.loads(record.read_text(encoding="utf-8"))["run"]["root"] == str(project.root)


@pytest.mark.parametrize("words", ["git commit -qam later", "git stash -q"])
def test_a_tree_that_changes_while_it_is_measured_is_in_no_commit(project: Project, words: str) -> None:
    """The record named the commit of the end, which had other code than what was measured."""
    project.write("test_it.py", "")
    for start in (("init", "-q", "-b", "main"), ("add", "-A"), ("commit", "-qm", "first")):
        git(project.root, *start)
    first = git(project.root, "rev-parse", "HEAD").strip()
    test = f"""
        import subprocess

        def test_kept(perfgate):
            subprocess.run({words.split()!r}, check=False)
            perfgate.record([1.0] * 30, unit="ms")
    """
    project.write("test_it.py", test)
    run = project.run("--perfgate=full")
    assert f"the working copy changed while it was measured ({first[:10]}+dirty, then " in run.text
    environment = Records(project.root).read().environment
    assert (environment.commit, environment.dirty) == (first, True)


def test_a_run_asks_git_for_the_tree_again_only_where_it_measures_between(project: Project, tmp_path: Path) -> None:
    """A quick run asked twice at one moment: a third of a second more where git holds 60,000 files."""
    project.write("test_it.py", SUITE)
    git(project.root, "init", "-q", "-b", "main")
    for mode, count in (("quick", 1), ("full", 2)):
        trace = tmp_path / mode
        project.run(f"--perfgate={mode}", GIT_TRACE=str(trace))
        assert trace.read_text().count("git status --porcelain") == count
