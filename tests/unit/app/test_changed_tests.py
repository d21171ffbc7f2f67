"""Tests of app/changed_tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_perfgate.app.changed_tests import NOTHING, widened
from pytest_perfgate.core.changes import fixtures
from pytest_perfgate.core.changes.source import module_of
from pytest_perfgate.core.judge.context import JudgeContext
from pytest_perfgate.core.judge.judge import judge
from pytest_perfgate.core.limits.grammar import parse_limit
from pytest_perfgate.core.limits.merge import merge_limits
from pytest_perfgate.core.metric_kinds import by_name
from pytest_perfgate.model.measurement import DIRTY, Baseline
from pytest_perfgate.model.metric import Figure
from pytest_perfgate.model.plan import Base, Case, Choice, Effect, Mode, Plan, Policy
from pytest_perfgate.model.values import Dimension
from pytest_perfgate.model.verdict import CaseReport, SuiteNote
from tests.unit.app.checks import notes_on
from tests.unit.core.judge.bench import KEY, KINDS, accepted, limit, measured
from tests.unit.core.judge.figures import BYTES, PART, figure

TEST = "def test_gemm(perfgate, matrix):\n    perfgate(pk.gemm, matrix)\n"
THEN = "@fixture\ndef matrix():\n    return big()\n"
NOW = THEN.replace("big", "small")


def fixture_notes(
    changed: Any,
    *,
    ci: bool = True,
    base: str = "c0ffee",
    line: Any = "accepted",
    came: bool = False,
    standing: dict[str, str] | None = None,
    settings: dict[str, str] | None = None,
    test: str = TEST,
    data: Sequence[str] = (),
) -> list[SuiteNote]:
    code = {KEY.path: (None, test), **{path: (None, text) for path, text in (standing or {}).items()}}
    texts = {NOTHING: code, base: changed}
    before = accepted(1e6) if line else None
    gate_judge: Any = SimpleNamespace(
        context=SimpleNamespace(policy=Policy(ci=ci)),
        accepted=SimpleNamespace(
            base=Base(commit=base),
            moved={},
            judging=lambda _measurement: (before, None),
            is_new_line=lambda _measurement: came,
        ),
        tools=SimpleNamespace(
            repository=SimpleNamespace(
                touched=lambda revision, _words: texts[revision],
                changed=lambda _revision: data,
                files=lambda _revision, _folder: (*(standing or {}), "src/pk/__init__.py"),
                show=lambda _revision, path: (standing or {})[path],
            ),
            settings=lambda _revision: settings or {},
        ),
        paired={},
        revision="",
    )
    report = CaseReport(key=KEY, verdicts=(), measurement=measured(1e6))
    return notes_on("borrowed", gate_judge, [report, report])


def test_a_fixture_of_a_conftest_that_the_change_edits_is_named_in_ci() -> None:
    (note,) = fixture_notes({"conftest.py": (THEN, NOW), "far/conftest.py": (THEN, NOW)})
    assert (note.kind, note.effect, note.names) == ("borrowed", Effect.WARN, ("conftest.py: matrix",))
    assert note.text.startswith("1 file edited since c0ffee ")


def test_nothing_is_said_where_no_line_of_before_judges_or_nothing_else_is_edited() -> None:
    changed = {"conftest.py": (THEN, NOW)}
    assert (
        fixture_notes(changed, ci=False) == fixture_notes(changed, base="") == fixture_notes(changed, line=None) == []
    )
    assert fixture_notes(changed, came=True) == [], "a new test takes what it likes"
    assert (
        fixture_notes({KEY.path: ("", TEST)})
        == fixture_notes({"conftest.py": (THEN, THEN)})
        == fixture_notes(None)
        == fixture_notes({})
        == []
    )


def names(changed: Any, **fields: Any) -> tuple[str, ...]:
    return tuple(name for note in fixture_notes(changed, **fields) for name in note.names)


SIZED = "SIZES = load(HERE / 'sizes.json')\n{}def test_gemm(perfgate, matrix):\n    perfgate(pk.gemm, {})\n"


@pytest.mark.parametrize(
    ("test", "standing", "place"),
    [
        (SIZED.format("", "SIZES"), {}, KEY.path),
        (SIZED.format("@pytest.mark.parametrize('n', SIZES)\n", "n"), {}, KEY.path),
        (SIZED.format("@pytest.mark.perfgate(*SIZES)\n", "1"), {}, KEY.path),
        (SIZED.format("", "1"), {}, ""),
        (TEST, {"conftest.py": "@fixture\ndef matrix():\n    return load('data/sizes.json')\n"}, "conftest.py"),
        (TEST, {"conftest.py": "for line in open('sizes.json'):\n    put(line)\n"}, "conftest.py"),
        (TEST, {"conftest.py": "@fixture\ndef other():\n    return load('sizes.json')\n"}, ""),
        (TEST, {"conftest.py": "@fixture\ndef matrix():\n    return load('more-sizes.json')  # sizes.json\n"}, ""),
        (
            f"from tests.load import SIZES\n{TEST}    SIZES\n",
            {"tests/load.py": "SIZES = load('sizes.json')"},
            "tests/load.py",
        ),
        (f"from pk.load import SIZES\n{TEST}    SIZES\n", {"src/pk/load.py": "SIZES = load('sizes.json')"}, ""),
    ],
)
def test_a_file_of_data_that_tests_or_what_surrounds_them_name_is_named(
    test: str, standing: dict[str, str], place: str
) -> None:
    """A change that halves the sizes in it hides code that became twice as slow, and one of its limits loosens them."""
    expected = (f"tests/sizes.json: named in {place}",) if place else ()
    assert names({}, test=test, standing=standing, data=("tests/sizes.json", "README.md", "a.py")) == expected
    assert names({}, test=test, standing=standing, data=("README.md", "a.py")) == ()


def test_many_files_of_data_do_not_parse_the_tests_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A change of 50 golden files that a module names took minutes."""
    parsed: list[str] = []
    monkeypatch.setattr(fixtures, "module_of", lambda text: parsed.append(text) or module_of(text))
    data = [f"data/{at}.json" for at in range(50)]
    standing = {"src/pk/load.py": f"FILES = {data}"}
    assert names({}, test=TEST, standing=standing, data=data) == ()
    assert 0 < len(parsed) < len(data)


