"""Tests of app/changed_project."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

from pytest_perfgate.adapters.stores.baselines import Baselines, StoredFiles
from pytest_perfgate.adapters.stores.repository import GitRepository
from pytest_perfgate.app.changed_project import edited_imports, with_files
from pytest_perfgate.core.changes.own_files import OwnFiles
from pytest_perfgate.core.judge.suite import Suite
from pytest_perfgate.core.limits.merge import merge_limits
from pytest_perfgate.core.metric_kinds import by_name
from pytest_perfgate.model.measurement import Baseline
from pytest_perfgate.model.plan import Base, CaseKey, Choice, Decision, Effect, Policy, Reach
from pytest_perfgate.model.project import DEPENDENCIES
from pytest_perfgate.model.verdict import CaseReport, Paired, PairedRound, SuiteNote
from tests.layouts import write
from tests.unit.app.checks import notes_on
from tests.unit.app.scripted_pairs import arm, cases
from tests.unit.core.judge.bench import CONTEXT, accepted

OLD = """
def made(perfgate): return 1
def test_a(perfgate): perfgate(sum)
def test_b(perfgate): perfgate(len)
def test_plain(): pass
"""
Texts = dict[str, tuple[str | None, str | None]]


def absent_notes(
    texts: Texts, hiding: Texts | None = None, every: Texts | None = None, *, revision: str = "c0ffee", **fields: Any
) -> list[SuiteNote]:
    answers = {"perfgate": texts, "collect_ignore": hiding or {}}
    repository = SimpleNamespace(
        touched=lambda at, words: answers[words[0]] if at == revision else every,
    )
    gate_judge: Any = SimpleNamespace(revision=revision, tools=SimpleNamespace(repository=repository))
    suite = Suite(**{"context": CONTEXT, "collected": frozenset({"t.py::test_a[1]"}), **fields})
    return notes_on("absent", gate_judge, suite=suite)


def test_a_test_of_the_revision_alone_is_listed_with_what_became_of_it() -> None:
    (note,) = absent_notes({"t.py": (OLD, OLD), "gone.py": (OLD, None), "n.py": (OLD, OLD.replace("test_b", "test_c"))})
    assert (note.kind, note.effect) == ("absent", Effect.WARN)
    assert note.text.startswith("5 gated tests ")
    assert "c0ffee" in note.text
    assert note.names == (
        "gone.py::test_a: gone",
        "gone.py::test_b: gone",
        "n.py::test_a: here, and not collected",
        "n.py::test_b: now test_c",
        "t.py::test_b: here, and not collected",
    )


def test_what_a_conftest_of_the_change_hides_is_listed_though_its_file_is_untouched() -> None:
    every: Texts = {"t.py": (None, OLD)}
    (note,) = absent_notes({}, {"conftest.py": (None, "collect_ignore = ['t.py']")}, every)
    assert note.names == ("t.py::test_b: here, and not collected",)
    assert absent_notes({}, {"pk/other.py": (None, "collect_ignore")}, every) == absent_notes({}, {}, every) == []


def test_only_of_a_whole_run_against_a_revision_and_where_it_looked() -> None:
    texts: Texts = {"t.py": (OLD, None)}
    assert absent_notes(texts) != []
    assert absent_notes(texts, revision="") == absent_notes(texts, complete=False) == []
    assert (
        absent_notes(texts, reach=Reach(unknown="--lf")) == absent_notes(texts, reach=Reach(beneath=("other",))) == []
    )
    assert absent_notes(texts, deselected=frozenset({"t.py::test_b"})) == []


STATED = """
import pytest
limit = pytest.mark.perfgate("time <= 1s")
@limit
def test_a(perfgate): perfgate(sum)
class TestOne:
    @limit
    def test_b(self, perfgate): perfgate(len)
if AVAILABLE:
    @limit
    def test_c(perfgate): perfgate(max)
