from __future__ import annotations

import pytest

from pytest_perfgate.adapters.stores.configuration import parse_config
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.project import KEYS, POLICIES, Config, ConfigProject

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
        ("rounds = 0", ["tool.perfgate.rounds", "a whole number from 1"]),
        ("rounds = true", ["a whole number from 1", "True"]),
        ("budget = 'soon'", ["tool.perfgate.budget", "200 ms"]),
        ("budget = 0", ["tool.perfgate.budget", "more than no time at all", "found 0"]),
        ("timeout = '0 s'", ["tool.perfgate.timeout", "more than no time at all"]),
        ("mode = 'fast'", ["tool.perfgate.mode", "full, quick, off"]),
        ("limits = [1]", ["tool.perfgate.limits", "a list of texts"]),
        ("policy = {mising = 'fail'}", ["tool.perfgate.policy", "did you mean missing"]),
        ("policy = {missing = 'maybe'}", ["tool.perfgate.policy.missing", "fail, warn, record"]),
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


def test_every_key_is_a_field() -> None:
    assert {key.name for key in KEYS} <= set(Config.__dataclass_fields__)


def test_policies_agree_with_the_judge() -> None:
    from pytest_perfgate.core.judge.policy import CHOICES

    assert {n: set(vs) for n, vs, _ in POLICIES} == {n: {c.value for c in cs} for n, cs in CHOICES.items()}


def test_settings_in_another_encoding_are_not_passed_over() -> None:
    text = "[tool.perfgate]\nlimits = ['slowdown <= 5%']\n".encode("utf-16-le").decode("utf-8")
    with pytest.raises(PerfgateError, match="config-unreadable"):
        parse_config(text, place="pyproject.toml")