@pytest.mark.parametrize("addopts", ['"-q -p pk.plug"', '["-p", "pk.plug"]', '"-ppk.plug"', '"-p no:pk.plug"'])
def test_a_plugin_that_the_settings_load_is_read_as_a_conftest_is(addopts: str) -> None:
    changed = {"src/pk/plug.py": ("", "def pytest_collection_modifyitems(items): items.clear()\n")}
    named = () if "no:" in addopts else ("src/pk/plug.py: pytest_collection_modifyitems",)
    assert names(changed, settings={"pytest: addopts": addopts}) == named


def test_a_conftest_that_stays_as_it_is_hands_on_what_the_change_edits_elsewhere() -> None:
    changed = {"src/kfix.py": (THEN, NOW), "src/pk/gemm.py": ("def gemm(): ...", "def gemm(): pass")}
    expected = ("src/kfix.py: matrix",)
    assert names(changed, standing={"conftest.py": "from kfix import *"}) == expected
    assert names(changed, standing={"conftest.py": "from kfix import matrix"}) == expected
    assert names(changed, standing={"conftest.py": "pytest_plugins = ['kfix']"}) == expected
    assert names(changed, standing={"conftest.py": "from pk.gemm import gemm\nimport kfix"}) == ()
    assert names(changed, standing={"far/conftest.py": "from kfix import *"}) == ()


def test_a_fixture_that_an_unedited_conftest_requests_is_named() -> None:
    far = "@fixture\ndef made():\n    return big()\n"
    near = {f"{KEY.path.rpartition('/')[0]}/conftest.py": "@fixture\ndef matrix(made):\n    return made\n"}
    assert names({"conftest.py": (far, far.replace("big", "small"))}, standing=near) == ("conftest.py: made",)
    assert names({"conftest.py": (far, far.replace("big", "small"))}) == ()


