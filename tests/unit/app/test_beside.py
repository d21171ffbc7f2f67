from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from pytest_perfgate.app.beside import edited_beside, with_files
from pytest_perfgate.app.own_files import OwnFiles
from pytest_perfgate.model.paired import Decision, Paired, PairedRound
from pytest_perfgate.model.plan import CaseKey
from tests.unit.app.duets import arm, cases

TEST = "def test_0(perfgate):\n    perfgate(work)\n"
LOADED = ("t.py", "helper.py", "other.py", "gone.py")


def test_what_a_change_edits_beside_a_test_is_named(tmp_path: Path) -> None:
    now = {"t.py": TEST + "def test_new(perfgate): ...\n", "helper.py": "def work(): ...\n", "other.py": "A = 1"}
    for name, text in now.items():
        (tmp_path / name).write_text(text)
    case = replace(cases(1)[0], nodeid="t.py::test_0[3]")

    def edited(**then: str) -> tuple[str, ...]:
        kept = {"t.py": TEST, "helper.py": now["helper.py"]} | {f"{name}.py": text for name, text in then.items()}
        return edited_beside(case, LOADED, ("t.py", "other.py"), tmp_path, {**kept, "gone.py": ""}.get)

    assert edited() == ()
    assert edited(helper="# words\ndef work(): ...\n") == ()
    assert edited(helper="def work(): pass\n") == ("helper.py",)
    assert edited(helper="def work( broken") == ("helper.py",)
    assert edited(t=TEST.replace("work", "walk")) == ("t.py",)
    assert edited_beside(case, ("t.py", "helper.py"), ("t.py",), tmp_path, lambda _: None) == ("helper.py",)
    assert edited_beside(case, ("_ops.py",), ("t.py",), tmp_path, lambda _: None) == (), "neither then nor now"


def test_what_changed_and_both_arms_read_from_the_head_is_named(tmp_path: Path) -> None:
    (tmp_path / "site" / "pk").mkdir(parents=True)
    (tmp_path / "site" / "pk" / "tiles.json").write_text("{}")
    (tmp_path / "t.py").write_text(TEST)
    arms = tuple(replace(arm(name), root=str(tmp_path / "site")) for name in ("base", "head"))
    case = cases(1)[0]
    changed = ("README.md", "src/pk/__init__.py", "src/pk/tiles.json", "tuning.txt", "t.py")
    repository: Any = SimpleNamespace(changed=lambda _: changed, show=lambda _, path: TEST.replace("work", "walk"))

    def shared(*, own: str = "", revision: bool = False, **of_arms: str) -> tuple[str, ...]:
        comparison: Any = SimpleNamespace(
            arms=(arms[0], replace(arms[1], **of_arms)), cases={case.nodeid: case}, bare={},
            beside={case.nodeid: ("t.py",)}, own=OwnFiles(None),
            rounds=[PairedRound(nodeid=case.nodeid, phase="screen", number=0, own=own)],
        )  # fmt: skip
        key, told = CaseKey(nodeid=case.nodeid), Paired(decision=Decision.NOT_SLOWER, differences=(), shift=0.0)
        found = with_files({key: replace(told, revision=revision)}, comparison, ("t.py",), tmp_path, repository)
        return found[key].shared

    assert shared() == ("t.py", "tuning.txt")
    assert shared(own="cannot collect this test file") == ("tuning.txt",)
    assert shared(revision=True) == ("tuning.txt",)
    assert shared(cwd="elsewhere") == ("t.py",), "each runs in a checkout with files of its own"
