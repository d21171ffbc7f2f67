from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from datetime import datetime, timezone
from types import SimpleNamespace

import pytest

from pytest_perfgate.app.accept import measured_commit
from pytest_perfgate.model.measurement import Environment, HistoryEntry
from pytest_perfgate.model.metric import Problem
from pytest_perfgate.model.plan import Outcome
from tests.cli.conftest import Place
from tests.reports import baseline, case, run

SLOWER = case("test_slow[1]", 1.2e6, 1e6, Outcome.REGRESSED)
FASTER = case("test_fast", 0.8e6, 1e6, Outcome.IMPROVED)
SAME = case("test_same", 1.001e6, 1e6)
NEW = case("test_new", 5e5)


@pytest.fixture
def project(place: Place) -> Place:
    place.baselines.write([baseline(test, 1e6) for test in ("test_slow[1]", "test_fast", "test_same")])
    place.record(run(SLOWER, FASTER, SAME, NEW))
    return place


def test_a_regression_asks_for_a_reason_and_nothing_is_written(project: Place) -> None:
    before = project.times()
    done = project.perfgate("accept", "test_slow[1]", "-k", "slow and not fast")
    assert (done.code, done.out) == (2, "")
    assert """next  perfgate accept 'test_slow[1]' -k 'slow and not fast' --anchor --reason "...\"\n""" in done.err
    done = project.perfgate("accept")
    assert (done.code, done.out) == (2, "")
    assert "test_slow[1]" in done.err
    assert "accept-reason" in done.err
    assert project.times() == before


def test_one_record_is_added_once(project: Place) -> None:
    assert "one more run" in project.perfgate("accept", "test_same", "--add").out
    line = project.baselines.read_all("NVIDIA-H200")["tests/test_k.py::test_same"]
    assert (line.runs, line.counted) == (2, "2026-06-01T10:00:00+00:00")
    assert "0 accepted; 1 counted already" in project.perfgate("accept", "test_same", "--add").out
    assert project.perfgate("accept", "test_slow", "--add").code == 2, "slower asks for a reason, added or not"


def test_with_a_reason_what_moved_is_written(project: Place) -> None:
    done = project.perfgate("accept", "--reason", "exact rounding")
    assert done.code == 0
    assert project.times() == {"test_slow[1]": 1.2e6, "test_fast": 0.8e6, "test_same": 1e6, "test_new": 5e5}
    lines = project.baselines.read_all("NVIDIA-H200")
    assert lines["tests/test_k.py::test_slow[1]"].why == "exact rounding"
    assert lines["tests/test_k.py::test_slow[1]"].commit == "c0ffee123456"
    assert lines["tests/test_k.py::test_same"].why == "TMA loads", "within its noise: not rewritten"
    assert "slower     tests/test_k.py::test_slow[1]  1 ms -> 1.2 ms  +20.0 %" in done.out
    assert "3 accepted; 1 kept" in done.out
    assert "wrote baselines/NVIDIA-H200/tests/test_k.py.yaml" in done.out


@pytest.mark.parametrize(
    ("words", "written"),
    [
        (["--new"], {"test_new"}),
        (["--improved"], {"test_fast"}),
        (["--new", "--improved"], {"test_new", "test_fast"}),
        (["-k", "fast or new"], {"test_fast", "test_new"}),
        (["-k", "not slow"], {"test_fast", "test_new"}),
        (["test_fast"], {"test_fast"}),
        (["tests/test_k.py::test_new"], {"test_new"}),
        (["tests", "--reason", "all"], {"test_slow[1]", "test_fast", "test_new"}),
        (["test_slow", "--reason", "all parameters"], {"test_slow[1]"}),
        (["--dry-run", "--reason", "look"], set()),
        (["--dry-run"], set()),
    ],
)
def test_what_was_asked_for_and_no_more(project: Place, words: list[str], written: set[str]) -> None:
    before = project.times()
    assert project.perfgate("accept", *words).code == 0
    after = project.times()
    assert {test for test, time in after.items() if before.get(test) != time} == written


@pytest.mark.parametrize(("typed", "why"), [(b"gr\xc3\xb6ber", "gröber"), (b"gr\xf6ber", "gr\ufffdber")])
def test_a_reason_in_a_locale_that_cannot_read_it(project: Place, typed: bytes, why: str) -> None:
    done = project.perfgate("accept", "--reason", typed.decode("ascii", "surrogateescape"))
    assert done.code == 0, done.err
    written = project.baselines.read_all("NVIDIA-H200")["tests/test_k.py::test_new"]
    assert written.why == why