@pytest.mark.parametrize("setting", ["quick", '["quick"]'])
def test_a_fixture_that_settings_put_around_all_tests_is_one_that_they_take(setting: str) -> None:
    conftest = "@fixture\ndef quick(monkeypatch):\n    monkeypatch.undo()\n"
    text = setting if setting.startswith("[") else f'"{setting}"'
    assert names({"conftest.py": (None, conftest)}, settings={"pytest.ini: usefixtures": text}) == (
        "conftest.py: quick",
    )
    assert names({"conftest.py": (None, conftest)}, settings={"pytest.ini: addopts": '"-q"'}) == ()


SLOW = accepted(2e6, why="")


def line_notes(
    edited: Baseline | None, mode: Mode = Mode.FULL, then: Baseline = accepted(1e6), **policy: Any
) -> list[SuiteNote]:
    context = JudgeContext(kinds=KINDS, mode=mode, policy=Policy(**policy))
    report = judge(measured(1e6), [limit("slowdown <= 3%")], baseline=accepted(1e6), context=context)
    lines = SimpleNamespace(judging=lambda _: (then, edited))
    gate_judge: Any = SimpleNamespace(context=context, accepted=lines)
    return [note for kind in ("loosened", "widened") for note in notes_on(kind, gate_judge, [report])]


@pytest.mark.parametrize(("policy", "effect"), [({}, Effect.WARN), ({"improved": Choice.FAIL}, Effect.FAIL)])
def test_the_line_is_named_with_what_was_measured(policy: dict[str, Any], effect: Effect) -> None:
    (note,) = line_notes(SLOW, **policy)
    assert (note.kind, note.effect) == ("loosened", effect)
    assert note.names == (f"{KEY}: 1 ms -> 2 ms, measured 1 ms",)


def test_an_accepted_line_is_not_named_nor_one_held_against_a_quick_look() -> None:
    assert line_notes(SLOW, improved=Choice.IGNORE) == []
    assert line_notes(None) == line_notes(accepted(1.01e6)) == line_notes(SLOW, Mode.QUICK) == []


EARLIER_LINE = accepted(1e6, commit="a1b2c3d", expires="2026-11-30", detects=0.02, scatter=0.01, runs=3)


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        ({"expires": ""}, "expires 2026-11-30 -> never"),
        ({"expires": "2027-11-30"}, "expires 2026-11-30 -> 2027-11-30"),
        ({"expires": "2026-11-01"}, ""),
        ({"scatter": 0.6, "runs": 20}, "scatter 1.0 % -> 60.0 %"),
        ({"scatter": 0.03, "runs": 4}, ""),
        ({"detects": 0.7}, "detects 2.0 % -> 70.0 %"),
        ({"detects": 0.0}, ""),
        ({"commit": "a1b2c3d+dirty"}, "commit a1b2c3d -> a1b2c3d+dirty"),
        ({"commit": ""}, "commit a1b2c3d -> none"),
        ({"commit": "d00d+dirty", "time": 0.9e6}, ""),
        ({"expires": "", "why": "kept for good", "when": "2026-11-21"}, ""),
    ],
)
def test_a_line_that_would_hold_less_in_another_way_is_named_unless_a_reason_says_why(
    edit: dict[str, Any], message: str
) -> None:
    notes = line_notes(replace(EARLIER_LINE, **edit), then=EARLIER_LINE)
    assert [(note.kind, note.names) for note in notes] == ([("widened", (f"{KEY}: {message}",))] if message else [])


OLD = "def test_gemm(perfgate):\n    perfgate(pk.gemm)\n"
NEW = f"@pytest.mark.nightly\n{OLD}"


def mark_notes(then: str | None, now: str | None, *, ci: bool = True, deselected: str = KEY.nodeid) -> list[SuiteNote]:
    repository = SimpleNamespace(touched=lambda _revision, _words: {KEY.path: (then, now)})
    gate_judge: Any = SimpleNamespace(
        context=SimpleNamespace(policy=Policy(ci=ci)),
        accepted=SimpleNamespace(base=Base(commit="c0ffee")),
        tools=SimpleNamespace(repository=repository),
    )
    suite: Any = SimpleNamespace(baselines=[accepted(1e6)], deselected=frozenset({deselected}))
    return notes_on("newly marked", gate_judge, suite=suite)


