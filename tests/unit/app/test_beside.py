from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from pytest_perfgate.app.beside import edited_beside
from tests.unit.app.duets import cases

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
