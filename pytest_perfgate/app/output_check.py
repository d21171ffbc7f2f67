"""Checks a call's output: written by each call, and equal to a reference's."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.metric import Finding, Problem
from pytest_perfgate.model.values import array_value, first_of

if TYPE_CHECKING:
    from pytest_perfgate.model.measurement import Samples
    from pytest_perfgate.model.ports import Contents


@array_value
class Subject:
    """The parts of the checked call."""

    once: Callable[[], Any]
    """Makes one call with its set-up."""
    last: Callable[[], Any]
    """Returns what the last timed call returned."""
    check: Callable[[Any], None]
    """Raises if a result is wrong."""
    reach: tuple[Any, ...]
    """What the call uses."""
    prepared: tuple[Any, ...] = ()
    """What the set-up makes or uses; it may change from call to call."""
    synchronize: Callable[[], None] = lambda: None


@array_value
class Output:
    """One array that a call returned, saved before it was overwritten."""

    saved: Any
    itemsize: int
    name: str
    own: Any = None
    """The array itself if the call can reach it; a fresh one is released, so that its memory is reused."""


class OutputCheck:
    """Fills outputs with a pattern before the timed calls, and checks the last of them and one more call."""

    def __init__(self, subject: Subject, contents: Contents, findings: list[Finding] | None = None) -> None:
        self._subject, self._contents = subject, contents
        self._findings = findings if findings is not None else []
        self._problems: list[Problem] = []
        self._outputs: list[Output | None] = []
        """None for an array that the call updates in place, which cannot be filled."""
        self._inputs: list[tuple[Any, bytes]] = []

    def scrutinised(self, take: Callable[[], Samples]) -> Samples:
        """Take the samples of the call and check its output."""
        self.before()
        samples = take()
        return replace(samples, problems=(*samples.problems, *self.after()))

    def before(self) -> None:
        """Find the outputs and the inputs, and fill the outputs with the pattern."""
        contents, subject = self._contents, self._subject
        self._problems = []
        reach = contents.within(*subject.reach)
        returned = subject.once()
        first = self._results(returned)
        self._note_unchecked(returned, first)
        del returned
        free = (*first, *contents.within(*subject.prepared))
        inputs = [array for array in reach if not self._any(array, free)]
        self._outputs = [self._output(array, reach) if contents.fillable(array) else None for array in first]
        del first, free
        again = self._results(subject.once())
        self._outputs = self._fillable(again)
        self._poison(again, 0)
        del again
        self._sort(self._results(subject.once()))
        self._inputs = [(array, contents.fingerprint(array)) for array in inputs]

    def after(self) -> tuple[Problem, ...]:
        """Return the faults of the timed calls; raise if ``check`` refuses a result."""
        self._subject.synchronize()
        result = self._subject.last()
        self._check_written(self._contents.within(result), 1, "the timed calls")
        if not self._problems:
            self._subject.check(result)
            self._poison(self._contents.within(result), 0)
            del result
            self._check_written(self._results(self._subject.once()), 0, "a call after the timed ones")
        changed = (array for array, fingerprint in self._inputs if self._contents.fingerprint(array) != fingerprint)
        self._problems += [
            Problem(code="input-changed", what=f"the call changed {self._contents.name(array)}, an input", retry=False)
            for array in changed
        ]
        return tuple(self._problems)

    def _note_unchecked(self, returned: Any, arrays: Sequence[Any]) -> None:
        read_only = (
            f"{self._contents.name(array)}, read-only" for array in arrays if not self._contents.fillable(array)
        )
        if names := (*self._contents.unread(returned), *read_only):
            self._findings.append(Finding(title=UNCHECKED, detail=f"{first_of(names, _NAMED)}: {_BY_VALUE}"))

    def _results(self, returned: Any) -> tuple[Any, ...]:
        self._subject.synchronize()
        return self._contents.within(returned)

    def _output(self, array: Any, reach: Sequence[Any]) -> Output:
        own = array if self._any(array, reach) else None
        contents = self._contents
        return Output(
            saved=contents.saved(array), itemsize=contents.itemsize(array), name=contents.name(array), own=own
        )

    def _fillable(self, again: Sequence[Any]) -> list[Output | None]:
        """Return the outputs that may be filled; not arrays of the call that are others in each call."""
        if len(again) != len(self._outputs):
            return []
        pairs = zip(self._outputs, again, strict=True)
        return [output if output and self._is_unchanged(output, array) else None for output, array in pairs]

    def _is_unchanged(self, output: Output, array: Any) -> bool:
        return output.own is None or self._contents.unchanged(array, output.saved)

    def _sort(self, again: Sequence[Any]) -> None:
        """Keep outputs that depend only on the inputs, filled once more; restore the others."""
        earlier = self._outputs if len(again) == len(self._outputs) else []
        outputs: list[Output | None] = []
        for output, array in zip(earlier, again, strict=bool(earlier)):
            if output is None:
                outputs.append(None)
                continue
            places = self._unwritten_share(output, array, 0)
            if places and not (output.own is not None and places > _WHOLE and self._changes(array)):
                self._problems.append(unwritten_problem(output.name, places, "a call"))
            pure = not places and self._is_unchanged(output, array)
            outputs.append(output if pure else None)
            if not pure and output.own is not None:
                self._contents.restore(output.own, output.saved)
        self._outputs = outputs
        self._poison(again, 1)

    def _changes(self, array: Any) -> bool:
        """Return whether the call changes other values than the pattern: clipping or sorting in place may keep that."""
        half = array.shape[-1] // 2 if len(array.shape) else 0
        for first, second in (LARGE, LARGE[::-1]) if half else ():
            self._contents.fill(array[..., :half], first)
            self._contents.fill(array[..., half:], second)
            before = self._contents.saved(array)
            self._results(self._subject.once())
            if not self._contents.unchanged(array, before):
                return True
        return False

    def _check_written(self, arrays: Sequence[Any], turn: int, side: str) -> None:
        for output, array in zip(self._outputs, arrays, strict=False):
            if output is None:
                continue
            places = self._unwritten_share(output, array, turn)
            if places:
                self._problems.append(unwritten_problem(output.name, places, side))
                self._contents.restore(array, output.saved)

    def _unwritten_share(self, output: Output, array: Any, turn: int) -> float:
        """Return the share of an output that still holds the pattern; 0 for an array of another size."""
        return unexplained_share(self._contents.holding(array, pattern(turn), output.saved), output.itemsize)

    def _poison(self, arrays: Sequence[Any], turn: int) -> None:
        for output, array in zip(self._outputs, arrays, strict=False):
            if output is not None:
                self._contents.fill(array, pattern(turn))

    def _any(self, array: Any, others: Sequence[Any]) -> bool:
        return any(self._contents.overlap(array, other) for other in others)


def unwritten_problem(name: str, part: float, side: str) -> Problem:
    """Return the problem of an output that still holds the earlier pattern."""
    what = f"{side} left {100 * part:.3g} % of the output {name} unwritten"
    return Problem(code="output-not-written", what=what, evidence=(("unwritten", f"{part:.4g}"),), retry=False)


UNCHECKED = "outputs whose writing is not checked"

_BY_VALUE = "perfgate cannot fill them before the timed calls; check= alone judges them"

CONSTANT = "constant inputs"

_LEAST = 2
"""A single array may be the call's output, so it gives no note."""

