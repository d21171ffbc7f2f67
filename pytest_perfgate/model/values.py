"""Declaring values, quantities and their units, work, and patterns that are compiled on first use."""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, FrozenInstanceError, dataclass, field, fields, is_dataclass, make_dataclass, replace
from functools import cache
from operator import attrgetter, is_
from typing import TYPE_CHECKING, Any, AnyStr, TypeVar, cast

T = TypeVar("T")
K = TypeVar("K")
_ATOMS = {int, float, bool, type(None)}

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:

    def dataclass_transform(**_: object) -> object:
        return lambda decorator: decorator


@dataclass_transform(kw_only_default=True, frozen_default=True)
def value(cls: type[T]) -> type[T]:
    """Declare a value that is compared by content."""
    return _compared(array_value(cls))


@dataclass_transform(kw_only_default=True, frozen_default=True, eq_default=False)
def array_value(cls: type[T]) -> type[T]:
    """Declare a value that holds arrays and is therefore compared by identity."""
    if "__repr__" not in vars(cls):
        cls.__repr__ = _shown  # type: ignore[method-assign]
    cls.__doc__, texts = cls.__doc__ or cls.__name__, cls.__annotations__
    # a dataclass would search each text for a ClassVar, a twentieth of a command's start
    cls.__annotations__ = {name: text if "ClassVar" in str(text) else object for name, text in texts.items()}
    decorated: Any = dataclass(init=False, slots=True, kw_only=True, eq=False, repr=False)(cls)
    decorated.__annotations__ = texts
    for one in fields(decorated):
        one.type = texts.get(one.name, one.type)
    decorated.__init__ = _deferred(decorated)
    decorated.__setattr__ = decorated.__delattr__ = _refuse
    decorated.__getstate__, decorated.__setstate__ = _state, _restored
    return decorated  # type: ignore[no-any-return]


_FEW = 500
"""The number of values of a class from which compiling an ``__init__`` pays."""


def _deferred(cls: Any) -> Callable[..., None]:
    """Return the ``__init__`` of the first values without compiling, which saves a fifth of a command's start."""
    every = fields(cls)
    plain = {member.name: member.default for member in every if member.default is not MISSING}
    makers = {member.name: member.default_factory for member in every if member.default_factory is not MISSING}
    names, then, put = {member.name for member in every}, getattr(cls, "__post_init__", None), object.__setattr__
    remaining = _FEW

    def first(self: Any, /, **values: Any) -> None:
        nonlocal remaining
        remaining -= 1
        arguments = {**plain, **values}
        arguments.update({name: make() for name, make in makers.items() if name not in values} if makers else {})
        if arguments.keys() != names:
            raise TypeError(
                f"{cls.__name__}() takes {', '.join(sorted(names))}; given: {', '.join(values) or 'nothing'}"
            )
        for name, one in arguments.items():
            put(self, name, one)
        if then is not None:
            then(self)
        if remaining <= 0:
            cls.__init__ = _written(cls)

    return first


def _written(cls: Any) -> Callable[..., None]:
    """Return a compiled ``__init__`` with keyword fields, like that of a frozen dataclass."""
    listed = [(f.name, f.type, field(default=f.default, default_factory=f.default_factory)) for f in fields(cls)]
    then = getattr(cls, "__post_init__", None)
    own = {"__post_init__": then} if then else {}
    made: Any = make_dataclass(cls.__name__, listed, namespace=own, frozen=True, kw_only=True, eq=False, repr=False)
    return made.__init__  # type: ignore[no-any-return]


def _refuse(self: Any, name: str, *_: object) -> None:
    raise FrozenInstanceError(f"cannot change {name!r} of a {type(self).__name__}")


def _state(self: Any) -> list[Any]:
    return [getattr(self, field.name) for field in fields(self)]


def _restored(self: Any, state: Sequence[Any]) -> None:
    for own, value in zip(fields(self), state):
        object.__setattr__(self, own.name, value)


