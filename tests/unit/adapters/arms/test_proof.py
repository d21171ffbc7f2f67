"""Which files an arm's process has loaded."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest

from pytest_perfgate.adapters.arms.proof import beside_modules, content_of, foreign_libraries, loaded_modules


def test_a_library_that_the_arm_has_and_that_came_from_elsewhere(tmp_path: Path) -> None:
    arm = tmp_path / "arms" / "digest"
    site = arm / "env" / "lib" / "site-packages" / "fast"
    site.mkdir(parents=True)
    (site / "libfast.so.1").touch()
    inside, outside = str(site / "libfast.so.1"), str(tmp_path / "build" / "libfast.so.1")
    others = ["/usr/lib/libc.so.6", str(tmp_path / "build" / "libother.so")]
    assert foreign_libraries([inside, outside, *others], arm) == []  # no arm: nothing says that it is one
    (arm / "ready.json").touch()
    assert foreign_libraries([inside, outside, *others], arm) == [outside]
    assert foreign_libraries([inside], arm) == []


def test_an_import_is_found_wherever_it_came_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "proof_k.py").write_text("SPEED = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    __import__("proof_k")
    try:
        ((file, digest),) = loaded_modules(["proof_k"])
        assert beside_modules(tmp_path, ["pkg"]) == (("proof_k.py", digest),)
        assert beside_modules(tmp_path, ["proof_k"]) == beside_modules(tmp_path / "other", ["pkg"]) == ()
    finally:
        del sys.modules["proof_k"]
    assert (file, len(digest)) == (str(tmp_path / "proof_k.py"), 16)


def test_modules_that_a_library_makes_up_are_no_files_of_the_project(tmp_path: Path, monkeypatch) -> None:
    """``torch.ops`` and ``torch.classes`` stand in ``sys.modules`` with files such as ``_ops.py``."""
    torch = pytest.importorskip("torch", reason="torch is not installed", exc_type=ImportError)
    assert not Path(torch.ops.__file__).is_absolute()
    monkeypatch.chdir(tmp_path)
    assert beside_modules(tmp_path, ["pkg"]) == ()


def test_a_lazy_module_is_not_asked_and_one_that_is_gone_is_no_file(tmp_path: Path, monkeypatch) -> None:
    class Lazy(ModuleType):
        def __getattr__(self, name: str) -> object:
            raise RuntimeError(f"asked for {name}")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "lazy_k", Lazy("lazy_k"))
    for name, file in (("made_up", "_ops.py"), ("gone", str(tmp_path / "gone.py"))):
        made = ModuleType(name)
        made.__file__ = file
        monkeypatch.setitem(sys.modules, name, made)
    assert beside_modules(tmp_path, ["pkg"]) == ()
    assert loaded_modules(["lazy_k", "made_up", "gone"]) == ()


def test_a_commit_of_accepted_times_or_pages_alone_leaves_the_same_code(tmp_path: Path) -> None:
    def written(name: str, text: str) -> str:
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return content_of(tmp_path)

    first = written("k.py", "x = 1\n")
    line = "# Accepted\nperfgate: 1\nbaselines:\n  'test_k': {time: 1us}\n"
    assert written("baselines/host/test_k.yaml", line) == first
    assert written("baselines/host/environments/ab.json", "{}") == first
    assert written("README.md", "one") == first
    described = written("pyproject.toml", 'readme = "README.md"')
    assert described != first, "what describes the package is content itself"
    assert written("README.md", "two") == described
    assert written("docs/a.rst", "two") == described
    assert written("other/environments/ab.json", "{}") != described
    data = written("data.yaml", "a: 1\n")
    assert written("data.yaml", "a: 2\n") != data
    code = written("k.py", "x = open('README.md')\n")
    assert written("docs/a.rst", "three") == code
    assert written("README.md", "three") != code, "code that speaks of pages may read one"