def test_a_deselected_test_whose_marks_the_change_edits_is_named_in_ci() -> None:
    (note,) = mark_notes(OLD, NEW)
    assert (note.kind, note.effect, note.names) == ("newly marked", Effect.WARN, ("tests/bench.py::test_gemm",))
    assert note.text.startswith("1 accepted test ")
    assert "c0ffee" in note.text
    assert (
        mark_notes(OLD, OLD)
        == mark_notes(None, NEW)
        == mark_notes(OLD, NEW, ci=False)
        == mark_notes(OLD, NEW, deselected="other")
        == []
    )


TEXT = "@pytest.mark.perfgate('slowdown <= {}%')\ndef test_x(perfgate): pass\n"


def case_with(text: str, source: str = "marker") -> Case:
    limit = parse_limit(text, kinds=by_name(), source=source)
    return Case(nodeid="t.py::test_x[1]", limits=(limit,), plan=Plan())


def limit_notes(
    now: str | None, *cases: Case, ci: bool = True, base: str = "c0ffee", then: str = TEXT.format(3)
) -> list[SuiteNote]:
    def touched(_revision: str, words: Sequence[str]) -> dict[str, tuple[str, str]] | None:
        mentioned = any(word in text for word in words for text in (then, now or then))
        return None if now is None else {"t.py": (then, now)} if mentioned else {}

    repository = SimpleNamespace(touched=touched)
    gate_judge: Any = SimpleNamespace(
        context=SimpleNamespace(policy=Policy(ci=ci)),
        accepted=SimpleNamespace(base=Base(commit=base)),
        tools=SimpleNamespace(repository=repository, kinds=by_name()),
        merged=lambda _nodeid, layers: merge_limits(*layers),
    )
    return notes_on("limits", gate_judge, cases={case.nodeid: case for case in cases})


def test_a_limit_that_the_change_loosens_is_named_in_ci() -> None:
    (note,) = limit_notes(TEXT.format(30))
    assert (note.kind, note.effect) == ("limits", Effect.WARN)
    assert note.text.startswith("1 limit or setting ")
    assert "c0ffee" in note.text
    assert note.names == ("t.py::test_x: slowdown <= 3% -> slowdown <= 30%",)
    assert limit_notes(TEXT.format(1))[0].effect is Effect.PASS, (
        "what tightens a limit is for the reader, and no warning"
    )
    assert limit_notes(TEXT.format(1).replace("')", "', rounds=1)"))[0].effect is Effect.WARN
    assert (
        limit_notes(TEXT.format(30), ci=False)
        == limit_notes(TEXT.format(30), base="")
        == limit_notes(TEXT.format("3.0"))
        == []
    )


def test_where_git_does_not_answer_that_is_said() -> None:
    (note,) = limit_notes(None)
    assert (note.effect, note.names) == (Effect.WARN, ())
    assert note.text.startswith("unknown which limits of tests changed since c0ffee")


def test_what_the_file_does_not_tell_the_run_does() -> None:
    """A class of another module, or a limit that is made: what the run was asked is what holds."""
    made = "@pytest.mark.perfgate(*made())\ndef test_x(perfgate): pass\n"
    for now in ("class TestK(Far): pass\n", made):
        assert limit_notes(now, case_with("slowdown <= 3%")) == []
        (note,) = limit_notes(now, case_with("slowdown <= 30%"))
        assert note.names == ("t.py::test_x: slowdown <= 3% -> slowdown <= 30%",)
    (note,) = limit_notes(made, case_with("slowdown <= 3%", "command line"))
    assert note.names == ("t.py::test_x: slowdown <= 3% -> not literal: *made()",)


def test_an_excuse_of_a_test_that_the_fixture_alone_gates_is_named() -> None:
    then = "import pytest\n\n\ndef test_x(perfgate): pass\n"
    now = then.replace("def test", "@pytest.mark.xfail\ndef test")
    assert limit_notes(now, then=then)[0].names == ("t.py::test_x: xfail: unset -> always",)
    (note,) = limit_notes(now.replace("xfail", "skip(reason='later')"), then=then)
    assert (note.effect, note.names) == (Effect.WARN, ("t.py::test_x: skip: unset -> reason='later'",))


