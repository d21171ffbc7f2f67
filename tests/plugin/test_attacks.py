"""Every way to get a slower kernel past the gate in CI: how each row ends, and what is said of it.

A kernel is 40 % slower in each of them, and the change does one thing more. Times are recorded, so that no row waits for a
machine. What no tool could see is named in ``docs/nothing-passes-vacuously.md`` and is no row here.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from pytest_perfgate.adapters.stores.baselines import Baselines
from tests.plugin.accepted_lines import DEVICE, accepted, git, reported, swap
from tests.plugin.projects import QUIET, Project, Run

SETTINGS = 'confirmation = "interval"\nrounds = 2\nlimits = ["slowdown <= 10%"]\n'
DEVICES = 'devices = ["host-*"]\n'
POLY = """
@pytest.mark.perfgate
def test_poly(perfgate):
    perfgate.record([kern.POLY] * 30, unit="ms")
"""
TESTS = f"""
import kern
import pytest
{POLY}
@pytest.mark.perfgate
def test_ranks(perfgate):
    perfgate.record([kern.RANKS] * 30, unit="ms")

@pytest.mark.perfgate
def test_tokens(perfgate):
    perfgate.record([kern.TOKENS] * 30, unit="ms")
"""
KERN, SLOW = (f"POLY, RANKS, TOKENS = {time}, 1.0, 1.0\n" for time in ("1.0", "1.4"))
HEADING = "this change edits its own gate"
NODE = "tests/test_kern.py::test_poly"
LINE = f"baselines/{DEVICE}/tests/test_kern.py.yaml"


class Attack(NamedTuple):
    """One change, and what becomes of it."""

    name: str
    ends: tuple[int, int]
    """How pytest ends, and ``perfgate report`` after it."""
    sentences: tuple[str, ...] = ()
    files: Mapping[str, str | None] = {}
    """What the change writes, or takes away."""
    swaps: tuple[tuple[str, str, str], ...] = ()
    """A file, a text in it and what the change puts there."""
    loaded: bool = True
    """Whether the plugin is."""
    env: Mapping[str, str] = {}
    strict: bool = False
    """The same with ``own_gate=fail``: both end with 1."""


def conftest(text: str) -> dict[str, str]:
    return {"tests/conftest.py": "import pytest\n" + text}


MARK = "@pytest.mark.perfgate\ndef test_poly"
T = "tests/test_kern.py"
ATTACKS = (
    Attack("nothing more", (1, 1), ("REGRESSED  test_poly",)),
    Attack("delete test", (1, 4), ("perfgate::dropped",), swaps=((T, POLY, ""),)),
    Attack(
        "delete test and line",
        (0, 0),
        (HEADING, f"removed test  {NODE}"),
        swaps=((T, POLY, ""), (LINE, "'test_poly'", "")),
        strict=True,
    ),
    Attack("rename test", (1, 4), ("UNBASELINED", "perfgate::dropped"), swaps=((T, "test_poly", "test_poly_two"),)),
    Attack(
        "rename test, new line",
        (0, 0),
        (HEADING, "replaced line", "+40.0 %"),
        swaps=(
            (T, "test_poly", "test_poly_two"),
            (LINE, "'test_poly': {time: 1.0000ms", "'test_poly_two': {time: 1.4000ms"),
        ),
        strict=True,
    ),
    Attack("skip", (1, 4), ("perfgate::skipped",), swaps=((T, MARK, f"@pytest.mark.skip\n{MARK}"),)),
    Attack(
        "xfail",
        (0, 0),
        (HEADING, f"limit or mark  {NODE}: xfail", f"xfail hides    regressed: {NODE}"),
        swaps=((T, MARK, f"@pytest.mark.xfail\n{MARK}"),),
        strict=True,
    ),
    Attack(
        "xfail by a hook",
        (0, 0),
        (HEADING, "fixture, hook, data  tests/conftest.py: pytest_collection_modifyitems", "xfail hides"),
        files=conftest("def pytest_collection_modifyitems(items):\n    items[0].add_marker(pytest.mark.xfail)\n"),
        strict=True,
    ),
    Attack(
        "deselect by a hook",
        (1, 4),
        ("perfgate::dropped",),
        files=conftest("def pytest_collection_modifyitems(items):\n    del items[0]\n"),
    ),
    Attack(
        "reports rewritten",
        (1, 1),
        ("run-overruled", f"regressed {NODE}"),
        files=conftest(
            "@pytest.hookimpl(wrapper=True)\ndef pytest_runtest_makereport():\n    report = yield\n"
            "    report.outcome = 'passed'\n    return report\n"
        ),
    ),
    Attack(
        "exit status overruled",
        (1, 1),
        ("run-overruled",),
        files=conftest(
            "@pytest.hookimpl(trylast=True)\ndef pytest_sessionfinish(session):\n    session.exitstatus = 0\n"
        ),
    ),
    *(
        Attack(
            f"os._exit(0) in {hook}",
            ends,
            ("something called os._exit(0) before pytest had ended",),
            files=conftest(f"import os\ndef {hook}():\n    os._exit(0)\n"),
        )
        for hook, ends in (("pytest_unconfigure", (1, 1)), ("pytest_collection_finish", (1, 12)))
    ),
    Attack(
        "os._exit(0) at the end of the process",
        (1, 1),
        ("REGRESSED",),
        files=conftest("import atexit, os\natexit.register(lambda: os._exit(0))\n"),
    ),
    Attack(
        "sys.exit(0) in a conftest",
        (4, 12),
        ("a conftest called sys.exit(0)", "skipif"),
        files=conftest("import sys\nsys.exit(0)\n"),
    ),
    Attack(
        "pytest.exit(returncode=0) in a conftest",
        (1, 12),
        ("run-overruled", "3 gated tests did not run"),
        files=conftest("def pytest_runtest_setup():\n    pytest.exit('well', returncode=0)\n"),
    ),
    Attack(
        "os._exit(0) in the package",
        (1, 12),
        ("something called os._exit(0) before pytest had ended",),
        files={"kern.py": "import os\nos._exit(0)\n"},
    ),
    Attack(
        "fixture overridden",
        (1, 4),
        ("NOT MEASURED  test_poly", "its fixture 'perfgate' is the one of tests/conftest.py"),
        files=conftest(
            "class Fake:\n    def record(self, *a, **k): pass\n@pytest.fixture\ndef perfgate():\n    return Fake()\n"
        ),
    ),
    Attack(
        "line edited, no reason",
        (1, 1),
        ("edits the baseline without a reason",),
        swaps=((LINE, "'test_poly': {time: 1.0000ms", "'test_poly': {time: 1.4000ms"),),
    ),
    Attack(
        "line edited, a reason",
        (0, 0),
        (HEADING, f"accepted line  {NODE}", "noise"),
        swaps=((LINE, "'test_poly': {time: 1.0000ms", "'test_poly': {time: 1.4000ms"), (LINE, "measured", "noise")),
    ),
    Attack(
        "limit loosened in the settings",
        (0, 0),
        (HEADING, "setting", "limits", "60%"),
        swaps=(("pyproject.toml", "slowdown <= 10%", "slowdown <= 60%"),),
        strict=True,
    ),
    Attack(
        "limit loosened in the marker",
        (0, 0),
        (HEADING, f"limit or mark  {NODE}: slowdown <= 10% -> slowdown <= 60%"),
        swaps=((T, MARK, MARK.replace("perfgate\n", 'perfgate("slowdown <= 60%")\n')),),
        strict=True,
    ),
    Attack(
        "limit loosened in a table of tests",
        (0, 0),
        (HEADING, "setting", "tests", "60%"),
        swaps=(
            (
                "pyproject.toml",
                'limits = ["slowdown <= 10%"]\n',
                'limits = ["slowdown <= 10%"]\n\n[[tool.perfgate.tests]]\npattern = "*poly"\nlimits = ["slowdown <= 60%"]\n',
            ),
        ),
        strict=True,
    ),
    Attack(
        "left out by addopts",
        (0, 0),
        (HEADING, "pytest: addopts", "not measured", NODE),
        swaps=(
            ("pyproject.toml", "[tool.pytest.ini_options]", "[tool.pytest.ini_options]\naddopts = '-k \"not poly\"'"),
        ),
        strict=True,
    ),
    Attack(
        "deselected by pytest.ini",
        (0, 0),
        (HEADING, "setting", "pytest.ini", "not measured", NODE),
        files={"pytest.ini": f"[pytest]\naddopts = --deselect {NODE}\npythonpath = .\n"},
        strict=True,
    ),
    Attack(
        "switched off by addopts",
        (1, 4),
        ("NOT MEASURED",),
        swaps=(
            ("pyproject.toml", "[tool.pytest.ini_options]", "[tool.pytest.ini_options]\naddopts = '--perfgate=off'"),
        ),
    ),
    Attack("switched off by PYTEST_ADDOPTS", (1, 4), ("NOT MEASURED",), env={"PYTEST_ADDOPTS": "--perfgate=off"}),
    Attack(
        "quick mode",
        (0, 0),
        (HEADING, "setting", "mode", "quick mode"),
        swaps=(("pyproject.toml", "rounds = 2", 'rounds = 2\nmode = "quick"'),),
        strict=True,
    ),
    Attack(
        "quick by addopts",
        (0, 0),
        (HEADING, "pytest: addopts", "quick mode"),
        swaps=(
            ("pyproject.toml", "[tool.pytest.ini_options]", "[tool.pytest.ini_options]\naddopts = '--perfgate=quick'"),
        ),
        strict=True,
    ),
    Attack(
        "a note that the line has not",
        (1, 4),
        ("UNBASELINED"),
        swaps=((T, "perfgate.record([kern.POLY]", "perfgate.note('n', 3); perfgate.record([kern.POLY]"),),
    ),
    Attack(
        "one process, hardly any time",
        (1, 1),
        ("REGRESSED", HEADING, "setting", "rounds"),
        swaps=(("pyproject.toml", "rounds = 2", "rounds = 1"), ("pyproject.toml", 'budget = "4 ms"', "budget = 0.001")),
    ),
    Attack("plugin not loaded", (1, 12), ("fixture 'perfgate' not found",), loaded=False),
    Attack(
        "CI popped from the environment",
        (1, 1),
        ("REGRESSED",),
        files=conftest("import os\nos.environ.pop('CI', None)\n"),
    ),
    *(
        Attack(
            f"CI popped by {name}",
            (1, 1),
            ("REGRESSED", *sentences),
            files={f"{name}.py": "import os\nos.environ.pop('CI', None)\n"},
            swaps=swaps,
            env={"PYTHONPATH": os.pathsep.join([".", *filter(None, [os.environ.get("PYTHONPATH")])])},
        )
        for name, sentences, swaps in (
            ("sitecustomize", (HEADING, "hidden code  sitecustomize.py"), ()),
            (
                "early",
                (HEADING, "pytest: addopts"),
                (("pyproject.toml", "[tool.pytest.ini_options]", "[tool.pytest.ini_options]\naddopts = '-p early'"),),
            ),
        )
    ),
    Attack(
        "test edited",
        (0, 0),
        (HEADING, f"edited test  {NODE}: the test itself"),
        swaps=((T, "[kern.POLY] * 30", "[kern.POLY / 1.4] * 30"),),
        strict=True,
    ),
    Attack(
        "a second test of the name",
        (0, 0),
        (HEADING, f"edited test  {NODE}: the test itself"),
        files={T: TESTS + POLY.replace("kern.POLY", "1.0")},
        strict=True,
    ),
    Attack(
        "another module under the old name",
        (0, 0),
        (HEADING, f"edited test  {NODE}", "kern"),
        files={"fast.py": KERN},
        swaps=((T, "import kern\n", "import fast as kern\n"),),
        strict=True,
    ),
    Attack(
        "accepted by small steps, 40 % since the first",
        (1, 1),
        (HEADING, f"accepted line  {NODE}", "perfgate::creep", "+40.0 %"),
        swaps=(
            (
                LINE,
                "'test_poly': {time: 1.0000ms",
                "'test_poly': {time: 1.4000ms, anchor: 1.0000ms, anchored: 2026-01-02",
            ),
            (LINE, "measured", "the fifth step of a few percent"),
        ),
    ),
    Attack(
        "floor raised",
        (1, 1),
        (HEADING, "setting", "floor"),
        swaps=(("pyproject.toml", "rounds = 2", 'rounds = 2\nfloor = "1 s"'),),
    ),
    Attack(
        "lines renamed to another device",
        (1, 1),
        ("REGRESSED", "removed line"),
        files={
            LINE: None,
            LINE.replace(DEVICE, "host-foo"): "perfgate: 1\nbaselines:\n  'test_poly': {time: 1ms}\n",
        },
    ),
    Attack(
        "lines removed, policies loosened",
        (1, 1),
        ("REGRESSED", HEADING, "removed line"),
        files={LINE: None},
        swaps=(
            (
                "pyproject.toml",
                "rounds = 2",
                'rounds = 2\npolicy = { missing = "warn", unused = "ignore", unmeasured = "warn" }',
            ),
        ),
    ),
    Attack(
        "device un-listed, missing = record",
        (1, 1),
        ("REGRESSED", HEADING, "devices", "policy"),
        swaps=(("pyproject.toml", DEVICES, 'devices = ["host-foo"]\npolicy = { missing = "record" }\n'),),
    ),
    Attack(
        "device un-listed",
        (1, 1),
        ("REGRESSED", HEADING, "devices"),
        swaps=(("pyproject.toml", DEVICES, "devices = []\n"),),
    ),
    Attack(
        "files under .perfgate committed",
        (1, 1),
        ("perfgate::committed",),
        files={".perfgate/notes.txt": "junk"},
    ),
    Attack(
        "sys.exit(0) in a test",
        (1, 1),
        ("not measured",),
        swaps=((T, "perfgate.record([kern.POLY] * 30", "import sys; sys.exit(0); perfgate.record([kern.POLY] * 30"),),
    ),
    Attack(
        "pytest.exit(returncode=0) in a test",
        (1, 4),
        ("NOT MEASURED",),
        swaps=((T, "perfgate.record([kern.POLY]", "pytest.exit('well', returncode=0); perfgate.record([kern.POLY]"),),
    ),
)
FAST = {
    "nothing more",
    "xfail",
    "limit loosened in the marker",
    "device un-listed, missing = record",
    "os._exit(0) in pytest_unconfigure",
    "pytest.exit(returncode=0) in a conftest",
}
"""Rows of every run; the others are slow together."""


def table(attacks: Iterable[Attack]) -> list[object]:
    """Attacks as parameters, the long tail marked."""
    return [pytest.param(one, id=one.name, marks=() if one.name in FAST else pytest.mark.slow) for one in attacks]


@pytest.fixture(scope="module")
def accepted_project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three kernels with accepted times, on a branch that a change may leave."""
    project = Project(tmp_path_factory.mktemp("accepted"))
    project.configure(DEVICES + SETTINGS, "pythonpath = ['.']\ntestpaths = ['tests']")
    project.write("kern.py", KERN)
    project.write(T, TESTS)
    project.write(".gitignore", ".perfgate/\njunit.xml\n__pycache__/\n")
    lines = [accepted(name, 1.0) for name in ("test_poly", "test_ranks", "test_tokens")]
    keys = (line.key.nodeid.replace("test_it.py", T) for line in lines)
    from dataclasses import replace

    from pytest_perfgate.model.plan import CaseKey

    Baselines(project.root, ["host-*"]).write(
        [replace(line, key=CaseKey(nodeid=key)) for line, key in zip(lines, keys, strict=True)]
    )
    for words in (("init", "-qb", "main"), ("add", "."), ("commit", "-qm", "accepted"), ("checkout", "-qb", "change")):
        git(project, *words)
    return project.root


