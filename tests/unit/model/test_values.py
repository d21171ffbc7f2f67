"""Tests of model/values."""

from __future__ import annotations

import copy
import pickle
import re
from dataclasses import FrozenInstanceError, field, fields, replace
from inspect import signature
from typing import ClassVar

import pytest

from pytest_perfgate.model import values
from pytest_perfgate.model.values import TIME_UNITS, array_value, grouped, regex, span_seconds, texts_in, value
from pytest_perfgate.wiring import LazySequence


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2", 2.0), (".5", 0.5), ("1e-3", 1e-3), ("250 ns", 250e-9), ("3us", 3e-6), ("3µs", 3e-6), ("3\u03bcs", 3e-6),
        ("500 ms", 0.5), (" 2 min ", 120.0), ("1h", 3600.0),
    ],
)  # fmt: skip
def test_a_span_is_read_in_every_unit(text: str, seconds: float) -> None:
    assert span_seconds(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "soon", "1 day", "1.2.3", "-1 s", "ms"])
def test_what_is_no_span_is_nothing(text: str) -> None:
    assert span_seconds(text) is None


def test_the_letter_of_microseconds_is_read_in_both_code_points() -> None:
    assert TIME_UNITS["\u00b5s"] == TIME_UNITS["\u03bcs"] == TIME_UNITS["us"]


def test_members_are_made_when_asked_for_and_once() -> None:
    made = []
    later = LazySequence(lambda: made.append("made") or ["a", "b"])
    assert made == []
    assert (list(later), later[0], later[-1], len(later), "b" in later) == (["a", "b"], "a", "b", 2, True)
    assert made == ["made"]


@value
class Point:
    x: int
    y: int = 0
    note: str = field(default="", compare=False, repr=False)


@value
class Other:
    x: int
    y: int = 0


@value
class Single:
    x: tuple[int, ...]


@value
class Empty:
    pass


@value
class Named:
    x: int

    def __repr__(self) -> str:
        return "named"

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 7


@array_value
class Held:
    x: list[int]


def test_values_are_equal_by_their_fields_and_of_one_class_alone() -> None:
    assert Point(x=1, note="a") == Point(x=1, note="b")
    assert Point(x=1) != Point(x=1, y=2)
    assert Point(x=1) != Other(x=1)
    assert (Single(x=(1,)), Empty()) == (Single(x=(1,)), Empty())
    assert Single(x=(1,)) != Single(x=(2,))
    assert Empty() != Single(x=())


def test_equal_values_have_one_hash() -> None:
    assert len({Point(x=1, note="a"), Point(x=1, note="b"), Point(x=2), Empty(), Empty(), Single(x=(1,))}) == 4


def test_a_value_shows_its_fields() -> None:
    assert repr(Point(x=1, note="hidden")) == "Point(x=1, y=0)"
    assert repr(Empty()) == "Empty()"
    assert repr(Held(x=[1])) == "Held(x=[1])"


@value
class Made:
    x: int
    parts: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.parts.append(self.x)


def test_a_value_is_made_by_keywords_of_its_own_fields_the_first_time_and_later() -> None:
    for _ in range(values._FEW):
        made_by_keywords()
    assert (type(Made(x=1)), type(Point(x=1)), type(Empty())) == (Made, Point, Empty)


def made_by_keywords() -> None:
    assert (Made(x=1).parts, Made(x=2, parts=[5]).parts) == ([1], [5, 2])
    for keywords, word in (({}, "x"), ({"x": 1, "z": 2}, "z")):
        with pytest.raises(TypeError, match=word):
            Point(**keywords)
    with pytest.raises(TypeError, match="positional"):
        Point(1)  # type: ignore[misc]
    assert (Empty(), Further(x=1, z=2).x) == (Empty(), 1)
    with pytest.raises(TypeError):
        Empty(x=1)  # type: ignore[call-arg]
    with pytest.raises(FrozenInstanceError):
        del Made(x=1).x
    with pytest.raises(AttributeError):
        Point(x=1).other = 1  # type: ignore[attr-defined]


def test_what_a_class_says_of_itself_holds() -> None:
    assert (repr(Named(x=1)), hash(Named(x=1)), Named(x=1) == Named(x=2)) == ("named", 7, True)


def test_a_value_that_holds_arrays_is_itself_alone() -> None:
    one = Held(x=[1])
    assert one == one
    assert one != Held(x=[1])
    assert hash(one) == object.__hash__(one)


@value
class Filled:
    first: int
    numbers: list[int] = field(default_factory=list)
    total: ClassVar[int] = 0

    def __post_init__(self) -> None:
        self.numbers.append(self.first)


