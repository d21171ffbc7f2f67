"""One pull request of each kind against plain pytest in CI: how it ends, and which cases do not just pass.

Each is a clone of a bare repository with one commit on a branch. All kinds of limits are in one suite: a slowdown of
recorded times and of calls on a simulated clock, a time, a figure, times of a stored file. What else a change that makes
a kernel slower may try is in ``test_attacks.py``; ``test_ci_decides.py`` has what needs real times.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from pytest_perfgate.adapters.stores.records import Records
from pytest_perfgate.model.errors import PerfgateError
from tests.plugin.accepted_lines import DEVICE, reported, swap
from tests.plugin.forked import forked, inherited
from tests.plugin.projects import Project, Run
from tests.plugin.simulated import CONFTEST
from tests.plugin.two_builds import SLOW, git

CI = {"GITHUB_ACTIONS": "true", "GITHUB_BASE_REF": "main", "GITHUB_EVENT_NAME": "pull_request"}
SETTINGS = 'arms = "worktree"\nbudget = "4 ms"\ndevices = ["*"]\n'
INI = 'pythonpath = [".", "libs"]\ntestpaths = ["tests"]'
KERN = """from dep import MORE

TIME, SENT = 1.0, 4096


def times():
    return [MORE * TIME, MORE * TIME * 1.001, MORE * TIME * 1.002] * 10


def sent():
    return SENT


def nanoseconds():
    return 10_000.0 * TIME
"""
RECORDED = """
@pytest.mark.perfgate("slowdown <= 5%")
def test_times(perfgate):
    perfgate.record(kern.times(), unit="ms")
"""
TESTS = f"""import json
import pathlib

import kern
import pytest
from conftest import SIMULATED

STORED = pathlib.Path(__file__).parents[1] / "data" / "stored.json"
{RECORDED}

@pytest.mark.perfgate("time <= 5ms")
def test_bound(perfgate):
    perfgate.record(kern.times(), unit="ms")


@pytest.mark.perfgate("change(sent) <= 0")
def test_sent(perfgate):
    perfgate.metric("sent", kern.sent(), unit="B", exact=True)


@pytest.mark.perfgate("slowdown <= 5%", runtime="fake", timer="host")
def test_call(perfgate):
    perfgate(lambda: SIMULATED.takes(kern.nanoseconds()))


@pytest.mark.perfgate("slowdown <= 5%")
@pytest.mark.parametrize("n", [1, 2], ids=["a/b: c", "x'[1]"])
def test_sized(perfgate, n):
    perfgate.record([n * t for t in kern.times()], unit="ms")


@pytest.mark.perfgate("slowdown <= 5%")
def test_stored(perfgate):
    kern.sent()
    perfgate.record(json.loads(STORED.read_text())["ms"], unit="ms")
