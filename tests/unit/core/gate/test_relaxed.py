"""Limits that a change takes away or changes, told by both versions of its test files."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from pytest_perfgate.core.changes.limits import relaxed
from pytest_perfgate.core.changes.marks import marked
from pytest_perfgate.core.limits.grammar import parse_limit
from pytest_perfgate.core.limits.merge import merge_limits
from pytest_perfgate.core.metric_kinds import by_name
from pytest_perfgate.model.plan import Limit

KINDS = by_name()
DEFAULT = (parse_limit("slowdown <= 3%", kinds=KINDS, source="default"),)
TEST = "def test_x(perfgate): pass\n"


def merged(_nodeid: str, layers: Sequence[Sequence[Limit]]) -> tuple[Limit, ...]:
    return merge_limits(*layers) or DEFAULT


def told(then: str, now: str, **others: tuple[str | None, str | None]) -> list[str]:
    texts = {"t.py": (then, now), **{f"{name}.py": both for name, both in others.items()}}
    return [text.removeprefix("t.py::test_x: ") for text in relaxed(texts, KINDS, merged)]


def mark(*words: str, test: str = TEST, before: str = "") -> str:
    return f"import pytest\n{before}@pytest.mark.perfgate({', '.join(words)})\n{test}"


@pytest.mark.parametrize(
    ("then", "now", "said"),
    [
        (mark("'slowdown <= 3%'"), mark("'slowdown <= 30%'"), ["slowdown <= 3% -> slowdown <= 30%"]),
        (mark("'slowdown <= 3%'"), mark("'slowdown<=0.03'"), []),
        (mark("'time <= 1 ms'"), mark("'time <= 1000us'"), []),
        (mark("'time <= 1 ms'"), mark("'time < 1 ms'"), ["time <= 1 ms -> time < 1 ms"]),
        (mark("'mfu >= 55%'", "'slowdown <= 3%'"), mark("'slowdown <= 3%'"), ["mfu >= 55% -> none"]),
        (mark("'mfu >= 55%'"), TEST, ["mfu >= 55% -> none"]),
        (mark("'mfu >= 55%'", "'overlap >= 60%'"), mark("'overlap >= 60%'"), ["mfu >= 55% -> none"]),
        (mark("'slowdown <= 3%'"), TEST, []),
        (mark("'slowdown <= 3%'"), "", []),
        (mark("'time <= 1ms'"), "", ["time <= 1ms -> none"]),
        (mark("'time <= 1ms'"), "not python (", ["time <= 1ms -> none"]),
        ("not python (", mark("'time <= 1ms'"), []),
        (TEST, mark("'slowdown <= 30%'"), ["slowdown <= 3% -> slowdown <= 30%"]),
        (TEST, mark("'time <= 1 ms'", "'slowdown <= 3%'"), []),
        (mark("'time <= 1ms'"), mark("'time <= 1ms'", "on='H200*'"), ["time <= 1ms -> time <= 1ms on H200*"]),
        (mark("'time <= 1ms'", "rounds=3"), mark("'time <= 1ms'", "rounds=1"), ["rounds: 3 -> 1"]),
        (mark("'time <= 1ms'"), mark("'time <= 1ms'", "timer='host'"), ["timer: unset -> 'host'"]),
        (mark("LIMIT"), mark("f(LIMIT)"), ["limits not literal: LIMIT -> f(LIMIT)"]),
        (mark("f( LIMIT)"), mark("f(LIMIT)"), []),
        (mark("'time <= 1ms'"), mark("f(1)"), ["time <= 1ms -> not literal: f(1)"]),
        (mark("'tome <= 1ms'"), mark("'tome <= 2ms'"), ["limits not literal: tome <= 1ms -> tome <= 2ms"]),
        (
            mark("L", before="L = 'time <= 1ms'\n"),
            mark("L", before="L = 'time <= 2ms'\n"),
            ["time <= 1ms -> time <= 2ms"],
        ),
        (
            mark("*L", before="L = ('time <= 1ms', M)\n"),
            mark("*L", before="M='mfu >= 1%'\nL = ('time <= 1ms', M)\n"),
            ["limits not literal: M -> none"],
        ),
        (
            mark("'registers >= 32'", "'registers <= 128'"),
            mark("'registers <= 256'", "'registers >= 32'"),
            ["registers <= 128 -> registers <= 256"],
        ),
        (mark("'mfu >= 55%'"), mark("'mfu >= 60%'"), ["mfu >= 55% -> mfu >= 60%"]),
        (mark("'mfu >= 55%'"), mark("'mfu >= 50%'"), ["mfu >= 55% -> mfu >= 50%"]),
        (mark("'spills == 0'"), mark("'spills <= 0'"), ["spills == 0 -> none"]),
    ],
)
def test_a_limit_is_told_where_it_means_something_else(then: str, now: str, said: list[str]) -> None:
    assert told(then, now) == said


MODULE = "from pytest import mark\npytestmark = [mark.perfgate({}), mark.slow]\n@mark.perfgate('mfu >= {}')\nclass TestA:\n    def test_x(self, perfgate): pass\n    def free(self): pass\n"


def test_marks_of_the_module_and_the_class_count_and_the_closest_wins() -> None:
    then, now = MODULE.format("'time <= 1ms', 'mfu >= 90%'", "50%"), MODULE.format("'time <= 2ms'", "40%")
    assert told(then, now) == [
        "t.py::TestA::test_x: mfu >= 50% -> mfu >= 40%",
        "t.py::TestA::test_x: time <= 1ms -> time <= 2ms",
    ]
    assert told(MODULE.format("'mfu >= 90%'", "50%"), MODULE.format("'mfu >= 10%'", "50%")) == []
    assert list(marked(then)) == ["TestA::test_x"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("@pytest.mark.skip\n", "skip: unset -> always"),
        ("@pytest.mark.skip(reason='flaky')\n", "skip: unset -> reason='flaky'"),
        ("@pytest.mark.skipif(True, reason='flaky')\n", "skipif: unset -> True, reason='flaky'"),
        ("pytestmark = pytest.mark.xfail()\n", "xfail: unset -> always"),
        ("later = pytest.mark.xfail\n@later\n", "xfail: unset -> always"),
    ],
)
def test_an_excuse_that_a_gated_test_is_given_is_told(given: str, said: str) -> None:
    gated = mark("'time <= 1ms'", "rounds=3")
    excused = gated.replace("rounds=3", "rounds=2").replace("import pytest\n", f"import pytest\n{given}")
    assert told(gated, excused) == [said, "rounds: 3 -> 2"]
    assert told(excused, gated)[-1] == said.replace("unset -> ", "").replace(": ", ": ", 1) + " -> unset"
    assert told("def test_x(): pass\n", f"import pytest\n{given}def test_x(): pass\n") == []


def test_what_loosens_is_said_first() -> None:
    one = mark("'time <= 2ms'") + mark("'time <= 1ms'", test="def test_y(perfgate): pass\n")
    two = mark("'time <= 1ms'") + mark("'time <= 2ms'", test="def test_y(perfgate): pass\n")
    assert told(one, two) == ["t.py::test_y: time <= 1ms -> time <= 2ms", "time <= 2ms -> time <= 1ms"]


def test_a_test_that_moved_or_was_renamed_keeps_its_limits() -> None:
    then = mark("'time <= 1ms'")
    assert told(then, "", other=(None, then)) == []
    assert told(then, "", other=(None, mark("'time <= 2ms'"))) == ["other.py::test_x: time <= 1ms -> time <= 2ms"]
    assert told(then, "", other=(then, then)) == ["time <= 1ms -> none"]
    body = "def test_{}(perfgate):\n    perfgate(f, 3)\n"
    was = mark("'time <= 1ms'", test=body.format("x"))
    assert told(was, mark("'time <= 1ms'", test=body.format("y"))) == []
    assert told(was, mark("'time <= 2ms'", test=body.format("y"))) == ["t.py::test_y: time <= 1ms -> time <= 2ms"]


@pytest.mark.parametrize(
    "own",
    [
        "@pytest.mark.parametrize('n', [1, pytest.param(2, marks=pytest.mark.perfgate('time <= {}'))])\n" + TEST,
        "def test_x(perfgate):\n    perfgate(f, limits=['time <= {}'], name='2')\n",
    ],
)
def test_limits_of_a_parameter_and_of_a_call_are_closer_than_those_of_the_test(own: str) -> None:
    name = "[2]" if "param" in own else "#2"
    assert told(mark("'time <= 1ms'"), mark("'time <= 1ms'", test=own.format("3ms"))) == [
        f"t.py::test_x{name}: time <= 1ms -> time <= 3ms"
    ]
    then, now = (mark("'time <= 9ms'", test=own.format(bound)) for bound in ("3ms", "4ms"))
    assert told(then, now) == [f"t.py::test_x{name}: time <= 3ms -> time <= 4ms"]
    then, now = (mark(f"'mfu >= {mfu}'", test=own.format("3ms")) for mfu in ("5%", "4%"))
    assert told(then, now) == ["mfu >= 5% -> mfu >= 4%"], "said once, of the test"


def test_marks_may_have_names_and_lie_behind_a_condition_and_in_a_base_class() -> None:
    text = (
        "import pytest\ngate = pytest.mark.perfgate\nfast = gate('time <= {}', rounds=2)\ntry:\n"
        "  @fast\n  class TestA:\n    def test_x(self, perfgate): pass\nexcept E: pass\n"
        "class TestB(TestA):\n  pytestmark = gate('mfu >= 1%')\n@fast('mfu >= {}')\ndef test_x(perfgate): pass\n"
    )
    assert told(text.format("1ms", "5%"), text.format("2ms", "4%")) == [
        "t.py::TestA::test_x: time <= 1ms -> time <= 2ms",
        "t.py::TestB::test_x: time <= 1ms -> time <= 2ms",
        "mfu >= 5% -> mfu >= 4%",
        "time <= 1ms -> time <= 2ms",
    ]