def attacked(attack: Attack, base: Path, root: Path) -> Project:
    """A clone in which the change is committed."""
    shutil.copytree(base, root)
    project = Project.__new__(Project)
    project.root = root
    (root / "kern.py").write_text(SLOW, encoding="utf-8")
    for name, text in attack.files.items():
        if text is None:
            (root / name).unlink()
        else:
            project.write(name, text)
    for name, old, new in attack.swaps:
        swap(root / name, old, new)
    git(project, "add", "-f", ".", *(() if ".perfgate/notes.txt" in attack.files else (":!.perfgate",)))
    git(project, "commit", "-qm", attack.name)
    return project


def judged(project: Project, attack: Attack, *words: str) -> Run:
    ci = {"GITHUB_BASE_REF": "main", "GITHUB_EVENT_NAME": "pull_request", "GITHUB_ACTIONS": "true"}
    plugins = QUIET if attack.loaded else (*QUIET, "-p", "no:perfgate")
    return project.run("-q", *words, ci=True, plugins=plugins, **ci, **attack.env)


@pytest.mark.parametrize("attack", table(ATTACKS))
def test_how_each_attack_ends_and_what_is_said(attack: Attack, accepted_project: Path, tmp_path: Path) -> None:
    project = attacked(attack, accepted_project, tmp_path / "clone")
    run = judged(project, attack)
    text = " ".join(run.text.split())
    assert [words for words in attack.sentences if " ".join(words.split()) not in text] == [], run.text
    assert (run.code, reported(project)) == attack.ends, run.text


@pytest.mark.parametrize("attack", table(one for one in ATTACKS if one.strict))
def test_where_the_policy_asks_for_it_an_edit_of_the_gate_fails_with_one(
    attack: Attack, accepted_project: Path, tmp_path: Path
) -> None:
    project = attacked(attack, accepted_project, tmp_path / "clone")
    run = judged(project, attack, "--perfgate-policy", "own_gate=fail")
    assert (run.code, reported(project)) == (1, 1), run.text
    assert "FAILED perfgate::own gate" in run.text