_NAMED = 3


def constant_inputs(contents: Contents, things: Iterable[object]) -> Finding | None:
    """Return a note if every array on the device holds one value, not counting outputs that are still unwritten.

    Inputs and outputs may be indistinguishable, so one array with varying data is enough for no note.
    """
    names: list[str] = []
    for array in contents.within(*things):
        level = contents.level(array)
        if level == "":
            return None
        if level is not None:
            names.append(f"{contents.name(array)} is all {level}")
    if len(names) < _LEAST:
        return None
    why = "a GPU draws less power on such data and may run faster than on yours"
    return Finding(title=CONSTANT, detail=f"{first_of(names, _NAMED)}: {why}")


PATTERNS = (0xBE, 0x3F)
"""Bytes of a plain number near one in every float format, negative and positive, which slows no kernel.

A call that adds to it, or keeps what is positive, leaves neither the pattern nor the earlier values.
"""

LARGE = (0x7F, 0xFE)
"""Bytes of large numbers, positive and negative; as halves of an array they are unsorted in either order."""

_WHOLE = 0.9
"""The unwritten share above which an output counts as untouched; some elements may have held the pattern before."""

CHANCE = {1: 0.1, 2: 0.004}
"""The share of elements, by their bytes, that may hold a pattern by chance if each call writes other values."""