"""
STORED = '{"ms": [1.0, 1.001, 1.002, 1.0, 1.001, 1.002, 1.0, 1.001, 1.002, 1.0]}\n'
T, K, LINES = "tests/test_kern.py", "kern.py", f"baselines/{DEVICE}/tests/test_kern.py.yaml"
HEADING = "this change edits its own gate"
OF_TIMES = "test_times test_sized[a/b: c] test_sized[x'[1]]"
TIMED = f"{OF_TIMES} test_call"


class Pull(NamedTuple):
    """One change, and how it ends."""

    name: str
    ends: tuple[int, int] = (1, 1)
    """How pytest ends, and ``perfgate report`` after it."""
    differ: Mapping[str, str] = {}
    """The cases that do not just pass, by their outcome."""
    says: tuple[str, ...] = ()
    lines: str = "base"
    """Where accepted lines are: at the base, in the change alone ("came", or "reasoned"), or nowhere ("none")."""
    slower: float = 1.0
    swaps: tuple[tuple[str, str, str], ...] = ()
    files: Mapping[str, str | None] = {}
    """What the change writes, or takes away."""
    after: tuple[str, ...] = ()
    """What git does to the clone after the commit."""


def regressed(*others: str) -> dict[str, str]:
    return {"regressed": " ".join((TIMED, *others))}


CONF = "tests/conftest.py"
GONE = "def test_plain():\n    pass\n"
WORK = "import pytest\nfrom pytest_perfgate import work\n"
NO_BASE = ("update-ref -d refs/remotes/origin/main", "branch -D main", "remote remove origin")
MERGED = ("checkout -q --detach main", "-c user.name=a -c user.email=a@example.com merge -q --no-ff -m merge change")
FIGURE = {"unbaselined": "test_sent"}
EQUAL = {"suspect": "test_stored"}  # both builds read one file, and the line came with the change
ALL = f"{TIMED} test_sent test_bound test_stored"
SETTLED = "pyproject.toml"
SKIP_ALL = "def pytest_collection_modifyitems(items):\n    [item.add_marker('skip') for item in items]\n"
NEW_KERNEL = "\n\ndef fresh():\n    return times()\n"
FRESH = RECORDED.replace("times", "fresh")
PULLS = (
    Pull("nothing", (0, 0)),
    Pull("nothing, no lines", (1, 4), FIGURE, lines="none"),
    Pull("nothing but the first lines", (0, 0), lines="came"),
    Pull("a comment", (0, 0), swaps=((K, "TIME, SENT", "# milliseconds, bytes\nTIME, SENT"),)),
    Pull("faster", (0, 0), {"improved": f"{TIMED} test_sent"}, slower=0.5),
    *(
        Pull(
            f"slower {by} times, lines: {lines}", differ={**regressed(*figure), **bound, **none}, lines=lines, slower=by
        )
        for by, bound in ((1.1, {}), (10.0, {"broken": "test_bound"}), (1000.0, {"broken": "test_bound"}))
        for lines, figure, none in (("base", ["test_sent"], {}), ("none", [], FIGURE), ("came", ["test_sent"], EQUAL))
    ),
    Pull(
        "slower, first lines say why",
        (0, 0),
        {"accepted": f"{TIMED} test_sent", **EQUAL},
        (HEADING,),
        "reasoned",
        slower=1.4,
    ),
    Pull(
        "the kernel raises",
        (1, 1),
        {"not measured": f"{OF_TIMES} test_bound"},
        swaps=((K, "    return [MORE", "    raise ValueError\n    return [MORE"),),
    ),
    Pull(
        "its result is refused",
        (1, 1),
        {"not measured": "test_call"},
        swaps=((T, "nanoseconds()))", "nanoseconds()), check=lambda result: False)"),),
    ),
    Pull("a dependency beside it is slower", differ={"regressed": OF_TIMES}, swaps=(("libs/dep.py", "1.0", "1.4"),)),
    Pull(
        "it is split in two files and slower",
        differ=regressed(),
        swaps=((K, "TIME, SENT = 1.0, 4096", "from parts import TIME\n\nSENT = 4096"),),
        files={"parts.py": "TIME = 1.4\n"},
    ),
    Pull(
        "a stored result is slower, no lines",
        differ={"regressed": "test_stored", **FIGURE},
        lines="none",
        files={"data/stored.json": STORED.replace("1.0", "1.4")},
    ),
    Pull("a test is renamed", (1, 4), says=("perfgate::dropped",), swaps=((T, "test_times", "test_time_of_it"),)),
    Pull(
        "a test moves to another file, and the kernel is slower",
        differ=regressed("test_sent"),
        says=("perfgate::dropped",),
        slower=1.4,
        swaps=((T, RECORDED, ""),),
        files={"tests/test_new.py": f"import kern\nimport pytest\n\n{RECORDED}"},
    ),
    Pull(
        "all tests move to another file, no lines",
        (1, 4),
        FIGURE,
        lines="none",
        files={T: None, "tests/test_new.py": TESTS},
    ),
    Pull(
        "one parameter is dropped and another added",
        (1, 4),
        says=("perfgate::dropped", "test_sized[a/b: c]"),
        swaps=((T, "[1, 2]", "[3, 2]"), (T, "a/b: c", "three")),
    ),
    Pull("a parameter is added", (0, 0), swaps=((T, '[1, 2], ids=["a/b: c"', '[1, 3, 2], ids=["a/b: c", "three"'),)),
    Pull(
        "all are skipped by a hook",
        (1, 4),
        {"not measured": ALL},
        ("perfgate::skipped", HEADING),
        files={"tests/conftest_of_all.py": SKIP_ALL},
        swaps=((SETTLED, "testpaths", 'addopts = "-p tests.conftest_of_all"\ntestpaths'),),
    ),
    Pull(
        "the same, no lines",
        (0, 0),
        {"not measured": ALL},
        (HEADING, "pytest_collection_modifyitems"),
        lines="none",
        slower=10.0,
        swaps=(("conftest.py", "SIMULATED = ", f"{SKIP_ALL}\n\nSIMULATED = "),),
    ),
    Pull(
        "the body of a test says that it fails, no lines",
        (1, 1),
        {"not measured": "test_bound", **FIGURE, **regressed()},
        (HEADING, f"edited test    {T}::test_bound"),
        lines="none",
        slower=10.0,
        swaps=((T, "def test_bound(perfgate):\n", "def test_bound(perfgate):\n    pytest.xfail('later')\n"),),
    ),
    Pull(
        "a limit on a slowdown becomes one on a time",
        (1, 1),
        {"regressed": TIMED.replace("test_times ", "") + " test_sent"},
        (HEADING, "slowdown <= 5% -> none"),
        slower=1.4,
        swaps=((T, RECORDED, RECORDED.replace("slowdown <= 5%", "time <= 1s")),),
    ),
    Pull(
        "a test loses marker and fixture, no lines",
        (1, 1),
        {"regressed": TIMED.replace("test_times ", ""), **FIGURE},
        (HEADING, f"removed test   {T}::test_times"),
        lines="none",
        slower=1.4,
        swaps=((T, RECORDED, "\ndef test_times():\n    kern.times()\n"),),
    ),
    Pull("all tests go, no lines", (0, 0), {}, (HEADING, f"{T}::test_bound: gone"), lines="none", files={T: GONE}),
    Pull("all tests go", (1, 4), {}, ("perfgate::dropped",), files={T: GONE}),
    Pull(
        "work= is added and the kernel is slower",
        differ=regressed("test_sent"),
        says=(HEADING, f"edited test    {T}::test_call"),
        slower=1.4,
        swaps=((T, "nanoseconds()))", 'nanoseconds()), work=work.items(5, "x"))'), (T, "import pytest\n", WORK)),
    ),
    Pull(
        "a line is made faster by hand",
        (0, 0),
        swaps=((LINES, "'test_times': {time: 1.0010ms", "'test_times': {time: 0.9ms"),),
    ),
    Pull("the lines are deleted", (1, 4), says=("taken away", HEADING), files={LINES: None}),
    Pull(
        "the lines are deleted and the kernel is slower",
        differ=regressed("test_sent"),
        says=("taken away", HEADING),
        slower=1.4,
        files={LINES: None},
    ),
    Pull(
        "a floor is set above the slowdown",
        differ={"regressed": f"{OF_TIMES} test_sent"},
        says=(HEADING, "floor"),
        slower=1.4,
        swaps=((SETTLED, "budget", 'floor = "1 s"\nbudget'),),
    ),
    Pull(
        "builds are made to fail",
        differ={"suspect": TIMED, "regressed": "test_sent", "undecided": "test_stored"},
        says=(HEADING, "build"),
        slower=1.4,
        swaps=((SETTLED, "budget", 'build = "false"\nbudget'),),
    ),
    *(
        Pull(f"{call} in a conftest, lines: {lines}", (code, 12), {}, (f"called {call}",), lines, files={CONF: text})
        for call, text, code in (
            ("sys.exit(0)", "import sys\nsys.exit(0)\n", 4),
            ("os._exit(0)", "import os\nos._exit(0)\n", 1),
        )
        for lines in ("base", "none")
    ),
    Pull(
        "a new kernel and its test",
        (1, 4),
        {"unbaselined": "test_fresh"},
        swaps=((K, "\n\ndef sent", f"{NEW_KERNEL}\n\ndef sent"), (T, RECORDED, RECORDED + FRESH)),
    ),
    Pull(
        "a new test of a kernel that is slower",
        differ={**regressed("test_sent", "test_fresh")},
        slower=1.4,
        swaps=((T, RECORDED, RECORDED + FRESH.replace("kern.fresh", "kern.times")),),
    ),
    Pull("no base in the clone", (1, 4), says=("perfgate::no merge base",), after=NO_BASE),
    Pull(
        "no base in the clone, slower",
        differ={**regressed("test_sent"), "broken": "test_bound"},
        says=("perfgate::no merge base",),
        slower=10.0,
        after=NO_BASE,
    ),
    Pull("the merge of a slower kernel", differ=regressed("test_sent"), slower=1.4, after=MERGED),
)
FAST = {
    "nothing but the first lines",
    "slower 1000.0 times, lines: came",
    "the same, no lines",
    "all tests go, no lines",
    "sys.exit(0) in a conftest, lines: none",
    "os._exit(0) in a conftest, lines: none",
}
"""Rows of every run; the others take a minute or two together."""


def table(pulls: Iterable[Pull]) -> list[object]:
    return [pytest.param(one, id=one.name, marks=() if one.name in FAST else [SLOW]) for one in pulls]


def commit(root: Path) -> None:
    git(root, "add", "-A")
    git(root, "-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-qm", "one", "--allow-empty")


@pytest.fixture(scope="module")
def origins(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Bare repositories of one suite, with accepted lines ("base") and without ("none")."""
    folder = tmp_path_factory.mktemp("origins")
    (folder / "none").mkdir()
    project = Project(folder / "none")
    project.configure(SETTINGS, INI)
    contents = {"conftest.py": CONFTEST, K: KERN, "libs/dep.py": "MORE = 1.0\n", T: TESTS, "data/stored.json": STORED}
    for name, text in {**contents, ".gitignore": ".perfgate/\n__pycache__/\njunit.xml\n"}.items():
        project.write(name, text)
    git(project.root, "init", "-qb", "main")
    commit(project.root)
    shutil.copytree(project.root, folder / "base")
    project.root = folder / "base"
    assert project.run("--perfgate=full").code == 0
    command = "from pytest_perfgate.cli import main; main(['accept', '--new', '--reason', 'first'])"
    forked(("-c", command), project.root, inherited())
    commit(project.root)
    for name in ("base", "none"):
        git(folder, "clone", "-q", "--bare", name, f"{name}.git")
    return folder