def test_another_file_in_doubt_does_not_stop_an_acceptance(project: Place) -> None:
    other = project.baselines.path("NVIDIA-H200", "tests/test_other.py")
    other.write_text("perfgate: 1\nbaselines:\n  'a': {time: 1us")
    assert project.perfgate("accept", "test_fast").code == 0
    assert "nothing was changed" in project.perfgate("accept", "test_new").err, "what is gone cannot be told"
    other.unlink()
    assert project.times() == {"test_slow[1]": 1e6, "test_fast": 0.8e6, "test_same": 1e6}


def test_a_renamed_test_that_got_slower_asks_for_a_reason(place: Place) -> None:
    place.baselines.write([baseline("test_one", 1e6), baseline("test_same", 1e6)])
    place.record(run(SAME, case("test_uno", 2e6, None, Outcome.UNBASELINED)))
    done = place.perfgate("accept", "--new")
    assert (done.code, "test_uno (after tests/test_k.py::test_one)" in done.err) == (2, True)
    assert "test_uno" not in place.times()
    assert place.perfgate("accept", "--new", "--reason", "exact").code == 0
    place.record(run(SAME, case("test_due", 3e6, None, Outcome.UNBASELINED), filtered=True, started="2026-06-02"))
    assert place.perfgate("accept", "--new").code == 0, "a part of the tests says nothing of the others"


@pytest.mark.parametrize(
    ("words", "written"),
    [([], False), (["tests"], False), (["-k", "slow"], False), (["test_slow"], True), (["test_slow[1]"], True)],
)
def test_what_moved_with_the_machine_is_accepted_where_it_is_named(
    place: Place, words: list[str], written: bool
) -> None:
    place.baselines.write([baseline("test_slow[1]", 1e6)])
    place.record(run(case("test_slow[1]", 1.9e6, 1e6, Outcome.MOVED)))
    done = place.perfgate("accept", *words, "--reason", "any width")
    assert (done.code, "1 moved" in done.out) == (0, not written)
    assert place.times() == {"test_slow[1]": 1.9e6 if written else 1e6}


@pytest.mark.parametrize("words", [["test_gone"], ["-k", "gone"], ["test_fast", "test_gone"]])
def test_a_name_that_means_nothing(project: Place, words: list[str]) -> None:
    done = project.perfgate("accept", *words)
    assert done.code == 2
    assert "accept-selection" in done.err


@pytest.mark.parametrize("words", [["-k", "("], ["-k", "a and"], ["-k", "or"], ["-k", "a b"], ["--expires", "soon"]])
def test_words_that_do_not_read(project: Place, words: list[str]) -> None:
    assert project.perfgate("accept", *words).code == 2


