"""Which change of a limit loosens it, and what of a test file is read for that."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import pytest

from pytest_perfgate.core.changes.limits import LOOSER, relaxed
from pytest_perfgate.core.changes.marks import marked
from pytest_perfgate.core.limits.grammar import parse_limit
from pytest_perfgate.core.limits.merge import merge_limits
from pytest_perfgate.model.plan import Limit
from tests.unit.core.gate.test_relaxed import KINDS, TEST, mark, told

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


# what of a test file is read


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