def proposed(pull: Pull, origins: Path, root: Path) -> Project:
    """A clone with one commit on a branch."""
    origin = origins / f"{'base' if pull.lines == 'base' else 'none'}.git"
    git(origins, "clone", "-q", str(origin), str(root))
    git(root, "checkout", "-qb", "change")
    project = Project.__new__(Project)
    project.root = root
    if pull.lines in {"came", "reasoned"}:
        shutil.copytree(origins / "base" / "baselines", root / "baselines")
        for file in root.glob("baselines/*/tests/*.yaml"):
            text = scaled(file.read_text(encoding="utf-8"), pull.slower)
            file.write_text(text if pull.lines == "reasoned" else text.replace(', why: "first"', ""), encoding="utf-8")
    swap(root / K, "1.0, 4096", f"{pull.slower}, {int(4096 * pull.slower)}")
    for name, text in pull.files.items():
        if text is None:
            (root / name).unlink()
        else:
            project.write(name, text)
    for name, old, new in pull.swaps:
        swap(root / name, old, new)
    commit(root)
    for words in pull.after:
        git(root, *words.split())
    return project


def scaled(lines: str, by: float) -> str:
    """Lines as the slower code would have been accepted; what is stored in a file stays as it is."""
    slower = re.sub(r"time: ([0-9.]+)", lambda match: f"time: {by * float(match[1]):.5g}", lines)
    slower = slower.replace("sent: 4KiB", f"sent: {int(4096 * by)}B")
    stored = r"(?m)^  'test_stored'.*$"
    return re.sub(stored, re.findall(stored, lines)[0], slower) if "'test_stored'" in lines else slower


def outcomes(project: Project) -> dict[str, str]:
    """The worst outcome of each case of the last record."""
    try:
        return {case.key.test_id: case.worst.value for case in Records(project.root).read().cases}
    except PerfgateError:
        return {}


@pytest.mark.parametrize("pull", table(PULLS))
def test_how_each_pull_request_ends(pull: Pull, origins: Path, tmp_path: Path) -> None:
    project = proposed(pull, origins, tmp_path / "clone")
    run: Run = project.run("-q", ci=True, builds=True, **CI)
    text = " ".join(run.text.split())
    assert [words for words in pull.says if " ".join(words.split()) not in text] == [], run.text
    differ = {case: outcome for case, outcome in outcomes(project).items() if outcome != "passed"}
    expected = {name: outcome for outcome, names in pull.differ.items() for name in names_of(names)}
    assert differ == expected, run.text
    assert (run.code, reported(project)) == pull.ends, run.text


def names_of(names: str) -> list[str]:
    """The tests of a text, whose ids have blanks."""
    return [f"test_{name.strip()}" for name in f" {names}".split(" test_")[1:]]
