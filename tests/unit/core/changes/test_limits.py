"""Tests of core/changes/limits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain

import pytest

from pytest_perfgate.core.changes.limits import LOOSER, relaxed, reworked
from pytest_perfgate.core.changes.marks import marked
from pytest_perfgate.core.changes.source import AROUND, ITSELF, PARAMETERS, marks_of
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
        (mark("'own <= 1'"), mark("'own <= 2'"), ["own <= 1 -> own <= 2"]),
        (mark("'time <== 1ms'"), mark("'time <== 2ms'"), ["limits not literal: time <== 1ms -> time <== 2ms"]),
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


TIGHTER = mark("'time <= {}'", test="def test_a(perfgate): pass\n")


def everything(_nodeid: str, layers: Sequence[Sequence[Limit]]) -> tuple[Limit, ...]:
    return tuple(chain.from_iterable(layers))


def parse_limits(*texts: str) -> tuple[Limit, ...]:
    return tuple(parse_limit(text, kinds=KINDS) for text in texts)


def loosens(then: str, now: str) -> bool:
    """Whether it is named before what tightens and stands first in the alphabet, as something that loosens."""
    found = relaxed({"t.py": (TIGHTER.format("2ms") + then, TIGHTER.format("1ms") + now)}, KINDS, everything)
    assert len(found) == 2, found
    ranks = {("test_x" in text): rank for text, rank in found.items()}
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
    found = relaxed({"t.py": (then, now)}, KINDS, everything)
    assert found == {"t.py::test_x: time <= 1ms on B* -> time <= 2ms on B*": LOOSER}


def test_limits_are_merged_by_the_node_id_of_the_test() -> None:
    asked: set[str] = set()

    def merged(nodeid: str, layers: Sequence[Sequence[Limit]]) -> tuple[Limit, ...]:
        asked.add(nodeid)
        return everything(nodeid, layers)

    body = "def test_x(perfgate):\n    perfgate(f, limits=['time <= 3ms'], name='big')\n"
    relaxed({"t.py": (body, body)}, KINDS, merged)
    assert asked == {"t.py::test_x"}


def test_a_run_is_asked_only_where_the_file_does_not_tell() -> None:
    literal, other, spelled = mark("'time <= 1ms'"), mark("'time <= 2ms'"), mark("f(1)")
    ran = {"t.py::test_x": [parse_limits("time <= 3ms")]}
    for then, now, said in (
        (literal, literal, ()),
        (literal, other, ("t.py::test_x: time <= 1ms -> time <= 2ms",)),
        (literal, spelled, ("t.py::test_x: time <= 1ms -> time <= 3ms",)),
        (spelled, spelled, ()),
        (mark("f(1)", "'mfu >= 5%'"), mark("f(2)", "'mfu >= 5%'"), ("t.py::test_x: limits not literal: f(1) -> f(2)",)),
    ):
        assert tuple(relaxed({"t.py": (then, now)}, KINDS, everything, ran)) == said


def test_settings_that_cannot_be_read_are_shown_as_they_are_written() -> None:
    assert told(mark("rounds=f(3)"), mark("rounds=f(4)")) == ["limits not literal: rounds=f(3) -> rounds=f(4)"]
    assert told(mark("**GATE"), mark("**GATES")) == ["limits not literal: **GATE -> **GATES"]
    call = "def test_x(perfgate):\n    perfgate(f, limits=['time <= {}'], name=f'{{n}}')\n"
    assert told(call.format("1ms"), call.format("2ms")) == ["t.py::test_x#f'{n}': time <= 1ms -> time <= 2ms"]


def test_an_excuse_is_told_where_nothing_else_can_be_read() -> None:
    now = mark("f(1)", "rounds=2", test="@pytest.mark.skip\n" + TEST)
    assert told(mark("'time <= 1ms'", "rounds=3"), now) == ["skip: unset -> always", "time <= 1ms -> not literal: f(1)"]


def test_a_renamed_test_is_known_beside_one_that_stayed() -> None:
    body = "def test_{}(perfgate):\n    perfgate({}, 3)\n"
    stays = mark("'time <= 1ms'", test=body.format("stays", "g"))
    was, now = (stays + mark("'time <= 1ms'", test=body.format(name, "f")) for name in ("x", "y"))
    assert told(was, now) == []


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
    assert told(alone, layered) == ["time <= 1ms -> time <= 1ms except on A100*"]
    assert told(layered, layered) == []
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
    given = "@pytest.mark.parametrize('n', [{}(2, marks=pytest.mark.perfgate('time <= 3ms'))])\n" + TEST
    assert "test_x[2]" in limits_of(f"import pytest\n{given.format('pytest.param')}")
    assert [*limits_of(f"import pytest\n{given.format('plain')}")] == ["test_x"]
    call = "def test_x(perfgate):\n    {}(f, limits=['time <= 3ms'], name='b')\n"
    assert [*limits_of(call.format("perfgate"))] == ["test_x", "test_x#b"]
    assert [*limits_of(call.format("plot"))] == ["test_x"]


def test_what_another_library_calls_a_skip_is_no_mark() -> None:
    assert told(mark("'time <= 1ms'"), mark("'time <= 1ms'", test="@unittest.skip\n" + TEST)) == []


def test_a_mark_that_is_called_once_more_keeps_its_devices() -> None:
    text = "from pytest import mark\nhopper = mark.perfgate(on='H200*')\n@hopper('time <= 1ms')\n" + TEST
    assert marked(text)["test_x"][-1].on == ("H200*",)


def test_a_text_with_a_star_is_no_list_of_limits() -> None:
    then, now = (mark("*L", before=f"L = '{text}'\n") for text in ("time <= 1ms", "time <= 2ms"))
    assert marked(then)["test_x"][-1].unread == ("*L",)
    assert told(then, now) == []


FILE = '''
"""About it."""
import pytest
import pk
from pk.data import DATA, SIZES as LARGE

SCALE = 2
try:
    import fast
except ImportError:
    fast = None


def prepare():
    return scaled(DATA)


def scaled(data):
    return data * SCALE


@pytest.fixture
def matrix():
    return prepare()


@pytest.fixture(autouse=True)
def quiet():
    yield


@pytest.mark.perfgate("slowdown <= 3%")
@pytest.mark.parametrize("n", [1, 2], ids=["s", "l"])
def test_dot(perfgate, n, matrix):
    """It is fast."""
    perfgate(pk.dot, matrix, fast)


class TestAll:
    size = 7

    def made(self):
        return self.size

    def test_in(self, perfgate):
        perfgate(pk.dot, setup=lambda: (self.made(), LARGE))
'''
INNER = "TestAll::test_in"


@pytest.mark.parametrize(
    ("old", "new", "dot", "inner"),
    [
        ("import pk\n", "import old as pk\n", ("pk",), ("pk",)),
        ("import DATA,", "import OTHER as DATA,", ("DATA",), ()),
        ("SIZES as LARGE", "SMALL as LARGE", (), ("LARGE",)),
        ("SCALE = 2", "SCALE = 1", ("SCALE",), ()),
        ("return data * SCALE", "return data", ("SCALE", "scaled"), ()),
        ("    import fast", "    import slow as fast", ("fast",), ()),
        ("    yield", "    pk.warm()\n    yield", ("quiet",), ("quiet",)),
        ("[1, 2]", "[1, 1]", (PARAMETERS,), ()),
        ("pk.dot, matrix", "pk.dot, matrix[:1]", (ITSELF,), ()),
        ("size = 7", "size = 1", (), ("size",)),
        ("return self.size", "return 1", (), ("made", "size")),
        ("setup=lambda: (self", "calls=2, setup=lambda: (self", (), (ITSELF,)),
        ("SCALE = 2", "SCALE = 2\n\n\ndef setup_function(): pk.freeze()", ("setup_function",), ("setup_function",)),
        ("import pytest\n", "import pytest\nfrom own import *\n", ("*",), ("*",)),
        ("<= 3%", "<= 30%", (), ()),
        ("It is fast", "It is quick", (), ()),
        ("def test_dot(perfgate, n, matrix)", "def test_dot(perfgate: Perfgate, n: int, matrix) -> None", (), ()),
        ("pk.dot, matrix, fast)", "pk.dot, matrix, fast, limits=['time <= 3ms'])", (), ()),
        ("pk.dot, matrix, fast)", "pk.dot, matrix, fast, limits=['time <= 3ms'], calls=2)", (ITSELF,), ()),
        ("import pytest\n", "import os\nimport pytest\n", (), ()),
        ("import pk\n", "import pk\nimport pk.warm\n", ("pk",), ("pk",)),
        ("SCALE = 2", "SCALE = 2\nimport old as DATA", ("DATA",), ()),
        ("SCALE = 2", "SCALE = 2\nREST = SCALE * DATA", (), ()),
        ("SCALE = 2", "if pk.big:\n    SCALE = 2\nelse:\n    SCALE = 3", ("SCALE",), ()),
        ("SCALE = 2", "SCALE = 2\nwith pk.lock:\n    def prepare(): return DATA", ("prepare",), ()),
        ("SCALE = 2", "SCALE = 2\nwhile pk.old:\n    from old import DATA", ("DATA",), ()),
    ],
)
def test_what_a_change_makes_of_a_test_is_named(
    old: str, new: str, dot: tuple[str, ...], inner: tuple[str, ...]
) -> None:
    assert old in FILE
    apart = reworked(FILE, FILE.replace(old, new))
    assert (apart.get("test_dot", ()), apart.get(INNER, ())) == (dot, inner)


def test_limits_of_another_call_are_no_limits_of_the_gate() -> None:
    clipped = FILE.replace("pk.dot, matrix, fast)", "pk.clip(matrix, limits=3), fast)")
    assert reworked(clipped, clipped.replace("limits=3", "limits=4"))["test_dot"] == (ITSELF,)


def test_of_another_object_an_attribute_is_none_of_the_class() -> None:
    other = FILE.replace("self.made()", "pk.made()")
    assert INNER not in reworked(other, other.replace("return self.size", "return 1"))


@pytest.mark.parametrize("around", ["if pk.big", "with pk.lock", "try"])
def test_a_test_behind_a_condition_is_known(around: str) -> None:
    rest = "\nfinally:\n    pass" if around == "try" else ""
    text = f"{around}:\n    def test_deep(perfgate):\n        perfgate(f){rest}\n"
    assert reworked(text, text.replace("(f)", "(g)")) == {"test_deep": (ITSELF,)}


def test_another_test_or_no_python_is_no_edit() -> None:
    assert reworked(FILE, FILE.replace("test_dot", "test_new")) == reworked(FILE, "def (") == reworked("", FILE) == {}


def test_a_line_that_is_nested_too_deep_is_compared_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    def dump(_node: object) -> str:
        raise RecursionError

    monkeypatch.setattr("ast.dump", dump)
    assert reworked(FILE, FILE.replace("SCALE = 2", "SCALE = 1"))["test_dot"] == ("SCALE",)
    assert reworked(FILE, FILE) == {}


def test_marks_are_those_of_the_test_its_classes_and_its_file() -> None:
    marked = FILE.replace("@pytest.mark.perfgate(", "@pytest.mark.nightly\n@pytest.mark.perfgate(")
    assert marks_of(FILE, "test_dot") != marks_of(marked, "test_dot")
    assert marks_of(FILE, INNER) == marks_of(marked, INNER) == ()
    assert marks_of(FILE.replace("    size", "    pytestmark = pytest.mark.slow\n    size"), INNER) != ()
    assert marks_of(FILE + "pytestmark = [pytest.mark.slow]\n", INNER) != ()
    assert marks_of(FILE, "test_new") is marks_of("def (", "test_dot") is None


LISTED = """
import pytest
from pk.data import WIDE, SMALL