RARE = 1e-5


def pattern(turn: int) -> int:
    """Return the byte that an output is filled with; turns alternate."""
    return PATTERNS[turn % len(PATTERNS)]


def unexplained_share(share: float, itemsize: int) -> float:
    """Return the share of elements that still hold the pattern, or 0 if chance explains it.

    A call that writes other values each time sometimes writes the pattern into small elements.
    """
    return share if share > CHANCE.get(itemsize, RARE) else 0.0


class SameOutput:
    """A ``check=`` that compares an output with a reference, which is computed only once."""

    def __init__(self, expected: Any, rtol: float | None, atol: float | None) -> None:
        self._expected, self._rtol, self._atol = expected, rtol, atol
        self._inputs: Inputs | None = None
        self._known: list[Any] = []

    def on_inputs(self, inputs: Inputs) -> SameOutput:
        """Pass the inputs of the call to the reference too."""
        self._inputs = self._inputs or inputs
        return self

    def __call__(self, result: Any) -> bool:
        """Return whether the two agree, or raise with the first difference."""
        if not self._known:
            inputs = self._inputs() if self._inputs is not None else ()
            self._known.append(self._expected(*inputs) if callable(self._expected) else self._expected)
        fault = unequal(result, self._known[0], self._rtol, self._atol)
        if fault:
            raise PerfgateError("check-failed", f"the output is not that of the reference: {fault}")
        return True


Inputs = Callable[[], "tuple[Any, ...]"]


def unequal(result: Any, expected: Any, rtol: float | None = None, atol: float | None = None, at: str = "") -> str:
    """Return where two outputs differ by more than the tolerance; "" if they do not."""
    if isinstance(expected, Mapping) and isinstance(result, Mapping):
        if expected.keys() != result.keys():
            return f"{at}has the keys {first_of(sorted(map(str, result)), _NAMED)}"
        parts = [(result[key], expected[key], f"{at}[{key!r}] ") for key in expected]
    elif isinstance(expected, (list, tuple)) and isinstance(result, (list, tuple)) and not _numbers(expected):
        if len(expected) != len(result):
            return f"{at}has {len(result)} parts, and the reference {len(expected)}"
        parts = [(got, want, f"{at}[{n}] ") for n, (got, want) in enumerate(zip(result, expected))]
    else:
        if _nested(result) and _nested(expected):
            return unequal(list(result.unbind()), list(expected.unbind()), rtol, atol, at)
        return _unequal_arrays(result, expected, rtol, atol, at)
    return next(filter(None, (unequal(got, want, rtol, atol, place) for got, want, place in parts)), "")


def _nested(array: Any) -> bool:
    """Return whether a tensor is one of several of unlike shapes."""
    return bool(getattr(array, "is_nested", False))


def _numbers(parts: Sequence[Any]) -> bool:
    return bool(parts) and all(isinstance(part, (int, float, complex)) for part in parts)


_TOLERANCES = {"float16": (1e-3, 1e-5), "bfloat16": (1.6e-2, 1e-5), "float32": (1.3e-6, 1e-5), "float64": (1e-7, 1e-7)}
"""Relative and absolute tolerances by the coarser of both types, as in PyTorch's own tests."""

_COARSE = ("float8", "bfloat16", "float16", "complex32", "float32", "complex64", "float64", "complex128")