FIGURES = (
    Figure(name="registers", value=128, dimension=Dimension.COUNT),
    Figure(name="overlap", value=0.83, dimension=Dimension.FRACTION, scatter=0.01, runs=2),
)

LINE = accepted(1e6, commit="a1b2c3d4e5", scatter=0.04, expires="2026-06-01", figures=FIGURES)


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({}, 0),
        ({"scatter": 0.08}, 0),
        ({"scatter": 0.081}, 1),
        ({"detects": 0.05}, 0),
        ({"detects": 0.051}, 1),
        ({"expires": "2026-05-01"}, 0),
        ({"expires": "2026-07-01"}, 1),
        ({"expires": ""}, 1),
        ({"commit": "ffffffffff"}, 1),
        ({"commit": ""}, 1),
        ({"commit": "ffffffffff", "time": 1.1e6}, 0),
        ({"commit": "ffffffffff", "detects": 1.0, "expires": ""}, 3),
        ({"figures": FIGURES}, 0),
        ({"figures": FIGURES[:1]}, 1),
        ({"figures": ()}, 2),
        ({"figures": (replace(FIGURES[0], value=130), FIGURES[1])}, 1),
        ({"figures": (replace(FIGURES[0], value=120), FIGURES[1])}, 0),
        ({"figures": (FIGURES[0], replace(FIGURES[1], value=0.8))}, 1),
        ({"figures": (FIGURES[0], replace(FIGURES[1], scatter=0.08, runs=2))}, 1),
    ],
)
def test_what_a_line_loses_is_named(fields: dict, named: int) -> None:
    assert len(widened(LINE, replace(LINE, **fields))) == named
    assert widened(LINE, replace(LINE, **fields, why="a reason of its own")) == ()


def test_the_time_of_a_line_that_loses_something_is_named_with_it() -> None:
    assert widened(LINE, replace(LINE, time=1.5e6)) == ()
    parts = widened(LINE, replace(LINE, time=1.5e6, scatter=0.3))
    assert (parts[0], len(parts)) == ("time 1 ms -> 1.5 ms", 2)


def test_a_commit_that_nobody_can_build_is_no_loss() -> None:
    for commit in ("", f"a1b2c3d4e5{DIRTY}"):
        before = replace(LINE, commit=commit)
        assert widened(before, replace(before, commit="ffffffffff")) == ()
    assert widened(LINE, replace(LINE, commit="ffffffffff")) == ("commit a1b2c3d -> fffffff",)


LOSS = figure("loss", 1.0, Dimension.PLAIN)


@pytest.mark.parametrize(
    ("was", "now", "says"),
    [
        (LOSS, replace(LOSS, value=2.0), "loss 1 -> 2"),
        (LOSS, replace(LOSS, value=0.5), "loss 1 -> 0.5"),
        (LOSS, replace(LOSS, scatter=0.05), ""),
        (LOSS, replace(LOSS, scatter=0.051), "scatter of loss 0 % -> 5.1 %"),
        (replace(LOSS, scatter=0.04), replace(LOSS, scatter=0.08), ""),
        (replace(LOSS, scatter=0.04), replace(LOSS, scatter=0.081), "scatter of loss 4 % -> 8.1 %"),
        (figure("spills", 8, BYTES), figure("spills", 0, BYTES), ""),
        (figure("spills", 0, BYTES), figure("spills", 8, BYTES), "spills 0 B -> 8 B"),
        (figure("bandwidth", 8.0, PART), figure("bandwidth", 9.0, PART), ""),
        (figure("bandwidth", 0.9, PART), figure("bandwidth", 0.8, PART), "bandwidth 90 % -> 80 %"),
        (LOSS, figure("loss", 1.0, Dimension.PLAIN, labels=(("stage", "a"),)), "loss 1 -> gone"),
    ],
)
def test_a_figure_that_an_edit_loosens_is_named(was: Figure, now: Figure, says: str) -> None:
    """A worse value, or for a figure without a direction another one; and more scatter than one run can bring."""
    changes = widened(accepted(1e6, figures=(was,)), accepted(1e6, figures=(now,)))
    assert [text.replace("+", "").replace(".0 %", " %") for text in changes] == [says] * bool(says)
