from __future__ import annotations

from pathlib import Path

from pytest_perfgate.adapters.stores.baselines import Baselines, Kept
from pytest_perfgate.adapters.stores.configuration import devices_at, folder_at, settings_at
from tests.unit.core.gate.bench import HOST

THEN = """
[tool.perfgate]
limits = ["slowdown <= 10%"]
baselines = "perf"
[tool.perfgate.policy]
moved = "fail"
[[tool.perfgate.tests]]
pattern = "*gemm*"
limits = "time <= 1 ms"
[tool.pytest.ini_options]
addopts = "-q"
pythonpath = "src"
"""


def test_all_keys_of_a_revision_and_of_what_is_here(tmp_path: Path) -> None:
    files = {"pyproject.toml": THEN, "setup.cfg": "[tool:pytest]\naddopts = -m 'not slow'\n", "tox.ini": "[broken"}
    assert settings_at(tmp_path, lambda _revision, path: files.get(path), "c0ffee") == {
        "limits": '["slowdown <= 10%"]',
        "baselines": '"perf"',
        "policy.moved": '"fail"',
        "tests[*gemm*].limits": '"time <= 1 ms"',
        "pytest: addopts": '"-q"',
        "pytest: pythonpath": '"src"',
        "setup.cfg: addopts": "\"-m 'not slow'\"",
    }
    assert settings_at(tmp_path, lambda *_: None) == {}
    (tmp_path / "pyproject.toml").write_text("tool = 1", encoding="utf-8")
    assert settings_at(tmp_path, lambda *_: None) == {}
    (tmp_path / "pyproject.toml").write_text("[tool.perfgate]\nmode = 'quick'\n", encoding="utf-8")
    assert settings_at(tmp_path, lambda *_: None) == {"mode": '"quick"'}
    assert settings_at(tmp_path, lambda *_: "not [ TOML", "c0ffee") == {}


def test_every_file_that_pytest_reads_its_settings_from(tmp_path: Path) -> None:
    """One that comes with a change is read in place of the others: pytest.toml before all of them."""
    own = '[pytest]\naddopts = ["--deselect", "t.py::test_a"]\npythonpath = ["shim", "src"]\nminversion = "9"\n'
    files = {"pytest.toml": own, ".pytest.toml": "not [ TOML", "tox.ini": "[pytest]\nusefixtures = quick\n"}
    assert settings_at(tmp_path, lambda _revision, path: files.get(path), "c0ffee") == {
        "pytest.toml: addopts": '["--deselect", "t.py::test_a"]',
        "pytest.toml: pythonpath": '["shim", "src"]',
        "tox.ini: usefixtures": '"quick"',
    }


def test_a_change_that_moves_the_folder_moves_no_line_of_before(tmp_path: Path) -> None:
    asked: list[str] = []

    def show(_revision: str, path: str) -> str:
        asked.append(path)
        return THEN if path == "pyproject.toml" else "perfgate: 1\nbaselines:\n  'test_a': {time: 1us}\n"

    kept = Kept(
        lambda revision: folder_at(show, revision), lambda _revision, folder: (f"{folder}/tests/test_k.py.yaml",)
    )
    store = Baselines(tmp_path, ["*"], "elsewhere", show, kept)
    for _ in range(2):
        (line,) = store.read(HOST.key, "tests/test_k.py", "c0ffee").values()
        assert line.time == 1000.0
    moved = f"perf/{HOST.key}/tests/test_k.py.yaml"
    assert asked == ["pyproject.toml", moved, moved]
    assert store.paths(HOST.key, "c0ffee") == ("tests/test_k.py",)
    assert Baselines(tmp_path, [], "elsewhere", show, kept).paths(HOST.key, "c0ffee") == (), "this checkout's alone"
    assert folder_at(lambda *_: None, "c0ffee") == "baselines"


def test_a_device_off_the_list_keeps_the_lines_that_a_revision_lists(tmp_path: Path) -> None:
    line = "perfgate: 1\nbaselines:\n  'test_a': {time: 1us}\n"
    kept = Kept(lambda _: "baselines", lambda _r, folder: (f"{folder}/tests/test_k.py.yaml",), lambda _: ("host-*",))
    store = Baselines(tmp_path, [], "baselines", lambda *_: line, kept)
    (then,) = store.read(HOST.key, "tests/test_k.py", "c0ffee").values()
    assert not then.local
    assert store.read(HOST.key, "tests/test_k.py") == {}, "of here there is none"
    assert store.paths(HOST.key, "c0ffee") == ("tests/test_k.py",)
    assert devices_at(lambda *_: '[tool.perfgate]\ndevices = ["host-*", 3]\n', "c0ffee") == ("host-*",)
    assert devices_at(lambda *_: None, "c0ffee") == ()