def _compared(cls: type[T]) -> type[T]:
    """Add equality and hash by fields."""
    # A dataclass would compile these for each class, which took half of a child's time for importing the package.
    names = [field.name for field in fields(cls) if field.compare]  # type: ignore[arg-type]
    holds: Callable[[Any], Any] = attrgetter(*names) if names else lambda _: ()

    def equal(self: Any, other: object) -> Any:
        return holds(self) == holds(other) if other.__class__ is self.__class__ else NotImplemented

    def hashed(self: Any) -> int:
        return hash(holds(self))

    if "__eq__" not in vars(cls):
        cls.__eq__ = equal  # type: ignore[method-assign]
    if vars(cls).get("__hash__") is None:
        cls.__hash__ = hashed  # type: ignore[method-assign]
    return cls


def _shown(self: Any) -> str:
    """Return a value with its fields, as a dataclass's representation."""
    parts = (f"{field.name}={getattr(self, field.name)!r}" for field in fields(self) if field.repr)
    return f"{type(self).__qualname__}({', '.join(parts)})"


def plain(value: Any) -> Any:
    """Return a plain number or text from a subclass or numpy; None for other types, which messages do not hold."""
    if isinstance(value, str):
        return str.__str__(value)
    item = getattr(value, "item", None)
    if callable(item) and getattr(value, "shape", None) == ():
        return item()
    raise TypeError(f"a {type(value).__module__}.{type(value).__name__} is nothing that a record holds")


def texts_in(thing: Any) -> set[str]:
    """Return every text in a value, at any depth; labels that a thousand figures share are read once."""
    texts, things, read = set[str](), list[Any]([[thing]]), set[int]()
    while things:
        kind = (part := things.pop()).__class__
        if kind is tuple or kind is list:
            parts = part if id(part) not in read else ()
            read.add(id(part))  # the thing holds each part, so that no two have one id
        else:
            parts = (*part, *part.values()) if kind is dict else [getattr(part, name) for name in _names(kind)]
        for one in parts:
            if one.__class__ is str:
                texts.add(one)
            elif one.__class__ not in _ATOMS:
                things.append(one)
    return texts


@cache
def _names(kind: Any) -> tuple[str, ...]:
    return tuple(one.name for one in fields(kind)) if is_dataclass(kind) else ()


def with_texts(thing: T, changed: Mapping[str, str]) -> T:
    """Return the value with some texts replaced; what does not hold them stays the same object."""
    return cast("T", _with_texts(thing, changed, {}))


def _with_texts(thing: Any, changed: Mapping[str, str], done: dict[int, tuple[Any, Any]]) -> Any:
    kind = thing.__class__
    if kind is str:
        return changed.get(thing, thing)
    if kind in (tuple, list):
        if id(thing) not in done:
            made = [_with_texts(part, changed, done) for part in thing]
            done[id(thing)] = thing, thing if all(map(is_, made, thing)) else kind(made)
        return done[id(thing)][1]
    if kind is dict:
        return {_with_texts(key, changed, done): _with_texts(part, changed, done) for key, part in thing.items()}
    parts = {name: getattr(thing, name) for name in _names(kind)}
    new = {name: made for name, part in parts.items() if (made := _with_texts(part, changed, done)) is not part}
    return replace(thing, **new) if new else thing


class _Regex:
    """A regular expression that is compiled on first use."""

    def __init__(self, text: Any, flags: int) -> None:
        self._given = text, flags

    def __getattr__(self, name: str) -> Any:
        """Return a method of the compiled expression, and keep it, so that it is found here no second time."""
        made = getattr(re.compile(*self._given), name)
        setattr(self, name, made)
        return made