def test_ci_does_not_move_its_own_baseline(project: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    assert "accept-ci" in project.perfgate("accept", "--new").err
    assert "test_new" not in project.times()
    assert project.perfgate("accept", "--new", "--in-ci").code == 0
    assert "test_new" in project.times()


def test_from_another_record(project: Place) -> None:
    path = project.record(run(case("test_ci", 7e5), started="2026-07-01"))
    project.record(run(NEW, started="2026-07-02"))
    assert project.perfgate("accept", "--from", path).code == 0
    assert project.times()["test_ci"] == 7e5


def test_a_run_is_added(project: Place) -> None:
    assert project.perfgate("accept", "test_same", "--add").code == 0
    line = project.baselines.read_all("NVIDIA-H200")["tests/test_k.py::test_same"]
    assert line.runs == 2
    assert line.time == pytest.approx(1e6 * 1.001**0.5, rel=1e-4)
    assert line.scatter == pytest.approx(0.001 / 2**0.5, rel=0.01)


def test_scatter_comes_from_the_history(project: Place) -> None:
    times = (5.0e5, 5.1e5, 5.0e5, 5.1e5, 5.0e5)
    project.history.append(
        [HistoryEntry(key=NEW.key, device="NVIDIA-H200", time=t, when=f"2026-01-0{n}") for n, t in enumerate(times, 1)]
    )
    project.perfgate("accept", "--new")
    line = project.baselines.read_all("NVIDIA-H200")["tests/test_k.py::test_new"]
    assert line.runs == 5
    assert 0.005 < line.scatter < 0.05


def test_what_is_not_to_be_trusted_is_not_accepted(place: Place) -> None:
    bad = case("test_bad", 1e6, problems=(Problem(code="bad-timing", what="the clock moved"),))
    nan = case("test_nan", float("nan"))
    place.record(run(bad, nan, NEW))
    done = place.perfgate("accept")
    assert done.code == 0
    assert "not to be trusted  tests/test_k.py::test_bad  the clock moved" in done.out
    assert set(place.times()) == {"test_new"}
    assert "accept-untrusted" in place.perfgate("accept", "test_bad").err


def test_a_device_that_is_not_listed_stays_here(place: Place) -> None:
    (place.root / "pyproject.toml").write_text("[tool.perfgate]\n")
    place.record(run(NEW))
    done = place.perfgate("accept")
    assert "wrote .perfgate/baselines/NVIDIA-H200/tests/test_k.py.yaml" in done.out
    assert "not in [tool.perfgate] devices" in done.out


def test_first_times_that_are_kept_here_already_name_the_setting_that_commits_them(place: Place) -> None:
    (place.root / "pyproject.toml").write_text('[tool.perfgate]\ndevices = ["AMD-*"]\n')
    place.record(run(SAME))
    assert place.perfgate("accept", "--new").code == 0
    for words, first in [(("--new",), "nothing to accept"), ((), "0 accepted; 1 kept (within noise)")]:
        done = place.perfgate("accept", *words)
        assert done.out.splitlines()[0] == first
        assert 'next  add "NVIDIA-H200" to devices under [tool.perfgate], then perfgate accept --new' in done.out


def test_a_program_reads_it_too(project: Place) -> None:
    data = json.loads(project.perfgate("accept", "--reason", "x", "--json").out)
    assert {d["change"] for d in data["decisions"]} == {"new", "slower", "faster", "kept"}
    lines, around = data["files"]
    assert lines == "baselines/NVIDIA-H200/tests/test_k.py.yaml"
    assert around.startswith("baselines/NVIDIA-H200/environments/")


def test_without_a_record(place: Place) -> None:
    done = place.perfgate("accept")
    assert done.code == 12
    assert "record-missing" in done.err


def test_a_damaged_baseline_is_not_overwritten(project: Place) -> None:
    path = project.baselines.path("NVIDIA-H200", "tests/test_k.py")
    path.write_text(path.read_text() + "<<<<<<< HEAD\n")
    before = path.read_bytes()
    assert project.perfgate("accept", "--reason", "x").code == 11
    assert path.read_bytes() == before


def test_a_filtered_run_accepts_its_own_cases_and_leaves_the_others(place: Place) -> None:
    place.baselines.write([baseline("test_same", 1e6), baseline("test_other", 3e6)])
    place.record(run(SAME, NEW, filtered=True))
    assert place.perfgate("accept", "--reason", "all of it").code == 0
    assert place.times() == {"test_same": 1e6, "test_new": 5e5, "test_other": 3e6}
    assert place.perfgate("prune").code == 2
    assert set(place.times()) == {"test_same", "test_new", "test_other"}


def test_an_acceptance_that_ran_out_is_renewed_with_a_reason(place: Place) -> None:
    place.baselines.write([baseline("test_same", 1e6, expires="2020-05-31"), baseline("test_fast", 1e6)])
    place.record(run(SAME, FASTER))
    silent = place.perfgate("accept")
    assert (silent.code, "1 case is accepted for a while only" in silent.err) == (2, True)
    done = place.perfgate("accept", "test_same", "--reason", "no compiler yet", "--expires", "2999-01-31")
    assert done.code == 0
    assert "renewed" in done.out
    line = place.baselines.read_all("NVIDIA-H200")["tests/test_k.py::test_same"]
    assert (line.time, line.why, line.expires) == (1e6, "no compiler yet", "2999-01-31")
    assert line.when > "2020-05-31"
    assert "1 kept (within noise)" in place.perfgate("accept", "test_same").out


@pytest.mark.parametrize("command", [["accept", "--new"], ["accept", "--reason", "for now"]])
def test_an_acceptance_ends_today_at_the_earliest(project: Place, command: list[str]) -> None:
    before = project.times()
    done = project.perfgate(*command, "--expires", "2020-01-31")
    assert done.code == 2
    assert "--expires 2020-01-31 has passed: today is 20" in done.err
    assert "name a day from today on" in done.err
    assert project.times() == before
    today = datetime.now(timezone.utc).date().isoformat()
    assert project.perfgate(*command, "--expires", today).code == 0
    assert {line.expires for line in project.baselines.read_all("NVIDIA-H200").values()} >= {today}


def test_what_was_measured_with_changes_says_so(place: Place) -> None:
    dirty = Environment(commit="c0ffee1234567890", dirty=True)
    place.record(run(NEW, environment=dirty))
    assert place.perfgate("accept").code == 0
    line = place.baselines.read_all("NVIDIA-H200")["tests/test_k.py::test_new"]
    assert line.commit == "c0ffee123456+dirty"
    text = place.baselines.path("NVIDIA-H200", "tests/test_k.py").read_text(encoding="utf-8")
    assert "commit: c0ffee123456+dirty," in text


@pytest.mark.parametrize(
    ("environment", "here", "commit"),
    [
        (Environment(commit="abc"), True, "abc"),
        (Environment(commit="abc", dirty=True), True, "abc+dirty"),
        (Environment(), True, "def+dirty"),
        (Environment(), False, ""),
        (Environment(dirty=True), False, ""),
    ],
)
def test_the_commit_of_a_record(environment: Environment, here: bool, commit: str) -> None:
    repository = SimpleNamespace(head=lambda: "def", dirty=lambda: True)
    assert measured_commit(environment, repository if here else None) == commit


def test_looking_asks_for_no_reason_and_says_that_writing_will(project: Place) -> None:
    before = project.times()
    done = project.perfgate("accept", "--dry-run")
    assert done.code == 0
    assert "3 would be accepted" in done.out
    assert "1 case is slower: tests/test_k.py::test_slow[1]\n  next  add --reason TEXT" in done.out
    assert "1 case is slower" in json.loads(project.perfgate("accept", "--dry-run", "--json").out)["refused"]
    assert project.times() == before


def test_lines_that_name_no_commit_are_said_to(place: Place) -> None:
    place.record(replace(run(NEW), environment=Environment()))
    notes = json.loads(place.perfgate("accept", "--json").out)["notes"]
    assert "1 line names no commit" in notes[-1]["what"]
    assert all(note.keys() == {"what", "next"} for note in notes)
    for lines in place.root.glob("baselines/*/*/*.yaml"):
        lines.unlink()
    done = place.perfgate("accept")
    assert (
        "1 line names no commit, so base and head cannot confirm a slowdown of it: there is no git repository here"
        in done.out
    )


def test_lines_of_a_changed_tree_cannot_be_built_again(place: Place) -> None:
    place.record(replace(run(NEW), environment=Environment(commit="882ec6ab30", dirty=True)))
    done = place.perfgate("accept")
    assert (
        "1 line was measured with changes that no commit holds: no build of them can confirm a slowdown\n"
        "  next  commit the changes, then run the tests and perfgate accept again" in done.out
    )
    place.record(replace(run(NEW), environment=Environment(commit="882ec6ab30")))
    done = place.perfgate("accept")
    assert "882ec6ab30" in next(place.root.glob("baselines/*/*/*.yaml")).read_text()
    assert "no commit holds" not in done.out


def test_a_command_that_was_pasted_without_its_reason_is_refused(place: Place) -> None:
    place.record(run(NEW))
    done = place.perfgate("accept", "--new", "--reason", "...")
    assert (done.code, "accept-reason" in done.err, place.times()) == (2, True, {})
    assert place.perfgate("accept", "--new", "--reason", "...at last").code == 0


@pytest.mark.parametrize("command", ["accept", "review"])
def test_a_run_that_was_switched_off_has_nothing_to_accept(place: Place, command: str) -> None:
    place.record(run(NEW, mode="off"))
    done = place.perfgate(command, "--dry-run") if command == "accept" else place.perfgate(command)
    assert (done.code, "--perfgate=off" in done.err, "--from RECORD" in done.err) == (12, True, True)


def test_a_time_of_another_branch_is_written_and_said_to_be_one(place: Place) -> None:
    def commit(text: str) -> str:
        (place.root / "k.py").write_text(text)
        for words in ("add k.py", "-c user.name=a -c user.email=a@b commit -qm edit", "rev-parse HEAD"):
            done = subprocess.run(["git", *words.split()], cwd=place.root, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    subprocess.run(["git", "init", "-q", str(place.root)], check=True)
    first, second = commit("slow = 1"), commit("slow = 2")
    for measured, foreign in ((first, True), (second, False)):
        place.record(replace(run(NEW), environment=Environment(commit=measured)))
        done = place.perfgate("accept", "--reason", measured)
        assert "1 accepted" in done.out
        assert ("whose code is not the code that is checked out" in done.out) is foreign
        next(place.root.glob("baselines/*/*/*.yaml")).unlink()
