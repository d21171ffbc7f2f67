"""report, history, devlog, prune, doctor: what reads the last record."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from pytest_perfgate.adapters.devices.host import probe_environment
from pytest_perfgate.adapters.stores.records import Records
from pytest_perfgate.cli.dispatch import Project
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.measurement import Environment, HistoryEntry
from pytest_perfgate.model.metric import Figure, Metric
from pytest_perfgate.model.plan import CaseKey, Effect, Outcome
from pytest_perfgate.model.values import Dimension
from pytest_perfgate.model.verdict import RunReport, SuiteNote
from tests.cli.conftest import Place
from tests.reports import baseline, case, run

SLOWER = case("test_<b>slow</b>[1]", 1.2e6, 1e6, Outcome.REGRESSED)
SAME = case("test_same", 1.001e6, 1e6)


@pytest.fixture
def project(place: Place) -> Place:
    note = SuiteNote(kind="dropped", effect=Effect.FAIL, text="1 test is gone", names=("t.py::test_old",))
    place.record(run(SLOWER, SAME, notes=(note,)))
    place.history.append([
        HistoryEntry(key=SAME.key, device="NVIDIA-H200", time=1e6 + n * 1e4, when=f"2026-05-0{n + 1}T10:00", commit="a1b2c3d") for n in range(5)
    ])  # fmt: skip
    return place


def test_the_report_as_text(project: Place) -> None:
    done = project.perfgate("report")
    assert done.code == 0
    assert "perfgate: 2 failed" in done.out
    assert "2 cases: 1 regressed, 1 passed." in done.out
    assert "FAIL  1 test is gone: t.py::test_old" in done.out
    assert "why   shared memory 96 -> 114 KiB" in done.out


def test_the_report_as_one_page(project: Place) -> None:
    done = project.perfgate("report", "--html", "out/r.html", "--markdown", "out/r.md")
    assert (done.code, done.out.splitlines()) == (0, ["wrote out/r.html", "wrote out/r.md"])
    page = Path("out/r.html").read_text(encoding="utf-8")
    assert "<b>slow</b>" not in page
    assert "&lt;b&gt;slow&lt;/b&gt;" in page
    assert "<script" not in page
    assert "http://" not in page.replace("http://www.w3.org/2000/svg", "")
    assert "History of test_same" not in page, "pictures are of what needs a look"
    assert "Samples of test_&lt;b&gt;slow" in page
    text = Path("out/r.md").read_text(encoding="utf-8")
    assert "| REGRESSED |" in text
    assert "Samples of" not in text, "a caption without its picture"


def test_the_report_of_an_interrupted_run_says_so_and_fails_in_ci(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CI", raising=False)
    place.record(run(SAME, complete=False))
    assert place.perfgate("report", "--to", "json:r.json").code == 0
    monkeypatch.setenv("CI", "true")
    done = place.perfgate("report", "--html", "r.html")
    assert (done.code, "record-partial" in done.err, Path("r.html").exists()) == (12, True, True)
    assert place.perfgate("report", "r.json").code == 0, "it was named"
    assert "interrupted" in place.perfgate("report").out


@pytest.mark.parametrize(
    ("report", "code"),
    [
        (run(SAME), 0),
        (run(SLOWER), 1),
        (run(SAME, notes=(SuiteNote(kind="dropped", effect=Effect.FAIL, text="1 case"),)), 4),
        (run(SAME, notes=(SuiteNote(kind="settings", effect=Effect.WARN, text="1 setting"),)), 0),
    ],
    ids=["kept", "regressed", "note", "warning"],
)
def test_the_report_of_the_last_run_ends_in_ci_as_its_gate_did(
    place: Place, monkeypatch: pytest.MonkeyPatch, report: RunReport, code: int
) -> None:
    """A conftest can end the process with 0 after its verdicts, and not what they were."""
    place.record(report)
    assert place.perfgate("report").code == 0, "a laptop looks at it"
    monkeypatch.setenv("CI", "true")
    done = place.perfgate("report", "--html", "r.html", "--to", "json:r.json")
    assert (done.code, Path("r.html").exists(), Path("r.json").exists()) == (code, True, True)
    assert ("as the run ended" in done.err) == bool(code)
    assert place.perfgate("report", "r.json").code == 0, "it was named"


@pytest.mark.parametrize("words", [["--only-changes"], ["--comment-key", "h200"], ["--dry-run"]], ids=lambda w: w[0])
def test_what_only_a_posted_comment_has_is_refused_where_none_is_posted(project: Place, words: list[str]) -> None:
    done = project.perfgate("report", *words, "--html", "r.html")
    assert (done.code, "command-usage" in done.err, Path("r.html").exists()) == (2, True, False)


def test_the_report_for_a_program(project: Place) -> None:
    assert len(json.loads(project.perfgate("report", "--json").out)["cases"]) == 2


def test_a_record_of_another_commit_says_so_and_is_not_delivered(
    project: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    heads = iter(["beef" * 10, "beef" * 10, "c0ffee1234567890"])
    monkeypatch.setattr(Project, "repository", property(lambda _: SimpleNamespace(head=lambda: next(heads))))
    message = "this is the run of c0ffee123456, and beefbeefbeef is checked out"
    assert f"WARN  {message}" in " ".join(project.perfgate("report").out.split()).replace("WARN ", "WARN  ")
    refused = project.perfgate("report", "--to", "json:r.json")
    assert (refused.code, message in refused.err, Path("r.json").exists()) == (12, True, False)
    assert project.perfgate("report", "--to", "json:r.json").code == 0
    for words in (("r.json",), ("--from", "r.json")):
        assert project.perfgate("report", *words, "--to", "json:s.json").code == 0, "it was named"


@pytest.mark.parametrize(("here", "code"), [("77", 0), ("78", 12), ("", 0)])
def test_a_record_of_another_run_of_ci_is_not_delivered(
    place: Place, monkeypatch: pytest.MonkeyPatch, here: str, code: int
) -> None:
    monkeypatch.setenv("CI", "1")
    monkeypatch.setenv("GITHUB_RUN_ID", "77")
    monkeypatch.setattr(Project, "repository", property(lambda _: SimpleNamespace(head=lambda: "c0ffee")))
    place.record(replace(run(SAME), environment=replace(probe_environment(), commit="c0ffee")))
    assert "ci run" not in dict(probe_environment().lasting.facts), "no baseline keeps it"
    monkeypatch.setenv("GITHUB_RUN_ID", here)
    done = place.perfgate("report", "--to", "json:r.json")
    assert done.code == code
    assert ("this is of run 77 of CI, and this is run 78" in done.err) == bool(code)
    assert place.perfgate("report").code == 0


def test_the_record_of_an_earlier_run_is_not_that_of_one_that_left_none(project: Place) -> None:
    Records(project.root).close("the last run left no record: pytest ended with 2")
    for words in (["report", "--to", "json:r.json"], ["accept"], ["prune"]):
        done = project.perfgate(*words)
        assert (done.code, "pytest ended with 2  [record-missing]" in done.err) == (12, True), words
    project.record(run(SAME))
    assert project.perfgate("report").code == 0


@pytest.mark.parametrize(
    ("words", "code", "key"),
    [
        (["report", "--to", "json:r.json"], 0, "cases"),
        (["report", "--markdown", "-"], 2, "error"),
        (["report", "--bogus"], 2, "error"),
        (["profile"], 2, "error"),
    ],
)
def test_json_is_all_that_a_program_reads(project: Place, words: list[str], code: int, key: str) -> None:
    done = project.perfgate(*words, "--json")
    assert done.code == code
    assert key in json.loads(done.out)


def test_history_of_all_and_of_one(project: Place) -> None:
    assert "1.04 ms" in project.perfgate("history").out
    done = project.perfgate("history", "same")
    assert "▁▃▅▆█" in done.out
    assert done.out.count("a1b2c3d") == 5
    assert "+1.0 %" in done.out
    assert len(json.loads(project.perfgate("history", "same", "--json").out)[0]["runs"]) == 5
    assert project.perfgate("history", "--svg", "only.svg").code == 0, "the one that there is needs no name"
    assert (project.root / "only.svg").read_text().startswith("<svg")


def test_a_case_without_times_is_not_drawn(project: Place) -> None:
    key = CaseKey(nodeid="tests/test_k.py::test_size")
    registers = Metric(name="registers", value=128, dimension=Dimension.COUNT)
    entry = HistoryEntry(
        key=key, device="host", time=0.0, when="2026-06-01T10:00:00", processes=0, metrics=(registers,)
    )
    project.history.append((entry,))
    done = project.perfgate("history", str(key), "--svg", "h.svg")
    assert done.code == 2
    assert "test_size has none" in done.err
    assert not (project.root / "h.svg").exists()


def test_several_cases_are_records_to_add_and_stay_whole_words(project: Place) -> None:
    done = project.perfgate("history", "same", "a b.json")
    assert "perfgate history add same 'a b.json'" in done.err


def test_a_picture_is_not_written_under_another_ending(project: Place) -> None:
    done = project.perfgate("history", "same", "--svg", "h.png")
    assert done.code == 2
    assert "--svg h.svg" in done.err
    assert not (project.root / "h.png").exists()


@pytest.mark.parametrize(
    "words", [["history", "gone"], ["report", "nowhere.json"], ["report", "--to", "moon"], ["devlog", "gone"]]
)
def test_what_is_not_there(project: Place, words: list[str]) -> None:
    done = project.perfgate(*words)
    assert done.code not in {0, 1}
    assert "next" in done.err


def test_history_of_nothing(place: Place) -> None:
    assert "history-empty" in place.perfgate("history").err


def test_the_devlog_keeps_what_people_wrote(project: Place) -> None:
    words = ("devlog", "--file", "LOG.md", "--version", "v2", "--changed", "TMA loads")
    assert project.perfgate(*words).code == 0
    log = Path("LOG.md")
    text = log.read_text(encoding="utf-8")
    assert text.startswith("# Development log\n\n## v2 (2026-06-01)\n\nTMA loads\n")
    assert "| Duration | 1.2 ms | 20.0 % slower |" in text
    assert "| Occupancy | not collected |  |" in text
    log.write_text(
        text.replace("**Issues**\n\n", "**Issues**\n\nodd sizes spill\n\n- n = 4097\n", 1) + "\n## v1\n\nold\n",
        encoding="utf-8",
    )
    assert project.perfgate(*words).code == 0
    again = log.read_text(encoding="utf-8")
    assert "**Issues**\n\nodd sizes spill\n\n- n = 4097\n" in again
    assert again.count("## v2") == 1
    assert again.endswith("\n## v1\n\nold\n")
    assert project.perfgate(*words).code == 0
    assert log.read_text(encoding="utf-8") == again


def test_the_devlog_compares_with_the_commit_before(project: Place) -> None:
    before = Environment(commit="b2c3d4e5f6a7")
    project.record(run(case("test_same", 2e6), environment=before, started="2026-05-30T10:00:00+00:00"))
    project.record(run(SAME, started="2026-06-03T10:00:00+00:00"))
    text = project.perfgate("devlog").out
    assert "| Duration | 1.001 ms | 50.0 % faster |" in text
    assert "Previous: measured (b2c3d4e, 2026-05-30)." in text


def test_the_devlog_of_a_release_lists_what_was_accepted_since(project: Place) -> None:
    def git(*words: str) -> None:
        subprocess.run(["git", *words], cwd=project.root, check=True, capture_output=True)

    git("init", "-q")
    key = str(SAME.key)
    registers = Figure(name="registers", value=128, dimension=Dimension.COUNT)
    old = baseline("test_same", 2e6, figures=(registers,))
    project.baselines.write([old, baseline("test_gone", 1e6), baseline("test_kept", 1e6)])
    git("add", "baselines")
    git("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "lines")
    git("tag", "v1.2")
    new = {"when": "2026-06-01", "why": "wider\nloads", "who": "Ann"}
    project.baselines.write([
        baseline("test_same", 1e6, figures=(replace(registers, value=130),), **new),
        baseline("test_new", 3e6, **new),
        baseline("test_kept", 0.9e6),
    ])  # fmt: skip
    project.baselines.remove("NVIDIA-H200", [CaseKey(nodeid="tests/test_k.py::test_gone")])
    text = project.perfgate("devlog", "--since", "v1.2").out
    assert "| Duration | 1.001 ms | 50.0 % faster |" in text
    assert "Previous: the accepted time (v1.2, 2026-05-02)." in text
    _, _, accepted = text.partition("**Accepted since v1.2**\n\n")
    assert accepted.partition("\n\n")[0].splitlines() == [
        "- tests/test_k.py::test_gone: removed",
        "- tests/test_k.py::test_new: 3 ms (new); 2026-06-01, Ann: wider loads",
        f"- {key}: 2 ms -> 1 ms (-50.0 %), registers 128 -> 130; 2026-06-01, Ann: wider loads",
    ], "a line that keeps its reason was not decided anew"
    assert "test_new" not in project.perfgate("devlog", "--since", "v1.2", "test_same").out
    assert "_nothing_" in project.perfgate("devlog", "--since", "v1.2", str(SLOWER.key)).out
    refused = project.perfgate("devlog", "--since", "v9")
    assert (refused.code, "revision-missing" in refused.err) == (PerfgateError("revision-missing", "").exit, True)


def test_prune_removes_what_no_test_asks_for(place: Place) -> None:
    place.baselines.write([baseline("test_same", 1e6), baseline("test_old", 1e6)])
    place.record(run(SAME))
    assert "unused  NVIDIA-H200  tests/test_k.py::test_old" in place.perfgate("prune", "--dry-run").out
    assert set(place.times()) == {"test_same", "test_old"}
    assert place.perfgate("prune").code == 0
    assert set(place.times()) == {"test_same"}
    assert "every baseline has a test" in place.perfgate("prune").out
    idle = SuiteNote(kind="unused", effect=Effect.FAIL, text="1 baseline", names=(str(SAME.key),))
    place.record(run(SAME, notes=(idle,)))
    assert "removed  NVIDIA-H200  tests/test_k.py::test_same" in place.perfgate("prune").out


def test_prune_goes_by_the_record_that_is_named(place: Place) -> None:
    place.baselines.write([baseline("test_same", 1e6), baseline("test_old", 1e6)])
    place.record(run(SAME))
    assert place.perfgate("report", "--to", "json:of-ci.json").code == 0
    place.record(run(SAME, SLOWER))
    assert place.perfgate("prune").code == 2
    assert "test_old" in place.perfgate("prune", "--from", "of-ci.json").out
    assert set(place.times()) == {"test_same"}


@pytest.mark.parametrize(
    "report",
    [
        run(SAME, complete=False),
        run(SAME, filtered=True),
        run(SAME, mode="quick"),
        run(SAME, SLOWER),
        run(replace(SAME, measurement=None)),
        run(),
    ],
)
def test_prune_asks_for_a_full_run_that_passed(place: Place, report: object) -> None:
    place.baselines.write([baseline("test_old", 1e6)])
    place.record(report)
    done = place.perfgate("prune")
    assert (done.code, "prune-incomplete" in done.err) == (2, True)
    assert set(place.times()) == {"test_old"}


def test_the_doctor_looks_at_everything(project: Place) -> None:
    done = project.perfgate("doctor", "--seconds", "0")
    assert done.code == 0
    assert "ok    python" in done.out
    assert "no git repository here" in done.out
    assert "2 cases: 1 regressed, 1 passed." in done.out


def test_a_run_that_goes_on_or_was_killed_is_a_note_of_the_doctor(project: Place) -> None:
    Records(project.root).pointer.suspend("the run that began at noon has left no record")
    done = project.perfgate("doctor", "--seconds", "0")
    assert done.code == 0, done.out
    assert "note  record     the run that began at noon has left no record" in done.out


def test_the_doctor_goes_on_behind_settings_that_do_not_read(project: Place) -> None:
    (project.root / "pyproject.toml").write_text("[tool.perfgate]\ndevices = [", encoding="utf-8")
    done = project.perfgate("doctor", "--seconds", "0")
    assert done.code == 1
    assert "bad   settings   pyproject.toml: not TOML" in done.out
    assert "bad   git" not in done.out
    assert "history" in done.out, "checks that need no settings go on"
    assert "bad   machine    it cannot be checked: not TOML" in done.out
    assert "note  baselines  not looked for: the settings that name their folder do not read" in done.out


def test_the_doctor_names_what_is_broken(project: Place) -> None:
    project.baselines.write([baseline("test_same", 1e6)])
    path = project.baselines.path("NVIDIA-H200", "tests/test_k.py")
    path.write_text("broken: [", encoding="utf-8")
    (project.root / ".perfgate" / "history.db").write_bytes(b"no database" * 100)
    (project.root / "conftest.py").write_text("def pytest_perfgate_metrics():\n    return []\n")
    done = project.perfgate("doctor", "--seconds", "0")
    assert done.code == 1
    assert "[baseline-unreadable]" in done.out
    assert "[history-unreadable]" in done.out
    assert "conftest.py has hooks that perfgate's commands do not see" in done.out
    assert {f["level"] for f in json.loads(project.perfgate("doctor", "--seconds", "0", "--json").out)["findings"]} == {
        "ok",
        "note",
        "bad",
    }


def test_every_picture_of_the_page_as_a_file(project: Place) -> None:
    done = project.perfgate("report", "--pictures", "out/drawn")
    names = sorted(path.name for path in Path("out/drawn").iterdir())
    assert done.code == 0
    assert done.out.split() == [word for name in names for word in ("wrote", f"out/drawn/{name}")]
    assert [name.rpartition("-")[2] for name in names] == ["samples.svg"]
    assert "var(" not in Path("out/drawn", names[0]).read_text(encoding="utf-8")


@pytest.mark.parametrize(("width", "drawn"), [(120, True), (80, False)])
def test_a_wide_terminal_has_bars(project: Place, monkeypatch: pytest.MonkeyPatch, width: int, drawn: bool) -> None:
    monkeypatch.setattr("pytest_perfgate.cli.output.sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", str(width))
    assert ("Samples of test_<b>slow" in project.perfgate("report").out) is drawn
