"""Tests of core/changes/limits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain

import pytest

from pytest_perfgate.core.changes.limits import LOOSER, relaxed
from pytest_perfgate.core.changes.marks import marked
from pytest_perfgate.core.limits.grammar import parse_limit
from pytest_perfgate.core.limits.merge import merge_limits
from pytest_perfgate.core.metric_kinds import by_name
from pytest_perfgate.model.plan import Limit
from tests.unit.core.judge.bench import accepted, verdict


def test_what_was_empty_is_said_to_have_been() -> None:
    then = accepted(1e6)
    empty = replace(then, identity=replace(then.identity, data=""))
    assert "data none ->" in verdict(baseline=empty).sentence


KINDS = by_name()
DEFAULT = (parse_limit("slowdown <= 3%", kinds=KINDS, source="default"),)
TEST = "def test_x(perfgate): pass\n"


def merged(_nodeid: str, layers: Sequence[Sequence[Limit]]) -> tuple[Limit, ...]:
    return merge_limits(*layers) or DEFAULT


def relaxed_limits(then: str, now: str, **others: tuple[str | None, str | None]) -> list[str]:
    texts = {"t.py": (then, now), **{f"{name}.py": both for name, both in others.items()}}
    return [text.removeprefix("t.py::test_x: ") for text in relaxed(texts, KINDS, merged)]


def mark(*words: str, test: str = TEST, before: str = "") -> str:
    return f"import pytest\n{before}@pytest.mark.perfgate({', '.join(words)})\n{test}"


@pytest.mark.parametrize(
    ("then", "now", "expected"),
    [
        (mark("'slowdown <= 3%'"), mark("'slowdown <= 30%'"), ["slowdown <= 3% -> slowdown <= 30%"]),
        (mark("'slowdown <= 3%'"), mark("'slowdown<=0.03'"), []),
        (mark("'time <= 1 ms'"), mark("'time <= 1000us'"), []),
        (mark("'time <= 1 ms'"), mark("'time < 1 ms'"), ["time <= 1 ms -> time < 1 ms"]),
        (mark("'mfu >= 55%'", "'slowdown <= 3%'"), mark("'slowdown <= 3%'"), ["mfu >= 55% -> none"]),
        (mark("'mfu >= 55%'"), TEST, ["mfu >= 55% -> none"]),
        (mark("'mfu >= 55%'", "'overlap >= 60%'"), mark("'overlap >= 60%'"), ["mfu >= 55% -> none"]),
        (mark("'slowdown <= 3%'"), TEST, []),
        (
            mark("'overlap(stage=a) >= 60%'"),
            mark("'overlap(stage=b) >= 60%'"),
            ["overlap(stage=a) >= 60% -> overlap(stage=b) >= 60%"],
        ),
        (
            mark("'overlap(stage=a) >= 60%'", "'overlap(stage=b) >= 60%'"),
            mark("'overlap(stage=b) >= 50%'"),
            ["overlap(stage=a) >= 60% -> none", "overlap(stage=b) >= 60% -> overlap(stage=b) >= 50%"],
        ),
        (
            mark("'registers <= 64'"),
            mark("'change(registers) <= 0'"),
            ["registers <= 64 -> none; new: change(registers) <= 0"],
        ),
        (mark("'slowdown <= 300%'"), mark("'time <= 200us'"), ["slowdown <= 300% -> none; new: time <= 200us"]),
        (mark("'slowdown <= 3%'"), "", []),
        (mark("'slowdown <= 3%'", "'time <= 1ms'"), "", ["slowdown <= 3% -> none", "time <= 1ms -> none"]),
        (mark("'time <= 1ms'"), "", ["time <= 1ms -> none"]),
        (mark("'time <= 1ms'"), "not python (", ["time <= 1ms -> none"]),
        ("not python (", mark("'time <= 1ms'"), []),
        (TEST, mark("'slowdown <= 30%'"), ["slowdown <= 3% -> slowdown <= 30%"]),
        (TEST, mark("'time <= 1 ms'", "'slowdown <= 3%'"), []),
        (mark("'time <= 1ms'"), mark("'time <= 1ms'", "on='H200*'"), ["time <= 1ms -> time <= 1ms on H200*"]),
        (mark("'time <= 1ms'", "rounds=3"), mark("'time <= 1ms'", "rounds=1"), ["rounds: 3 -> 1"]),
        (mark("'time <= 1ms'"), mark("'time <= 1ms'", "timer='host'"), ["timer: unset -> 'host'"]),
        (mark("LIMIT"), mark("f(LIMIT)"), ["limits that perfgate cannot read: LIMIT -> f(LIMIT)"]),
        (mark("f( LIMIT)"), mark("f(LIMIT)"), []),
        (mark("'time <= 1ms'"), mark("f(1)"), ["time <= 1ms -> not literal: f(1)"]),
        (mark("'own <= 1'"), mark("'own <= 2'"), ["own <= 1 -> own <= 2"]),
        (
            mark("'time <== 1ms'"),
            mark("'time <== 2ms'"),
            ["limits that perfgate cannot read: time <== 1ms -> time <== 2ms"],
        ),
        (
            mark("L", before="L = 'time <= 1ms'\n"),
            mark("L", before="L = 'time <= 2ms'\n"),
            ["time <= 1ms -> time <= 2ms"],
        ),
        (
            mark("*L", before="L = ('time <= 1ms', M)\n"),
            mark("*L", before="M='mfu >= 1%'\nL = ('time <= 1ms', M)\n"),
            ["limits that perfgate cannot read: M -> none"],
        ),
        (
            mark("'registers >= 32'", "'registers <= 128'"),
            mark("'registers <= 256'", "'registers >= 32'"),
            ["registers <= 128 -> registers <= 256"],
        ),
        (mark("'mfu >= 55%'"), mark("'mfu >= 60%'"), ["mfu >= 55% -> mfu >= 60%"]),
        (mark("'mfu >= 55%'"), mark("'mfu >= 50%'"), ["mfu >= 55% -> mfu >= 50%"]),
        (mark("'spills == 0'"), mark("'spills <= 0'"), ["spills == 0 -> none; new: spills <= 0"]),
    ],
)
def test_a_limit_is_told_where_it_means_something_else(then: str, now: str, expected: list[str]) -> None:
    assert relaxed_limits(then, now) == expected


MODULE = "from pytest import mark\npytestmark = [mark.perfgate({}), mark.slow]\n@mark.perfgate('mfu >= {}')\nclass TestA:\n    def test_x(self, perfgate): pass\n    def free(self): pass\n"


def test_marks_of_the_module_and_the_class_count_and_the_closest_wins() -> None:
    then, now = MODULE.format("'time <= 1ms', 'mfu >= 90%'", "50%"), MODULE.format("'time <= 2ms'", "40%")
    assert relaxed_limits(then, now) == [
        "t.py::TestA::test_x: mfu >= 50% -> mfu >= 40%",
        "t.py::TestA::test_x: time <= 1ms -> time <= 2ms",
    ]
    assert relaxed_limits(MODULE.format("'mfu >= 90%'", "50%"), MODULE.format("'mfu >= 10%'", "50%")) == []
    assert list(marked(then)) == ["TestA::test_x"]


@pytest.mark.parametrize(
    ("excuse", "change"),
    [
        ("@pytest.mark.skip\n", "skip: unset -> always"),
        ("@pytest.mark.skip(reason='flaky')\n", "skip: unset -> reason='flaky'"),
        ("@pytest.mark.skipif(True, reason='flaky')\n", "skipif: unset -> True, reason='flaky'"),
        ("pytestmark = pytest.mark.xfail()\n", "xfail: unset -> always"),
        ("later = pytest.mark.xfail\n@later\n", "xfail: unset -> always"),
    ],
)
def test_an_excuse_that_a_gated_test_is_given_is_told(excuse: str, change: str) -> None:
    gated = mark("'time <= 1ms'", "rounds=3")
    excused = gated.replace("rounds=3", "rounds=2").replace("import pytest\n", f"import pytest\n{excuse}")
    assert relaxed_limits(gated, excused) == [change, "rounds: 3 -> 2"]
    assert relaxed_limits(excused, gated)[-1] == change.replace("unset -> ", "").replace(": ", ": ", 1) + " -> unset"
    assert relaxed_limits("def test_x(): pass\n", f"import pytest\n{excuse}def test_x(): pass\n") == []


def test_what_loosens_is_said_first() -> None:
    one = mark("'time <= 2ms'") + mark("'time <= 1ms'", test="def test_y(perfgate): pass\n")
    two = mark("'time <= 1ms'") + mark("'time <= 2ms'", test="def test_y(perfgate): pass\n")
    assert relaxed_limits(one, two) == ["t.py::test_y: time <= 1ms -> time <= 2ms", "time <= 2ms -> time <= 1ms"]


def test_a_test_that_moved_or_was_renamed_keeps_its_limits() -> None:
    then = mark("'time <= 1ms'")
    assert relaxed_limits(then, "", other=(None, then)) == []
    assert relaxed_limits(then, "", other=(None, mark("'time <= 2ms'"))) == [
        "other.py::test_x: time <= 1ms -> time <= 2ms"
    ]
    assert relaxed_limits(then, "", other=(then, then)) == ["time <= 1ms -> none"]
    body = "def test_{}(perfgate):\n    perfgate(f, 3)\n"
    was = mark("'time <= 1ms'", test=body.format("x"))
    assert relaxed_limits(was, mark("'time <= 1ms'", test=body.format("y"))) == []
    assert relaxed_limits(was, mark("'time <= 2ms'", test=body.format("y"))) == [
        "t.py::test_y: time <= 1ms -> time <= 2ms"
    ]


@pytest.mark.parametrize(
    "own",
    [
        "@pytest.mark.parametrize('n', [1, pytest.param(2, marks=pytest.mark.perfgate('time <= {}'))])\n" + TEST,
        "def test_x(perfgate):\n    perfgate(f, limits=['time <= {}'], name='2')\n",
    ],
)
def test_limits_of_a_parameter_and_of_a_call_are_closer_than_those_of_the_test(own: str) -> None:
    name = "[2]" if "param" in own else "#2"
    assert relaxed_limits(mark("'time <= 1ms'"), mark("'time <= 1ms'", test=own.format("3ms"))) == [
        f"t.py::test_x{name}: time <= 1ms -> time <= 3ms"
    ]
    then, now = (mark("'time <= 9ms'", test=own.format(bound)) for bound in ("3ms", "4ms"))
    assert relaxed_limits(then, now) == [f"t.py::test_x{name}: time <= 3ms -> time <= 4ms"]
    then, now = (mark(f"'mfu >= {mfu}'", test=own.format("3ms")) for mfu in ("5%", "4%"))
    assert relaxed_limits(then, now) == ["mfu >= 5% -> mfu >= 4%"], "said once, of the test"


def test_marks_may_have_names_and_lie_behind_a_condition_and_in_a_base_class() -> None:
    text = (
        "import pytest\ngate = pytest.mark.perfgate\nfast = gate('time <= {}', rounds=2)\ntry:\n"
        "  @fast\n  class TestA:\n    def test_x(self, perfgate): pass\nexcept E: pass\n"
        "class TestB(TestA):\n  pytestmark = gate('mfu >= 1%')\n@fast('mfu >= {}')\ndef test_x(perfgate): pass\n"
    )
    assert relaxed_limits(text.format("1ms", "5%"), text.format("2ms", "4%")) == [
        "t.py::TestA::test_x: time <= 1ms -> time <= 2ms",
        "t.py::TestB::test_x: time <= 1ms -> time <= 2ms",
        "mfu >= 5% -> mfu >= 4%",
        "time <= 1ms -> time <= 2ms",
    ]


TIGHTER = mark("'time <= {}'", test="def test_a(perfgate): pass\n")


def everything(_nodeid: str, layers: Sequence[Sequence[Limit]]) -> tuple[Limit, ...]:
    return tuple(chain.from_iterable(layers))


def parse_limits(*texts: str) -> tuple[Limit, ...]:
    return tuple(parse_limit(text, kinds=KINDS) for text in texts)


def loosens(then: str, now: str) -> bool:
    """Whether it is named before what tightens and stands first in the alphabet, as something that loosens."""
    changes = relaxed({"t.py": (TIGHTER.format("2ms") + then, TIGHTER.format("1ms") + now)}, KINDS, everything)
    assert len(changes) == 2, changes
    ranks = {("test_x" in text): rank for text, rank in changes.items()}
    assert next(iter(ranks)) is (ranks[True] < ranks[False])
    return ranks[True] == LOOSER


@pytest.mark.parametrize(
    ("then", "now"),
    [
        (["'mfu >= 55%'"], ["'mfu >= 50%'"]),
        (["'mfu > 5%'"], ["'mfu >= 5%'"]),
        (["'time < 1ms'"], ["'time <= 1ms'"]),
        (["'registers == 32'"], ["'registers == 64'"]),
        (["'registers == 32'"], ["'registers >= 16'"]),
        (["'registers >= 32'"], ["'registers == 64'"]),
        (["'time <= 1ms'"], ["'time <= 1ms'", "on='H200*'"]),
        (["'ncu(lts) <= 5us'"], ["'ncu(lts) <= 4'"]),
        (["'time <= 1ms'", "on='A100*'"], ["'time <= 0.5ms'", "on='H200*'"]),
        (["'time <= 1ms'", "on=('A*', 'B*')"], ["'time <= 1ms'", "on=('A*', 'C*')"]),
        (["'registers <= 128'"], []),
        (["'registers <= 128'"], ["'spills <= 0'"]),
        (["'time <= 1ms'"], []),
        (["LIMIT"], []),
    ],
)
def test_what_no_longer_fails_where_it_failed_is_loosened(then: list[str], now: list[str]) -> None:
    assert loosens(mark(*then), mark(*now))


@pytest.mark.parametrize(
    ("then", "now"),
    [
        (["'mfu >= 55%'"], ["'mfu >= 60%'"]),
        (["'mfu >= 5%'"], ["'mfu > 5%'"]),
        (["'time <= 1ms'"], ["'time < 1ms'"]),
        (["'time <= 1ms'", "on='H200*'"], ["'time <= 0.5ms'"]),
        (["'time <= 1ms'", "on=('A*', 'B*')"], ["'time <= 0.5ms'", "on=('A*', 'B*')"]),
        (["'time <= 1ms'", "rounds=3"], ["'time <= 1ms'", "rounds=1"]),
    ],
)
def test_what_still_fails_wherever_it_failed_is_not(then: list[str], now: list[str]) -> None:
    assert not loosens(mark(*then), mark(*now))


def test_a_test_that_is_gone_took_its_limits_along() -> None:
    assert loosens(mark("'time <= 1ms'"), "")


def test_of_several_limits_of_a_kind_the_one_for_the_same_devices_is_the_successor() -> None:
    then = mark("'time <= 1ms'", "on='B*'")
    now = mark("'time <= 3ms'", "on='A*'", test=mark("'time <= 2ms'", "on='B*'").replace("import pytest\n", ""))
    changes = relaxed({"t.py": (then, now)}, KINDS, everything)
    assert changes == {"t.py::test_x: time <= 1ms on B* -> time <= 2ms on B*": LOOSER}


def test_limits_are_merged_by_the_node_id_of_the_test() -> None:
    nodeids: set[str] = set()

    def merged(nodeid: str, layers: Sequence[Sequence[Limit]]) -> tuple[Limit, ...]:
        nodeids.add(nodeid)
        return everything(nodeid, layers)

    body = "def test_x(perfgate):\n    perfgate(f, limits=['time <= 3ms'], name='big')\n"
    relaxed({"t.py": (body, body)}, KINDS, merged)
    assert nodeids == {"t.py::test_x"}


def test_a_run_is_asked_only_where_the_file_does_not_tell() -> None:
    literal, other, explicit_selection = mark("'time <= 1ms'"), mark("'time <= 2ms'"), mark("f(1)")
    ran = {"t.py::test_x": [parse_limits("time <= 3ms")]}
    for then, now, expected in (
        (literal, literal, ()),
        (literal, other, ("t.py::test_x: time <= 1ms -> time <= 2ms",)),
        (literal, explicit_selection, ("t.py::test_x: time <= 1ms -> time <= 3ms",)),
        (explicit_selection, explicit_selection, ()),
        (
            mark("f(1)", "'mfu >= 5%'"),
            mark("f(2)", "'mfu >= 5%'"),
            ("t.py::test_x: limits that perfgate cannot read: f(1) -> f(2)",),
        ),
    ):
        assert tuple(relaxed({"t.py": (then, now)}, KINDS, everything, ran)) == expected


def test_settings_that_cannot_be_read_are_shown_as_they_are_written() -> None:
    assert relaxed_limits(mark("rounds=f(3)"), mark("rounds=f(4)")) == [
        "limits that perfgate cannot read: rounds=f(3) -> rounds=f(4)"
    ]
    assert relaxed_limits(mark("**GATE"), mark("**GATES")) == ["limits that perfgate cannot read: **GATE -> **GATES"]
    call = "def test_x(perfgate):\n    perfgate(f, limits=['time <= {}'], name=f'{{n}}')\n"
    assert relaxed_limits(call.format("1ms"), call.format("2ms")) == ["t.py::test_x#f'{n}': time <= 1ms -> time <= 2ms"]


def test_an_excuse_is_told_where_nothing_else_can_be_read() -> None:
    now = mark("f(1)", "rounds=2", test="@pytest.mark.skip\n" + TEST)
    assert relaxed_limits(mark("'time <= 1ms'", "rounds=3"), now) == [
        "skip: unset -> always",
        "time <= 1ms -> not literal: f(1)",
    ]


def test_a_renamed_test_is_known_beside_one_that_stayed() -> None:
    body = "def test_{}(perfgate):\n    perfgate({}, 3)\n"
    stays = mark("'time <= 1ms'", test=body.format("stays", "g"))
    was, now = (stays + mark("'time <= 1ms'", test=body.format(name, "f")) for name in ("x", "y"))
    assert relaxed_limits(was, now) == []


def test_a_mark_gates_a_test_that_asks_for_no_fixture() -> None:
    assert [*marked(mark("'time <= 1ms'", test="def test_x(): pass\n"))] == ["test_x"]
    assert [*marked("def test_x(): pass\n")] == []


def test_bases_of_other_files_and_of_the_same_name_are_none_of_this_file() -> None:
    text = "from base import TestA, Base\n@pytest.mark.perfgate('time <= 1ms')\nclass TestA(TestA, Base):\n    "
    assert [*marked(text + TEST)] == ["TestA::test_x"]


def test_only_names_are_assigned_what_a_mark_could_mean() -> None:
    text = "torch.backends.tf32 = True\nA, B = 1, 2\nL: str\nL = 'time <= 1ms'\nL: str\n" + mark("L")
    assert marked(text)["test_x"][0].limits == ("time <= 1ms",)


def test_a_file_that_is_gone_took_its_limits_along_and_another_that_has_the_test_is_looked_into() -> None:
    one = mark("'time <= 1ms'")
    lost = ("t.py::test_x: time <= 1ms -> none",)
    assert (*relaxed({"t.py": (one, None)}, KINDS, everything),) == lost
    assert (*relaxed({"t.py": (one, None), "new.py": (None, "x = 1\n")}, KINDS, everything),) == lost
    copied = {"t.py": (one, one), "new.py": (None, mark("'time <= 2ms'"))}
    assert not relaxed(copied, KINDS, everything)


def test_of_a_test_that_is_gone_the_limits_of_the_project_are_not_told() -> None:
    def merged(_nodeid: str, layers: Sequence[Sequence[Limit]]) -> tuple[Limit, ...]:
        return (*chain.from_iterable(layers), parse_limit("mfu >= 1%", kinds=KINDS, source="default"))

    assert [*relaxed({"t.py": (mark("'time <= 1ms'"), "")}, KINDS, merged)] == ["t.py::test_x: time <= 1ms -> none"]


def test_a_limit_that_another_replaces_on_some_devices_is_loosened_there() -> None:
    layered = mark("'time <= 9ms'", "on='A100*'", before="pytestmark = pytest.mark.perfgate('time <= 1ms')\n")
    alone = mark("'time <= 1ms'")
    assert relaxed_limits(alone, layered) == ["time <= 1ms -> time <= 1ms except on A100*"]
    assert relaxed_limits(layered, layered) == []
    assert [*relaxed({"t.py": (alone, layered)}, KINDS, lambda _nodeid, layers: merge_limits(*layers)).values()] == [
        LOOSER
    ]
    assert loosens(mark("'count(A) <= 5'"), mark("'count(A) <= 6'"))


def limits_of(text: str) -> dict[str, tuple[str, ...]]:
    return {name: tuple(chain.from_iterable(one.limits for one in marks)) for name, marks in marked(text).items()}


def test_a_mark_of_a_class_or_a_file_gates_tests_that_ask_for_no_fixture() -> None:
    text = "from pytest import mark\npytestmark = mark.perfgate('time <= 1ms')\ndef test_x(): pass\ndef made(): pass\n"
    assert limits_of(text) == {"test_x": ("time <= 1ms",)}


def test_only_parameters_and_the_fixture_bring_limits_of_their_own() -> None:
    template = "@pytest.mark.parametrize('n', [{}(2, marks=pytest.mark.perfgate('time <= 3ms'))])\n" + TEST
    assert "test_x[2]" in limits_of(f"import pytest\n{template.format('pytest.param')}")
    assert [*limits_of(f"import pytest\n{template.format('plain')}")] == ["test_x"]
    call = "def test_x(perfgate):\n    {}(f, limits=['time <= 3ms'], name='b')\n"
    assert [*limits_of(call.format("perfgate"))] == ["test_x", "test_x#b"]
    assert [*limits_of(call.format("plot"))] == ["test_x"]


def test_what_another_library_calls_a_skip_is_no_mark() -> None:
    assert relaxed_limits(mark("'time <= 1ms'"), mark("'time <= 1ms'", test="@unittest.skip\n" + TEST)) == []


def test_a_mark_that_is_called_once_more_keeps_its_devices() -> None:
    text = "from pytest import mark\nhopper = mark.perfgate(on='H200*')\n@hopper('time <= 1ms')\n" + TEST
    assert marked(text)["test_x"][-1].on == ("H200*",)


def test_a_text_with_a_star_is_no_list_of_limits() -> None:
    then, now = (mark("*L", before=f"L = '{text}'\n") for text in ("time <= 1ms", "time <= 2ms"))
    assert marked(then)["test_x"][-1].unread == ("*L ('time <= 1ms')",)
    assert len(relaxed_limits(then, now)) == 1


WAYS = {
    "m = pytest.mark": "m = pytest.mark\n@m.perfgate('time <= 5ms')",
    "import mark as m": "from pytest import mark as m\n@m.perfgate('time <= 5ms')",
    "with_args": "@pytest.mark.perfgate.with_args('time <= 5ms')",
    "a tuple of names": "A, B = 'time <= 5ms', 'cv <= 3%'\n@pytest.mark.perfgate(A, B)",
    "a name in an f-string": "M = 5\nN = M\n@pytest.mark.perfgate(f'time <= {N}ms')",
    "an entry of a dict": "L = {'a': 'time <= 5ms'}\n@pytest.mark.perfgate(L['a'])",
    "keywords of a dict": "COMMON = {'budget': 5}\n@pytest.mark.perfgate('time <= 1ms', **COMMON)",
    "one branch": "if CUDA:\n    L = 'time <= 5ms'\nelse:\n    L = 'time <= 7ms'\n@pytest.mark.perfgate(L)",
    "a list of one branch": "if CUDA:\n    L = ['time <= 5ms']\nelse:\n    L = ['time <= 7ms']\n@pytest.mark.perfgate(*L)",
    "parameters with a name": "S = [pytest.param(1, marks=pytest.mark.perfgate('time <= 5ms'))]\n@pytest.mark.parametrize('n', S)",
}


@pytest.mark.parametrize("way", WAYS)
def test_a_limit_is_found_however_it_is_written(way: str) -> None:
    then = f"import pytest\n{WAYS[way]}\ndef test_x(perfgate, n=1): perfgate(f)\n"
    assert len(relaxed_limits(then, then.replace("5", "50"))) == 1


def test_limits_of_a_long_table_are_cut() -> None:
    then = "L = {'a': 'time <= 5ms', 'b': 'time <= 7ms'" + ", 'c': 'cv <= 3%'" * 50 + "}\n"
    then += "@pytest.mark.perfgate(L['a'])\ndef test_x(perfgate): perfgate(f)\n"
    (text,) = relaxed_limits(then, then.replace("5ms", "50ms"))
    assert len(text) < 450


def test_a_class_has_names_of_its_own() -> None:
    marker = "    L = 'time <= {}'\n    @pytest.mark.perfgate(L)\n    def test_x(self, perfgate): ...\n"
    text = "L = 'time <= 3ms'\nclass TestA:\n" + marker.format("5ms") + "class TestB:\n" + marker.format("7ms")
    assert relaxed_limits(text, text.replace("5ms", "50ms")) == ["t.py::TestA::test_x: time <= 5ms -> time <= 50ms"]
    assert relaxed_limits(text, text.replace("3ms", "30ms")) == []


def test_one_text_is_a_limit_of_a_call() -> None:
    text = "def test_x(perfgate): perfgate(f, limits='time <= 5ms')\n"
    assert relaxed_limits(text, text.replace("5ms", "50ms")) == ["time <= 5ms -> time <= 50ms"]


@pytest.mark.parametrize("decorator", ["@pytest.fixture(autouse=True)", "@pytest.fixture", "@fixture()"])
def test_a_fixture_that_hands_ours_on_is_no_test(decorator: str) -> None:
    handing = f"class TestX:\n    {decorator}\n    def _gate(self, perfgate):\n        self.gate = perfgate\n"
    assert not marked(handing)
    loose = 'pytestmark = pytest.mark.perfgate("slowdown <= 60%")\n'
    assert relaxed_limits(handing, loose + handing) == []
    assert relaxed_limits(handing, "") == []


@pytest.mark.parametrize("asks", ["perfgate", ""])
def test_a_decorator_of_the_name_fixture_hides_no_edit_of_a_test(asks: str) -> None:
    then, now = (
        f'import pytest\nfrom own import fixture\n{decorator}@pytest.mark.perfgate("slowdown <= {bound}%")\n'
        f"def test_x({asks}):\n    pass\n"
        for decorator, bound in (("", 3), ("@fixture\n", 60))
    )
    assert "test_x" in marked(now)
    assert relaxed_limits(then, now)


@pytest.mark.parametrize("line", ["LOW, HIGH = bounds()", "box.size = (1, 2)", "first, *rest = [1, 2]", "A, B = 1, 2"])
def test_assignments_of_any_form_leave_the_file_readable(line: str) -> None:
    then, now = (mark(f"'time <= {bound}'", before=f"{line}\n") for bound in ("1ms", "5ms"))
    assert relaxed_limits(then, now) == ["time <= 1ms -> time <= 5ms"]


def test_only_marks_of_pytest_have_limits() -> None:
    for module, limits in (("lib", ()), ("pytest", ("time <= 1ms",))):
        for name, bound in (("mark", "mark"), ("mark as m", "m")):
            text = f"from {module} import {name}\n@{bound}.perfgate('time <= 1ms')\n{TEST}"
            if (module, name) != ("lib", "mark"):  # a plain ``mark`` is taken for pytest's, wherever it is from
                assert limits_of(text) == {"test_x": limits}


def test_a_function_of_any_name_that_asks_for_the_fixture_is_a_test() -> None:
    bench = "import pytest\npytestmark = pytest.mark.perfgate('time <= 1ms')\ndef bench_x(perfgate): pass\n"
    assert limits_of(bench) == {"bench_x": ("time <= 1ms",)}
    assert limits_of("@lib.fixture\ndef test_x(perfgate): pass\n") == {"test_x": ()}