def regex(text: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Return a regular expression that a command may never need; compiling all took a twentieth of its start."""
    return cast("re.Pattern[AnyStr]", _Regex(text, flags))


TIME_UNITS: Mapping[str, float] = {
    "ns": 1.0, "us": 1e3, "µs": 1e3, "μs": 1e3, "ms": 1e6, "s": 1e9, "min": 60e9, "h": 3600e9,
}  # fmt: skip
"""Nanoseconds in each unit of time that a person or a tool may write."""

TIME_UNIT = "|".join(TIME_UNITS)  # as part of a pattern

_SPAN = regex(rf"\s*((?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)\s*({TIME_UNIT})?\s*")


def span_seconds(text: str) -> float | None:
    """Return the seconds of a text such as ``500 ms``, or of a number without a unit; None for another text."""
    match = _SPAN.fullmatch(text)
    return float(match[1]) * TIME_UNITS[match[2] or "s"] / TIME_UNITS["s"] if match else None


class Dimension(str, enum.Enum):
    """The quantity of a number, and so the units that a person may write for it."""

    TIME = "time"
    FRACTION = "fraction"
    RATIO = "ratio"
    COUNT = "count"
    BYTES = "bytes"
    BANDWIDTH = "bandwidth"
    FLOPS = "flops"
    WORK = "work"
    RATE = "rate"
    INTENSITY = "intensity"
    CLOCK = "clock"
    TEMPERATURE = "temperature"
    POWER = "power"
    ENERGY = "energy"
    PLAIN = "plain"
    TEXT = "text"


DECIMAL = (("", 1.0), ("k", 1e3), ("M", 1e6), ("G", 1e9), ("T", 1e12), ("P", 1e15))

OF_ITEMS = "in "  # how the note of a rate begins that names its items: in tokens/s

_BINARY = (("Ki", 2.0**10), ("Mi", 2.0**20), ("Gi", 2.0**30), ("Ti", 2.0**40))


def _prefixed(*stems: str) -> dict[str, float]:
    return {prefix + stem: factor for stem in stems for prefix, factor in DECIMAL}


def _bytes(tail: str) -> dict[str, float]:
    plain = _prefixed(f"B{tail}") | {f"KB{tail}": 1e3}
    return plain | {f"{prefix}B{tail}": factor for prefix, factor in _BINARY}


UNITS: Mapping[Dimension, Mapping[str, float]] = {
    Dimension.TIME: TIME_UNITS,
    Dimension.FRACTION: {"%": 0.01},
    Dimension.RATIO: {"x": 1.0, "×": 1.0},
    Dimension.BYTES: _bytes(""),
    Dimension.BANDWIDTH: _bytes("/s"),
    Dimension.FLOPS: _prefixed("FLOPS", "FLOP/s", "OPS", "OP/s"),
    Dimension.WORK: _prefixed("FLOP", "OP"),
    Dimension.RATE: _prefixed("/s"),
    Dimension.INTENSITY: {"FLOP/B": 1.0},
    Dimension.CLOCK: _prefixed("Hz"),
    Dimension.TEMPERATURE: {"°C": 1.0, "C": 1.0},
    Dimension.POWER: {"mW": 1e-3} | _prefixed("W"),
    Dimension.ENERGY: {"µJ": 1e-6, "uJ": 1e-6, "mJ": 1e-3} | _prefixed("J"),
    Dimension.COUNT: {},
    Dimension.PLAIN: {},
}
"""Unit to factor; a time is in nanoseconds, a fraction between 0 and 1, the rest per second."""

USUAL: Mapping[Dimension, tuple[str, ...]] = {
    Dimension.TIME: ("ns", "us", "ms", "s"),
    Dimension.FRACTION: ("%",),
    Dimension.RATIO: ("x",),
    Dimension.BYTES: ("B", "KiB", "MB", "GB"),
    Dimension.BANDWIDTH: ("GB/s", "TB/s"),
    Dimension.FLOPS: ("GFLOPS", "TFLOPS"),
    Dimension.WORK: ("FLOP", "GFLOP", "TFLOP"),
    Dimension.RATE: ("/s", "k/s", "M/s"),
    Dimension.INTENSITY: ("FLOP/B",),
    Dimension.CLOCK: ("MHz", "GHz"),
    Dimension.TEMPERATURE: ("°C",),
    Dimension.POWER: ("W",),
    Dimension.ENERGY: ("mJ", "J"),
    Dimension.COUNT: (),
    Dimension.PLAIN: (),
}
"""Units that an error proposes."""


def dimension_of(unit: str) -> Dimension | None:
    """Return the dimension of a unit; no unit has two."""
    return next((dimension for dimension, table in UNITS.items() if unit in table), None)


LINE_UNITS: Mapping[Dimension, tuple[str, ...]] = {
    Dimension.TIME: ("s", "ms", "us", "ns"),
    Dimension.FRACTION: ("%",),
    Dimension.RATIO: ("x",),
    Dimension.BYTES: ("TiB", "GiB", "MiB", "KiB", "B"),
    Dimension.BANDWIDTH: ("TB/s", "GB/s", "MB/s", "kB/s", "B/s"),
    Dimension.FLOPS: ("TFLOPS", "GFLOPS", "MFLOPS", "FLOPS"),
    Dimension.WORK: ("TFLOP", "GFLOP", "MFLOP", "FLOP"),
    Dimension.RATE: ("G/s", "M/s", "k/s", "/s"),
    Dimension.INTENSITY: ("FLOP/B",),
    Dimension.CLOCK: ("GHz", "MHz", "Hz"),
    Dimension.TEMPERATURE: ("C",),
    Dimension.POWER: ("kW", "W", "mW"),
    Dimension.ENERGY: ("kJ", "J", "mJ", "uJ"),
    Dimension.COUNT: ("",),
    Dimension.PLAIN: ("",),
}
"""Units in which an accepted figure is written, the largest first."""

_DIGITS, _MOST_DIGITS = 5, 8


def rounded(number: float, dimension: Dimension) -> float:
    """Return a number as an accepted line stores it: with five digits of its unit."""
    if not number or dimension not in LINE_UNITS:
        return number
    for unit in LINE_UNITS[dimension]:
        whole = f"{_in_unit(number, unit):.{_DIGITS}g}"
        if abs(float(whole)) >= 1 or unit == LINE_UNITS[dimension][-1]:
            return from_unit(float(whole), unit)
    return number


def written_number(number: float, dimension: Dimension) -> str:
    """Return a number with its unit that reads back unchanged: ``83.1%``, ``96KiB``, ``128``."""
    units = LINE_UNITS[dimension]
    for unit in units:
        inside = _in_unit(number, unit)
        if abs(inside) < 1 and unit != units[-1]:
            continue
        texts = (_plain_text(inside, digits) for digits in range(1, _MOST_DIGITS + 1))
        text = next((text for text in texts if from_unit(float(text), unit) == number), None)
        if text is not None:
            return text + unit
    return _plain_text(_in_unit(number, units[-1]), 17) + units[-1]


def _plain_text(number: float, digits: int) -> str:
    text = f"{number:.{digits}g}"
    return f"{float(text):.0f}" if "e+" in text and abs(number) < 1e17 else text


def _in_unit(number: float, unit: str) -> float:
    return number * 100 if unit == "%" else number / _FACTORS[unit]


def from_unit(number: float, unit: str) -> float:
    """Return a number of this unit in internal units."""
    return number / 100 if unit == "%" else number * _FACTORS[unit]


_FACTORS: Mapping[str, float] = {"": 1.0} | {unit: one for table in UNITS.values() for unit, one in table.items()}


class Better(str, enum.Enum):
    """The direction in which a metric improves."""

    LOWER = "lower"
    HIGHER = "higher"
    NEITHER = "neither"


@value
class Work:
    """Floating-point operations and unique bytes of one call, with the dtype that sets its peak."""

    flops: float | None = None
    bytes: float | None = None
    dtype: str = ""
    items: float | None = None
    unit: str = "items"
    working_set: float | None = None
    """All bytes accessed; the byte roof applies if they exceed the last cache."""
    family: str = "custom"
    note: str = ""
    """The basis of the figure: a stated bound, a recorded mask, a hook."""

    @property
    def intensity(self) -> float | None:
        """Operations per byte."""
        return self.flops / self.bytes if self.flops is not None and self.bytes else None


def grouped(items: Iterable[T], key: Callable[[T], K]) -> dict[K, list[T]]:
    """Return the items of each key, in their order."""
    groups: dict[K, list[T]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


def first_of(names: Sequence[str], most: int) -> str:
    """Return ``a, b and 3 more``."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