@value
class Further(Point):
    z: int = 5


def test_fields_are_given_by_name_or_have_what_the_class_says() -> None:
    one, other = Filled(first=1), Filled(first=2)
    assert (one.numbers, other.numbers, Filled(first=3, numbers=[4]).numbers) == ([1], [2], [4, 3])
    assert Further(x=1) == Further(x=1, y=0, z=5)
    assert Further(x=1) != Point(x=1)
    for words, named in (((1,), {}), ((), {}), ((), {"x": 1, "w": 2})):
        with pytest.raises(TypeError):
            Point(*words, **named)
    with pytest.raises(TypeError):
        Empty(x=1)


@value
class Wide(Point):
    parts: list[int] = field(default_factory=list)
    third: str = "3"
    fourth: str = "4"

    def __post_init__(self) -> None:
        self.parts.append(self.x)


def test_a_value_of_many_fields_is_frozen_and_of_its_class_the_first_time_and_later() -> None:
    for number in range(520):
        wide = Wide(x=number, note="kept", fourth="own")
        assert (type(wide), wide.x, wide.note, wide.third, wide.fourth) == (Wide, number, "kept", "3", "own")
        assert wide.parts == [number]
        assert wide == pickle.loads(pickle.dumps(wide)) == replace(wide, note="other", parts=[])
        with pytest.raises(FrozenInstanceError):
            wide.third = ""
        with pytest.raises(TypeError, match="fifth"):
            Wide(x=1, fifth=2)  # type: ignore[call-arg]
        with pytest.raises(AttributeError):
            wide.other = 1  # type: ignore[attr-defined]
    assert list(signature(Wide).parameters) == ["x", "y", "note", "parts", "third", "fourth"]


@value
class Narrow:
    x: int


def test_the_fast_way_comes_though_the_last_slow_call_fails() -> None:
    for _ in range(500):
        with pytest.raises(TypeError):
            Narrow()  # type: ignore[call-arg]
    assert (Narrow(x=1).x, Narrow(x=2).x) == (1, 2)
    assert list(signature(Narrow).parameters) == ["x"]


def test_values_are_frozen_and_copied() -> None:
    point = Point(x=1)
    with pytest.raises(FrozenInstanceError):
        point.x = 2
    with pytest.raises(FrozenInstanceError):
        del point.x
    with pytest.raises(FrozenInstanceError):
        point.other = 2
    assert copy.deepcopy(Further(x=1, note="kept")).note == copy.copy(Further(x=1, note="kept")).note == "kept"
    assert copy.copy(Empty()) == pickle.loads(pickle.dumps(Empty())) == Empty()
    assert not hasattr(point, "__dict__")
    assert replace(point, y=3) == Point(x=1, y=3)
    assert pickle.loads(pickle.dumps(point)) == point
    assert [one.name for one in fields(Point)] == ["x", "y", "note"]


def test_a_field_keeps_the_text_of_its_type() -> None:
    """Tools that look at a value see what was written, whatever a dataclass was shown of it."""
    assert [(one.name, one.type) for one in fields(Made)] == [("x", "int"), ("parts", "list[int]")]
    assert Made.__annotations__ == {"x": "int", "parts": "list[int]"}


def test_texts_are_found_at_any_depth() -> None:
    deep = (Single(x=("a", 1)), [Single(x=({"b": ["c", None]},))], {"d": Empty(), "e": 2.0}, Held(x=["f"]))
    assert texts_in((deep, Point(x=1, note="g"), Filled(first=1))) == set("abcdefg")


def test_a_regular_expression_is_compiled_when_it_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = []
    own = re.compile
    monkeypatch.setattr(values.re, "compile", lambda *arguments: compiled.append(arguments) or own(*arguments))
    number = regex("[a-f]+", re.IGNORECASE)
    assert compiled == []
    assert [bool(number.fullmatch(text)) for text in ("A", "x", "b")] == [True, False, True]
    assert compiled == [("[a-f]+", re.IGNORECASE)]
    assert number.pattern == "[a-f]+"


def test_labels_that_figures_share_are_read_once() -> None:
    labels: tuple[object, ...] = ("kernel", ["k"])
    for _ in range(64):
        labels = (labels, labels)
    assert texts_in(labels) == {"kernel", "k"}


def test_groups_and_their_items_keep_the_order_in_which_they_come() -> None:
    assert list(grouped(["b1", "a1", "b2"], lambda text: text[0]).items()) == [("b", ["b1", "b2"]), ("a", ["a1"])]
    assert grouped((), str) == {}