def _unequal_arrays(result: Any, expected: Any, rtol: float | None, atol: float | None, at: str) -> str:
    import numpy as np

    try:
        got, want = in_numpy(result), in_numpy(expected)
    except (TypeError, ValueError, RuntimeError) as odd:
        kinds = f"{type(result).__name__} {kind_of(result)} and {type(expected).__name__} {kind_of(expected)}"
        fix = "return tensors of a plain type and layout, or compare in a check= of your own"
        raise PerfgateError("check-failed", f"{at}{kinds} cannot be compared: {odd}", fix=fix) from odd
    kinds = got.dtype.kind + want.dtype.kind
    if set(kinds) & set("OUSMmV"):
        if result is expected or (got.shape == want.shape and np.all((got == want) | _both_nan(got, want))):
            return ""
        return f"{at}{result!r:.40} is not {expected!r:.40}"
    if got.shape != want.shape:
        return f"{at}has the shape {got.shape}, and the reference {want.shape}"
    usual_rtol, usual_atol = _tolerance(kind_of(result), kind_of(expected))
    rtol, atol = usual_rtol if rtol is None else rtol, usual_atol if atol is None else atol
    wide = "complex128" if "c" in kinds else "float64"
    with np.errstate(invalid="ignore", over="ignore"):  # of infinite and of very large numbers
        gaps = np.abs(got.astype(wide) - want.astype(wide))
        close = np.isfinite(want) & (gaps <= atol + rtol * np.abs(want))  # to infinity all are equally far
    wrong = ~((got == want) | _both_nan(got, want))
    if rtol or atol:
        wrong &= ~close
    if not wrong.any():
        return ""
    worst = np.argmax(np.where(wrong, np.nan_to_num(gaps, nan=np.inf), -1))
    place = tuple(map(int, np.unravel_index(int(worst), wrong.shape)))
    where = f" at {list(place)}" if place else ""
    count = f"{at}{int(wrong.sum())} of {wrong.size} elements by more than rtol={rtol:g} and atol={atol:g}"
    return f"{count}; most{where}: {got[place]:.6g}, and the reference {want[place]:.6g}"


def _both_nan(got: Any, want: Any) -> Any:
    """Return where neither element equals itself, as NaN and a date that is not set."""
    return (got != got) & (want != want)  # noqa: PLR0124 - numpy.isnan takes no dates and no objects


def kind_of(array: Any) -> str:
    """Return the type of an array's numbers by its name, such as ``bfloat16``."""
    return str(getattr(array, "dtype", "float64")).rpartition(".")[2]


def _tolerance(*kinds: str) -> tuple[float, float]:
    """Return the tolerance of the coarsest type; whole numbers and booleans must be equal."""
    floats = [coarse for coarse in _COARSE if any(kind.startswith(coarse) for kind in kinds)]
    if not floats:
        return 0.0, 0.0
    real = {"float8": "bfloat16", "complex32": "float16", "complex64": "float32", "complex128": "float64"}
    return _TOLERANCES[real.get(floats[0], floats[0])]


def in_numpy(array: Any) -> Any:
    """Return an array of any library as a numpy array; types that numpy lacks are widened."""
    import numpy as np

    kind, of_torch = kind_of(array), callable(getattr(array, "float", None))
    if kind.startswith("float4_") and of_torch:
        array = array.view(import_module("torch").uint8)  # two numbers a byte, which torch cannot widen
    elif kind.startswith(("bfloat16", "float8", "float6_", "float4_")):
        array = array.float() if of_torch else array.astype("float32")
    elif kind == "complex32":
        array = array.cfloat()
    elif kind.startswith(("qint", "quint")):
        array = array.dequantize()
    for step in ("detach", "to_dense", "resolve_conj", "resolve_neg", "cpu"):
        array = getattr(array, step)() if callable(getattr(array, step, None)) else array
    of_cupy = callable(getattr(array, "get", None)) and not isinstance(array, Mapping)
    return np.asarray(array.get() if of_cupy else array)
