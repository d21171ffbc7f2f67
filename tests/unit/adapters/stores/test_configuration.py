"""Tests of adapters/stores/configuration."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from pytest_perfgate.adapters.devices.host import probe_environment
from pytest_perfgate.adapters.stores.baselines import Baselines, StoredFiles
from pytest_perfgate.adapters.stores.configuration import (
    declared_names,
    devices_at,
    folder_at,
    parse_config,
    parse_declared,
    read_config,
    settings_at,
)
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.project import DEPENDENCIES, KEYS, POLICIES, Config, ConfigProject
from tests.unit.core.judge.bench import HOST

GOOD = """
[tool.perfgate]
limits = ["slowdown <= 5%", "time <= 1 s"]
budget = "200 ms"
timeout = 30
launcher = "ssh login 'srun -N1'"
devices = "host-*"
mode = "quick"
[tool.perfgate.policy]
missing = "warn"
[[tool.perfgate.tests]]
pattern = "tests/bench/*"
limits = "time <= 2 ms"
rounds = 5
"""


def test_every_kind_of_value_is_read() -> None:
    config = parse_config(GOOD, place="pyproject.toml")
    assert config.limits == ("slowdown <= 5%", "time <= 1 s")
    assert (config.budget, config.timeout, config.mode) == (0.2, 30.0, "quick")
    assert config.launcher == ("ssh", "login", "srun -N1")
    assert config.devices == ("host-*",)
    assert config.policy == (("missing", "warn"),)
    assert (config.tests[0].pattern, config.tests[0].rounds) == ("tests/bench/*", 5)


def test_projects_are_folders_or_tables_with_a_command() -> None:
    text = "[tool.perfgate]\nprojects = ['one', {path = 'two', build = 'make'}]\ntest_paths = 'tests/data'\n"
    config = parse_config(text, place="p")
    assert config.projects == (ConfigProject(path="one"), ConfigProject(path="two", build="make"))
    assert config.test_paths == ("tests/data",)


def test_silence_is_the_default() -> None:
    assert parse_config("[project]\nname = 'x'", place="p") == Config()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("limitz = []", ["p: tool.perfgate", "'limitz' is not a setting", "did you mean limits"]),
        ("default = ['time < 1ms']", ["'default' is not a setting", "known keys: ", "limits"]),
        ('conviction = "interval"', ["p: tool.perfgate", "'conviction' is now 'confirmation'", "write confirmation"]),
        ("rounds = 0", ["tool.perfgate.rounds", "a whole number from 1"]),
        ("rounds = true", ["a whole number from 1", "True"]),
        ("budget = 'soon'", ["tool.perfgate.budget", "200 ms"]),
        ("budget = 0", ["tool.perfgate.budget", "more than no time at all", "found 0"]),
        ("timeout = '0 s'", ["tool.perfgate.timeout", "more than no time at all"]),
        ("mode = 'fast'", ["tool.perfgate.mode", "full, quick, off"]),
        ("limits = [1]", ["tool.perfgate.limits", "a list of texts"]),
        ("policy = {mising = 'fail'}", ["tool.perfgate.policy", "did you mean missing"]),
        ("policy = {missing = 'maybe'}", ["tool.perfgate.policy.missing", "fail, warn, record"]),
        ("policy = {suspect = 'warning'}", ["tool.perfgate.policy.suspect", "warn, fail", "did you mean 'warn'?"]),
        ("tests = [{limits = 'x'}]", ["tool.perfgate.tests[0]", "needs its pattern"]),
        ("tests = [{pattern = 'x', rouns = 3}]", ["tool.perfgate.tests[0]", "did you mean rounds"]),
        ("limits = [", ["not TOML"]),
        ("projects = 'one'", ["tool.perfgate.projects", "a list of folders"]),
        ("projects = [{build = 'make'}]", ["tool.perfgate.projects[0]", "{path = ..., build = ...}"]),
        ("projects = ['one', {path = 'two', biuld = 'make'}]", ["tool.perfgate.projects[1]", "did you mean build"]),
    ],
)
def test_what_is_wrong_is_said_with_its_path(text: str, words: list[str]) -> None:
    with pytest.raises(PerfgateError) as caught:
        parse_config(f"[tool.perfgate]\n{text}\n", place="p")
    assert [word for word in words if word not in str(caught.value)] == []


def test_every_key_is_read_somewhere() -> None:
    package = Path(__file__).resolve().parents[4] / "pytest_perfgate"
    text = "\n".join(path.read_text(encoding="utf-8") for path in package.rglob("*.py"))
    assert [key.name for key in KEYS if not re.search(rf"\.{key.name}\b", text)] == []


def test_every_key_is_a_field() -> None:
    assert {key.name for key in KEYS} <= set(Config.__dataclass_fields__)


def test_policies_agree_with_the_judge() -> None:
    from pytest_perfgate.core.judge.policy import CHOICES

    assert {n: set(vs) for n, vs, _ in POLICIES} == {n: {c.value for c in cs} for n, cs in CHOICES.items()}


WIDE = "[tool.perfgate]\nlimits = ['slowdown <= 5%']\n".encode("utf-16-le").decode("utf-8")


@pytest.mark.parametrize("text", [WIDE, "\x1f"])
def test_settings_in_another_encoding_are_not_passed_over(text: str) -> None:
    with pytest.raises(PerfgateError, match="config-unreadable"):
        parse_config(text, place="pyproject.toml")


TEXT = """
[project]
dependencies = ["Typing_Extensions >=4", "iniconfig", "a.b[extra]==1 ; python_version < '3.9'", 'here @ file:///x']
"""


def test_names_are_spelled_as_an_index_has_them_and_of_every_project(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "pyproject.toml").write_text(TEXT)
    (tmp_path / "one" / "pyproject.toml").write_text("[project]\ndependencies = ['c']\n")
    expected = {"typing-extensions", "iniconfig", "a-b", "here", "c"}
    assert declared_names(tmp_path, (".", "one", "nowhere")) == expected
    assert settings_at(tmp_path, lambda *_: None)[DEPENDENCIES].startswith('["Typing_Extensions >=4"')


@pytest.mark.parametrize(
    "text", ["", "dependencies = 1", "[project]\ndependencies = 'x'", "project = 1 # dependencies", "["]
)
def test_a_text_that_declares_nothing_has_none(text: str) -> None:
    assert parse_declared(text) == ()


def test_the_version_of_what_is_declared_is_kept_beside_a_time() -> None:
    assert "iniconfig" in dict(probe_environment(lambda: {"iniconfig"}).lasting.packages)
    assert "iniconfig" not in dict(probe_environment().lasting.packages)


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
    own += 'bench_size = "4096"\nlog_level = "INFO"\n'
    files = {"pytest.toml": own, ".pytest.toml": "not [ TOML", "tox.ini": "[pytest]\nusefixtures = quick\n"}
    files["pyproject.toml"] = '[tool.pytest_env]\nOMP_NUM_THREADS = "1"\n[tool.pytest.ini_options]\nenv = ["A=1"]\n'
    assert settings_at(tmp_path, lambda _revision, path: files.get(path), "c0ffee") == {
        "pytest.toml: addopts": '["--deselect", "t.py::test_a"]',
        "pytest.toml: pythonpath": '["shim", "src"]',
        "pytest.toml: bench_size": '"4096"',
        "tox.ini: usefixtures": '"quick"',
        "pytest: env": '["A=1"]',
        "pytest_env: OMP_NUM_THREADS": '"1"',
    }


def test_a_change_that_moves_the_folder_moves_no_line_of_before(tmp_path: Path) -> None:
    paths: list[str] = []

    def show(_revision: str, path: str) -> str:
        paths.append(path)
        return THEN if path == "pyproject.toml" else "perfgate: 1\nbaselines:\n  'test_a': {time: 1us}\n"

    stored = StoredFiles(
        lambda revision: folder_at(show, revision), lambda _revision, folder: (f"{folder}/tests/test_k.py.yaml",)
    )
    store = Baselines(tmp_path, ["*"], "elsewhere", show, stored)
    for _ in range(2):
        (line,) = store.read(HOST.key, "tests/test_k.py", "c0ffee").values()
        assert line.time == 1000.0
    moved = f"perf/{HOST.key}/tests/test_k.py.yaml"
    assert paths == ["pyproject.toml", moved, moved]
    assert store.paths(HOST.key, "c0ffee") == ("tests/test_k.py",)
    assert Baselines(tmp_path, [], "elsewhere", show, stored).paths(HOST.key, "c0ffee") == (), "this checkout's alone"
    assert folder_at(lambda *_: None, "c0ffee") == "baselines"


def test_a_device_off_the_list_keeps_the_lines_that_a_revision_lists(tmp_path: Path) -> None:
    line = "perfgate: 1\nbaselines:\n  'test_a': {time: 1us}\n"
    stored = StoredFiles(
        lambda _: "baselines", lambda _r, folder: (f"{folder}/tests/test_k.py.yaml",), lambda _: ("host-*",)
    )
    store = Baselines(tmp_path, [], "baselines", lambda *_: line, stored)
    (then,) = store.read(HOST.key, "tests/test_k.py", "c0ffee").values()
    assert not then.local
    assert store.read(HOST.key, "tests/test_k.py") == {}, "of here there is none"
    assert store.paths(HOST.key, "c0ffee") == ("tests/test_k.py",)
    assert devices_at(lambda *_: '[tool.perfgate]\ndevices = ["host-*", 3]\n', "c0ffee") == ("host-*",)
    assert devices_at(lambda *_: None, "c0ffee") == ()


SHARES = (("anchor = '25%'", 0.25), ("anchor = '7.5 %'", 0.075), ("anchor = 'off'", float("inf")), ("", 0.10))


@pytest.mark.parametrize(("line", "share"), SHARES)
def test_a_share_is_read_as_a_fraction(line: str, share: float) -> None:
    assert parse_config(f"[tool.perfgate]\n{line}\n", place="p").anchor == pytest.approx(share)


@pytest.mark.parametrize("line", ["anchor = 'v1.2'", "anchor = 0.1", "anchor = '-5%'"])
def test_what_is_no_share_is_an_error_and_a_revision_has_a_setting_of_its_own(line: str) -> None:
    with pytest.raises(PerfgateError, match="config-value") as refused:
        parse_config(f"[tool.perfgate]\n{line}\n", place="p")
    assert ("anchor_revision" in str(refused.value)) is ("0.1" not in line)


def test_a_pipe_in_the_place_of_the_settings_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pyproject.toml")
    with pytest.raises(PerfgateError) as error:
        read_config(tmp_path)
    assert error.value.code.name == "config-unreadable"


def test_a_file_without_our_settings_is_parsed_where_that_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("y = 1\nx = [\n", encoding="utf-8")
    assert read_config(tmp_path) == Config()
    with pytest.raises(PerfgateError) as error:
        read_config(tmp_path, whole=True)
    assert error.value.code.name == "config-unreadable"
    assert "line 2" in error.value.what


@pytest.mark.parametrize(
    "setting",
    ['launcher = "srun \'x"', 'build = "make\\nmake \'install"', 'projects = [{path = "a", build = "make \'x"}]'],
)
def test_a_command_with_an_open_quote_is_refused(setting: str) -> None:
    with pytest.raises(PerfgateError) as error:
        parse_config(f"[tool.perfgate]\n{setting}\n", place="p")
    assert error.value.code.name == "config-value"


def test_a_comment_of_a_build_may_hold_a_quote() -> None:
    text = "make  # it's quick\nmake install"
    assert parse_config(f"[tool.perfgate]\nbuild = {json.dumps(text)}\n", place="p").build == text


def test_a_file_whose_tools_are_no_table_has_no_settings() -> None:
    assert parse_config("tool = 'perfgate'\n", place="p") == Config(source="p")