"""


@pytest.mark.parametrize(
    ("now", "names"),
    [
        (STATED.replace("def test_a", "def tst_a"), ("test_t.py::test_a: test_t.py::tst_a, and not collected",)),
        (
            STATED.replace("TestOne", "Ones"),
            ("test_t.py::TestOne::test_b: test_t.py::Ones::test_b, and not collected",),
        ),
        (f"{STATED}\ndel test_a\n", ("test_t.py::test_a: here, and not collected",)),
        (f"{STATED}\ntest_a.__test__ = False\n", ("test_t.py::test_a: here, and not collected",)),
        (f"{STATED}\ndef test_a(): pass\n", ("test_t.py::test_a: here, and not collected",)),
        (STATED.replace("perfgate(sum)", "perfgate(min)"), ()),
        (
            STATED.replace(
                "    @limit\n    def test_b(self, perfgate): perfgate(len)", "    def test_b(self): len('')"
            ),
            ("test_t.py::TestOne::test_b: gone, or not gated any more",),
        ),
        (
            "",
            (
                "test_t.py::TestOne::test_b: gone, or not gated any more",
                "test_t.py::test_a: gone, or not gated any more",
            ),
        ),
    ],
)
def test_a_test_without_a_line_that_the_change_hides_is_named_in_ci(now: str, names: tuple[str, ...]) -> None:
    """Whatever stands behind a condition may not have been there before."""
    there = {"test_t.py::test_a", "test_t.py::TestOne::test_b"} - {name.partition(": ")[0] for name in names}
    assert hidden_names({"test_t.py": (STATED, now)}, there) == names


def test_the_only_test_of_a_file_that_loses_its_gate_is_named() -> None:
    plain = STATED.replace("@limit", "").replace("perfgate", "other")
    assert hidden_names({"test_t.py": (STATED, plain)}, {"test_k.py::test_k"}) == (
        "test_t.py::TestOne::test_b: gone, or not gated any more",
        "test_t.py::test_a: gone, or not gated any more",
    )


def test_the_limits_of_a_deleted_test_are_left_to_the_note_on_the_test() -> None:
    texts: Texts = {"test_t.py": (STATED, STATED.partition("class")[0].replace("1s", "2s"))}
    judge: Any = SimpleNamespace(
        revision="", accepted=SimpleNamespace(base=Base(commit="c0ffee")),
        context=SimpleNamespace(policy=Policy(ci=True)), merged=lambda _nodeid, layers: merge_limits(*layers),
        tools=SimpleNamespace(
            repository=SimpleNamespace(touched=lambda _, words: texts if "perfgate" in words else {}), kinds=by_name(),
        ),
    )  # fmt: skip
    suite = Suite(context=CONTEXT, collected=frozenset({"test_t.py::test_a"}))
    (removed,), (limits,) = (notes_on(kind, judge, suite=suite) for kind in ("removed", "limits"))
    assert removed.names == ("test_t.py::TestOne::test_b: gone, or not gated any more",)
    assert limits.names == ("test_t.py::test_a: time <= 1s -> time <= 2s", "test_t.py::test_c: time <= 1s -> none")


def test_a_deleted_test_with_a_line_is_left_to_the_note_on_its_line() -> None:
    names = ("test_t.py::test_a[1]", "test_t.py::TestOne::test_b")
    lined = tuple(replace(accepted(1.0), key=CaseKey(nodeid=name)) for name in names)
    assert hidden_names({"test_t.py": (STATED, "")}, set(), lines=lined[:1]) == (
        "test_t.py::TestOne::test_b: gone, or not gated any more",
    )
    assert hidden_names({"test_t.py": (STATED, "")}, set(), lines=lined) == ()


def test_a_test_that_moves_to_a_file_that_pytest_does_not_collect_is_named() -> None:
    moved: Texts = {"test_t.py": (STATED, None), "bench_t.py": (None, STATED)}
    assert hidden_names(moved, set()) == (
        "test_t.py::TestOne::test_b: bench_t.py::TestOne::test_b, and not collected",
        "test_t.py::test_a: bench_t.py::test_a, and not collected",
    )
    assert hidden_names(moved, {"bench_t.py::test_a[1]", "bench_t.py::TestOne::test_b"}) == ()
    other: Texts = {"common.py": (STATED, f"{STATED}\n"), "test_s.py": (f"__test__ = False\n{STATED}", STATED)}
    assert hidden_names(other, set()) == (), "neither was collected before"
    built = STATED.replace("class TestOne:", "class TestOne:\n    def __init__(self): self.n = 1")
    assert hidden_names({"test_t.py": (built, f"{built}\n")}, {"test_t.py::test_a"}) == (), "pytest never built it"
    assert hidden_names({"test_t.py": (STATED, f"{STATED}\n")}, set(), {"test_t.py": "needs torch"}) == ()


def test_a_hidden_test_is_named_beside_files_that_hide_nothing_and_so_is_a_deleted_one() -> None:
    hides = STATED.replace("def test_a", "def tst_a")
    texts: Texts = {"test_t.py": (STATED, hides), "test_s.py": ("def test_c(): pass\n", "X = 1\n")}
    collected = {"test_t.py::TestOne::test_b"}
    assert hidden_names(texts, collected) == ("test_t.py::test_a: test_t.py::tst_a, and not collected",)
    gone = "gone, or not gated any more"
    deleted = (f"test_t.py::TestOne::test_b: {gone}", f"test_t.py::test_a: {gone}")
    assert hidden_names({"test_t.py": (STATED, "")}, set()) == deleted


def test_a_file_that_this_machine_leaves_out_is_not_hidden_by_a_change_of_it() -> None:
    """A conftest ignored the tests of a GPU on a machine without one, and each edit of their file was named."""
    edited: Texts = {"test_gpu.py": (STATED, STATED.replace("perfgate(sum)", "perfgate(min)"))}
    assert hidden_names(edited, {"test_k.py::test_k"}) == ()
    renamed: Texts = {"test_gpu.py": (STATED, STATED.replace("def test_a(", "def test_z("))}
    assert hidden_names(renamed, {"test_k.py::test_k"}) == ()
    both = ("test_gpu.py::TestOne::test_b: here, and not collected", "test_gpu.py::test_a: here, and not collected")
    assert hidden_names(edited, {"test_k.py::test_k"}, conftest={"conftest.py": ("", "collect_ignore = []")}) == both


def hidden_names(
    texts: Texts,
    collected: set[str],
    skipped: dict[str, str] | None = None,
    conftest: Texts | None = None,
    lines: tuple[Baseline, ...] = (),
) -> tuple[str, ...]:
    hiding = conftest or {}
    judge: Any = SimpleNamespace(
        revision="", accepted=SimpleNamespace(base=Base(commit="c0ffee")),
        context=SimpleNamespace(policy=Policy(ci=True)),
        tools=SimpleNamespace(repository=SimpleNamespace(touched=lambda _, words: texts if "perfgate" in words else hiding)),
    )  # fmt: skip
    suite = Suite(context=CONTEXT, collected=frozenset(collected), skipped=skipped or {}, baselines=lines)
    notes = notes_on("removed", judge, suite=suite)
    assert all((note.effect, "of c0ffee" in note.text) == (Effect.WARN, True) for note in notes)
    return notes[0].names if notes else ()


TEST = "def test_0(perfgate):\n    perfgate(work)\n"
LOADED = ("t.py", "helper.py", "other.py", "gone.py")


def test_what_a_change_edits_beside_a_test_is_named(tmp_path: Path) -> None:
    now = {"t.py": TEST + "def test_new(perfgate): ...\n", "helper.py": "def work(): ...\n", "other.py": "A = 1"}
    for name, text in now.items():
        (tmp_path / name).write_text(text)
    case = replace(cases(1)[0], nodeid="t.py::test_0[3]")

    def edited(**then: str) -> tuple[str, ...]:
        texts = {"t.py": TEST, "helper.py": now["helper.py"]} | {f"{name}.py": text for name, text in then.items()}
        return edited_imports(case, LOADED, ("t.py", "other.py"), tmp_path, {**texts, "gone.py": ""}.get)

    assert edited() == ()
    assert edited(helper="# words\ndef work(): ...\n") == ()
    assert edited(helper="def work(): pass\n") == ("helper.py",)
    assert edited(helper="def work( broken") == ("helper.py",)
    assert edited(t=TEST.replace("work", "walk")) == ("t.py",)
    assert edited_imports(case, ("t.py", "helper.py"), ("t.py",), tmp_path, lambda _: None) == ("helper.py",)
    assert edited_imports(case, ("_ops.py",), ("t.py",), tmp_path, lambda _: None) == (), "neither then nor now"
    for text, new in ((TEST, ()), ("from helper import work\n" + TEST, ("helper.py",))):  # else another test's
        (tmp_path / "t.py").write_text(text)
        assert edited_imports(case, ("t.py", "helper.py"), ("t.py",), tmp_path, {"t.py": text}.get) == new
    libraries, modules = ("libk.so", "libk.so.1.2", "libk-2.3.so"), ("k.abi3.so", "k.cpython-311-x86_64-linux-musl.so")
    for name in (*libraries, *modules):
        (tmp_path / name).touch()
    both = (*libraries, *modules)
    assert edited_imports(case, both, ("t.py",), tmp_path, lambda _: None) == modules, (
        "sources of libraries are compared"
    )


def test_what_changed_and_both_arms_read_from_the_head_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "site" / "pk").mkdir(parents=True)
    (tmp_path / "site" / "pk" / "tiles.json").write_text("{}")
    (tmp_path / "t.py").write_text(TEST)
    arms = tuple(replace(arm(name), root=str(tmp_path / "site")) for name in ("base", "head"))
    case = cases(1)[0]
    changed = ("README.md", "src/pk/__init__.py", "src/pk/tiles.json", "tuning.txt", "csrc/k.cu", "t.py")
    repository: Any = SimpleNamespace(changed=lambda _: changed, show=lambda _, path: TEST.replace("work", "walk"))

    def shared(
        *,
        own: str = "",
        revision: bool = False,
        bare: bool = False,
        same: bool = False,
        overlaid: tuple[str, ...] = (),
        loads: tuple[str, ...] = ("t.py",),
        **of_arms: str,
    ) -> tuple[str, ...]:
        comparison: Any = SimpleNamespace(
            arms=(arms[0], replace(arms[1], **of_arms)), cases={case.nodeid: case},
            bare={case.nodeid: ()} if bare else {}, beside={case.nodeid: loads}, own=OwnFiles(None),
            rounds=[PairedRound(nodeid=case.nodeid, phase="screen", number=0, own=own)],
            stage=SimpleNamespace(overlaid=overlaid), same=same,
        )  # fmt: skip
        key, paired = CaseKey(nodeid=case.nodeid), Paired(decision=Decision.NOT_SLOWER, differences=(), shift=0.0)
        results = with_files({key: replace(paired, revision=revision)}, comparison, ("t.py",), tmp_path, repository)
        return results[key].shared

    assert shared() == ("t.py", "tuning.txt")
    assert shared(bare=True) == ("tuning.txt",)
    assert shared(same=True) == ("t.py", "tuning.txt", "csrc/k.cu"), "no build has it, so a test may compile it"
    assert shared(loads=("libk.so",))[1:] == ("tuning.txt", "csrc/k.cu"), "both builds load what was made of it here"
    assert shared(own="cannot collect this test file") == ("tuning.txt",)
    assert shared(revision=True) == ("tuning.txt",)
    monkeypatch.setattr(sys, "path", [str(tmp_path / "site-packages")])
    write(
        tmp_path, {"libs/kern/kern/k.py": "slow = 1\n", "site-packages/kern/k.py": "slow = 1\n", "libs/u.py": "a = 1\n"}
    )
    changed = ("libs/kern/kern/k.py", "libs/u.py")
    assert shared() == ("t.py", "libs/kern/kern/k.py"), "the environment has it as a copy, so both builds load it"
    write(tmp_path, {"site-packages/u.py": "a = 2\n"})
    assert shared() == ("t.py", "libs/kern/kern/k.py"), "another file of that name"
    changed = ("README.md", "src/pk/__init__.py", "src/pk/tiles.json", "tuning.txt", "csrc/k.cu", "t.py")
    assert shared(cwd="elsewhere") == ("t.py",), "each runs in a checkout with files of its own"
    by_setting = ("./src", "t.py")
    assert shared(cwd="elsewhere", overlaid=by_setting) == ("t.py", "src/pk/__init__.py", "src/pk/tiles.json")
    assert shared(cwd="elsewhere", overlaid=by_setting, revision=True) == ("src/pk/__init__.py", "src/pk/tiles.json")


THEN = {"limits": '["slowdown <= 10%"]', "warmup": "0.1", "policy.moved": '"fail"', "mode": '"full"'}
NOW = {
    "limits": '["slowdown <= 300%"]',
    "warmup": "0.2",
    "target": '"pr"',
    "mode": '"full"',
    "pytest: addopts": '"-k x"',
}


class Lines(NamedTuple):
    """A store of one device."""

    accepted: bool

    def devices(self) -> list[str]:
        return ["host-x"]

    def paths(self, _device: str, _revision: str) -> list[str]:
        return ["t.py"] * self.accepted


def settings_notes(
    now: dict[str, str], *, ci: bool = True, base: str = "c0ffee", then: dict[str, str] = THEN, lines: bool = True
) -> list[SuiteNote]:
    gate_judge: Any = SimpleNamespace(
        context=SimpleNamespace(policy=Policy(ci=ci)),
        accepted=SimpleNamespace(base=Base(commit=base)),
        tools=SimpleNamespace(
            repository=object(), settings=lambda revision: then if revision else now, baselines=Lines(lines)
        ),
    )
    return [note for kind in ("dependencies", "settings") for note in notes_on(kind, gate_judge)]


def test_what_can_loosen_a_limit_is_named_first_with_before_and_after() -> None:
    (note,) = settings_notes(NOW)
    assert (note.kind, note.effect) == ("settings", Effect.WARN)
    assert note.text.startswith("5 settings ")
    assert "c0ffee" in note.text
    assert note.names == (
        'limits: ["slowdown <= 10%"] -> ["slowdown <= 300%"]',
        'policy.moved: "fail" -> unset',
        'target: unset -> "pr"',
        'pytest: addopts: unset -> "-k x"',
        "warmup: 0.1 -> 0.2",
    )


def test_dependencies_that_the_change_declares_otherwise_are_a_note_of_their_own() -> None:
    then = THEN | {DEPENDENCIES: '["fakedep==1.0", "numpy"]'}
    first, _ = settings_notes({**NOW, DEPENDENCIES: '["fakedep==2.0", "numpy"]'}, then=then)
    assert "c0ffee" in first.text
    assert first.names == ("-fakedep==1.0", "+fakedep==2.0")
    assert len(settings_notes(NOW, then=THEN)) == 1


def test_nothing_is_said_where_nothing_changed_or_nobody_relies_on_it() -> None:
    assert settings_notes(NOW, then={}, lines=False) == [], "a gate that is new loosens nothing"
    assert settings_notes(NOW, then={})
    assert settings_notes(THEN) == settings_notes(NOW, ci=False) == settings_notes(NOW, base="") == []


def gate_judge(repository: Any, *, ci: bool = True, base: str = "") -> Any:
    return SimpleNamespace(
        tools=SimpleNamespace(repository=repository), context=SimpleNamespace(policy=Policy(ci=ci)),
        revision="", accepted=SimpleNamespace(base=Base(commit=base)),
    )  # fmt: skip


def test_a_history_that_is_committed_is_nobody_s(tmp_path: Path) -> None:
    own = tmp_path / ".perfgate"
    own.mkdir()
    (own / ".gitignore").write_text("*\n")
    (own / "history.db").write_text("24 runs")
    (tmp_path / "a.py").touch()
    subprocess.run(["git", "init", "-q", tmp_path], check=True)

    def commit(*paths: str) -> None:
        who = ("-c", "user.name=a", "-c", "user.email=a@b")
        for words in (("add", "-f", *paths), (*who, "commit", "-qm", "one")):
            subprocess.run(["git", *words], cwd=tmp_path, check=True)

    repository = GitRepository(tmp_path, {})
    commit("a.py", ".perfgate/.gitignore")
    assert notes_on("committed", gate_judge(repository)) == []
    commit(".perfgate/history.db")
    (note,) = notes_on("committed", gate_judge(repository))
    assert (note.effect, note.names) == (Effect.FAIL, (".perfgate/history.db",))
    assert note.text.startswith("1 file under .perfgate/ is committed")
    assert notes_on("committed", gate_judge(repository, ci=False)) == []
    assert notes_on("committed", gate_judge(None)) == []


def test_a_binary_that_python_may_load_is_named(tmp_path: Path) -> None:
    """One with an unchecked hash is loaded in place of the source beside it, whatever that says."""

    def commit(*paths: str) -> str:
        for path in paths:
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_bytes(b"1")
        who = ("-c", "user.name=a", "-c", "user.email=a@b")
        for words in (("add", "-f", "-A"), (*who, "commit", "-qm", "one")):
            subprocess.run(["git", *words], cwd=tmp_path, check=True)
        return GitRepository(tmp_path, {}).head()

    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    repository = GitRepository(tmp_path, {})
    base = commit("src/kern.py", "src/old.so")
    (tmp_path / "src" / "old.so").unlink()
    commit("src/kern.py", "src/__pycache__/kern.cpython-311.pyc", "sitecustomize.py")
    (note,) = notes_on("binary", gate_judge(repository, base=base))
    assert (note.kind, note.effect) == ("binary", Effect.WARN)
    assert note.names == ("sitecustomize.py", "src/__pycache__/kern.cpython-311.pyc")
    assert notes_on("binary", gate_judge(repository, base=base, ci=False)) == []
    assert notes_on("binary", gate_judge(repository, base=repository.head())) == []


LINE = "perfgate: 1\nbaselines:\n  'test_x': {time: TIME, commit: c0ffee, when: 2026-05-02, why: \"WHY\"}\n"
HOME = "baselines/host-x/t/test_k.py.yaml"


def git(folder: Path, *words: str) -> str:
    names = {f"GIT_{who}_{what}": "a@b" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), **names}
    return subprocess.run(
        ["git", *words], cwd=folder, env=environment, check=True, capture_output=True, text=True
    ).stdout.strip()


def commit(folder: Path, files: dict[str, tuple[str, str] | None]) -> str:
    for name, values in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(LINE.replace("TIME", values[0]).replace("WHY", values[1])) if values else path.unlink()
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "x")
    return git(folder, "rev-parse", "HEAD")


def moved_root_notes(
    top: Path, root: str, base: str, policy: Policy = Policy(ci=True, no_base=Choice.FAIL)
) -> list[Any]:
    repository = GitRepository(top / root, {"PATH": os.environ["PATH"]})
    stored = StoredFiles(lambda _revision: "baselines", repository.files)
    store = Baselines(top / root, ["*"], show=repository.show, stored_files=stored)
    (line,) = store.read_all("host-x").values()
    report = CaseReport(key=CaseKey(nodeid=str(line.key)), verdicts=(), baseline=line)
    gate_judge: Any = SimpleNamespace(
        context=SimpleNamespace(policy=policy),
        accepted=SimpleNamespace(base=Base(commit=base)),
        tools=SimpleNamespace(repository=repository, baselines=store),
    )
    return notes_on("uprooted", gate_judge, [report])


@pytest.mark.parametrize(
    ("before", "after", "root", "named"),
    [
        ({f"a/{HOME}": ("1us", "first")}, {f"a/{HOME}": None, f"b/{HOME}": ("2us", "first")}, "b", True),
        ({f"a/{HOME}": ("1us", "first")}, {f"a/{HOME}": None, f"b/{HOME}": ("1us", "first")}, "b", False),
        ({f"a/{HOME}": ("1us", "first")}, {f"a/{HOME}": None, f"b/{HOME}": ("0.5us", "first")}, "b", False),
        ({f"a/{HOME}": ("1us", "first")}, {f"a/{HOME}": None, f"b/{HOME}": ("2us", "exact")}, "b", False),
        ({f"a/{HOME}": ("1us", "first")}, {f"b/{HOME}": ("2us", "first")}, "b", False),
        ({f"a/{HOME}": ("1us", "first")}, {f"a/{HOME}": None, HOME: ("2us", "first")}, "", True),
        ({HOME: ("1us", "first")}, {"t/baselines/host-x/test_k.py.yaml": ("2us", "first")}, "t", True),
        ({HOME: ("1us", "first")}, {HOME: ("2us", "first")}, "", False),
    ],
    ids=[
        "renamed",
        "as it was",
        "faster",
        "with a reason",
        "a package beside",
        "up to the top",
        "a root within",
        "in its place",
    ],
)
def test_lines_that_a_new_root_brings_are_held_against_those_of_before(
    tmp_path: Path, before: dict[str, Any], after: dict[str, Any], root: str, *, named: bool
) -> None:
    git(tmp_path, "init", "-q")
    base = commit(tmp_path, before)
    commit(tmp_path, after)
    notes = moved_root_notes(tmp_path, root, base)
    assert [(note.kind, note.effect) for note in notes] == ([("uprooted", Effect.FAIL)] if named else [])
    assert all(name.endswith("test_k.py::test_x: 1 µs -> 2 µs") for note in notes for name in note.names)
    assert moved_root_notes(tmp_path, root, base, Policy()) == moved_root_notes(tmp_path, root, "") == []