@pytest.mark.parametrize("n", VALUES)
def test_dot(perfgate, n):
    perfgate(pk.dot, n)
"""


@pytest.mark.parametrize(
    ("then", "now", "differs"),
    [
        ("[1, 2]", "[1, 2, 4]", False),
        ("[1, -2, None]", "(None, 1)", False),
        ("[1, 2]", "[1, '2']", True),
        ("[(1, 'a'), (2, 'b')]", "[(2, 'b')]", False),
        ("[pytest.param(WIDE, id='w')]", "[pytest.param(WIDE, id='w'), pytest.param(SMALL, id='s')]", False),
        ("[pytest.param(WIDE, id='w')]", "[pytest.param(SMALL, id='w')]", True),
        ("[WIDE, 2]", "[SMALL, 2]", True),
        ("[WIDE, 2]", "[WIDE, 2, 4]", True),
        ("[1, 1]", "[1, 1, 2]", True),
        ("[1, 2]", "[1, 2], ids=['a', 'b']", True),
        ("[1, 2]", "range(1, 3)", True),
        ("[{1}, 2]", "[{1}, 3]", True),
    ],
)
def test_a_value_that_comes_or_goes_changes_no_other_case(then: str, now: str, differs: bool) -> None:
    apart = reworked(LISTED.replace("VALUES", then), LISTED.replace("VALUES", now))
    assert apart == ({"test_dot": (PARAMETERS,)} if differs else {})


def test_what_a_value_of_both_stands_for_is_its_parameter() -> None:
    text = LISTED.replace("VALUES", "[pytest.param(WIDE, id='w')]")
    assert reworked(text, text.replace("import WIDE", "import LARGE as WIDE")) == {"test_dot": (PARAMETERS,)}


WRAPPED = LISTED.replace("VALUES", "[1]")


@pytest.mark.parametrize(
    ("line", "differs"),
    [
        ("@mock.patch('pk.dot', quick)", True),
        ("@half", True),
        ("@pytest.mark.usefixtures('fast')", True),
        ("@pytest.mark.timeout(3)", False),
        ("@slow", False),
        ("@pytest.mark.perfgate('time <= 1s')", False),
    ],
)
def test_what_stands_around_a_test_is_part_of_it_and_other_marks_are_not(line: str, differs: bool) -> None:
    text = "slow = pytest.mark.slow\n" + WRAPPED
    apart = reworked(text, text.replace("def test_dot", f"{line}\ndef test_dot"))
    assert apart == ({"test_dot": (AROUND,)} if differs else {})


@pytest.mark.parametrize("where", ["", "class TestIn:\n    "])
def test_fixtures_that_a_whole_file_or_class_asks_for_are_part_of_its_tests(where: str) -> None:
    text = f"{where}mark_me = 1\n{'    ' if where else ''}def test_dot(perfgate): pass\n"
    found = reworked(text, text.replace("mark_me = 1", "pytestmark = [pytest.mark.usefixtures('fast')]"))
    assert list(found.values()) == [(AROUND,)]
