"""Contents of arrays of any library: filled, compared and fingerprinted on their own device."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from math import prod
from typing import Any, NamedTuple

from pytest_perfgate.adapters.bindings.border import reachable_objects

Extent = tuple[str, int, int]
"""The memory of an array, under one name in all libraries (``host``, ``cuda:0``): first byte, byte after the last."""

_MANY = 1024
"""The least elements of an array that counts as data; a smaller one is a scale, a size, a flag."""

_HOST = frozenset({"cpu", "meta"})


class ArrayContents:
    """Arrays of numpy, torch and CuPy; a library that this process has not loaded has none."""

    def within(self, *things: Any) -> tuple[Any, ...]:
        """Return arrays within reach of these things, each once, without empty ones and those of Python objects."""
        return tuple(array for array in _arrays(things) if _plain(array))

    def unread(self, *things: Any) -> tuple[str, ...]:
        """Return kinds of arrays within reach whose bytes are not read: sparse, quantized, nested, wrapping others."""
        return tuple(kind for kind in dict.fromkeys(map(_unread, _arrays(things))) if kind)

    def fillable(self, array: Any) -> bool:
        return bool(getattr(getattr(array, "flags", None), "writeable", True))

    def saved(self, array: Any) -> Any:
        return _library(array).saved(array)

    def restore(self, array: Any, saved: Any) -> None:
        _library(array).restore(array, saved)

    def fill(self, array: Any, byte: int) -> None:
        _library(array).fill(array, byte)

    def fingerprint(self, array: Any) -> bytes:
        return bytes(_library(array).fingerprint(array))

    def unchanged(self, array: Any, saved: Any) -> bool:
        return bool(_library(array).unchanged(array, saved))

    def holding(self, array: Any, byte: int, saved: Any) -> float:
        """Return the share of its elements that hold only this byte, and did not when it was saved."""
        return float(_library(array).holding(array, byte, saved, self.itemsize(array)))

    def itemsize(self, array: Any) -> int:
        return int(array.element_size() if hasattr(array, "element_size") else array.itemsize)

    def name(self, array: Any) -> str:
        """Return ``float32[4096, 16]``."""
        return f"{str(array.dtype).removeprefix('torch.')}{list(array.shape)}"

    def overlap(self, one: Any, other: Any) -> bool:
        """Return whether two arrays share memory."""
        (here, begins, ends), (there, first, last) = (_library(array).extent(array) for array in (one, other))
        return bool(here == there and begins < last and first < ends)

    def level(self, array: Any) -> str | None:
        """Return the value of all elements of an array on a device; "" if they differ, None if that is not checked."""
        library = _library(array)
        if library is _Numpy or prod(array.shape) < _MANY:
            return None
        try:
            ends = library.ends(array)
        except Exception:  # noqa: BLE001 - no library has this for every type, and it must not stop the call
            return None
        return ends and (f"{ends[0]:g}" if ends[0] == ends[1] else "")


class _Numpy:
    kind = ("numpy", "ndarray")

    @staticmethod
    def plain(array: Any) -> bool:
        return bool(array.size) and not array.dtype.hasobject

    @staticmethod
    def flat(array: Any) -> Any:
        import numpy as np

        return np.ascontiguousarray(array).reshape(-1).view(np.uint8)

    @classmethod
    def saved(cls, array: Any) -> Any:
        return cls.flat(array).copy()

    @staticmethod
    def restore(array: Any, saved: Any) -> None:
        array[...] = saved.view(array.dtype).reshape(array.shape)

    @staticmethod
    def fill(array: Any, byte: int) -> None:
        import numpy as np

        array[...] = np.full(array.itemsize, byte, dtype=np.uint8).view(array.dtype).reshape(())

    @classmethod
    def fingerprint(cls, array: Any) -> bytes:
        return hashlib.blake2b(cls.flat(array).data, digest_size=16).digest()

    @classmethod
    def unchanged(cls, array: Any, saved: Any) -> bool:
        import numpy as np

        flat, aligned = cls.flat(array), len(saved) - len(saved) % 8
        if len(flat) != len(saved):
            return False
        words, old = flat[:aligned].view(np.int64), saved[:aligned].view(np.int64)
        return bool((words == old).all() and (flat[aligned:] == saved[aligned:]).all())

    @classmethod
    def holding(cls, array: Any, byte: int, saved: Any, itemsize: int) -> float:
        import numpy as np

        integers = {1: np.uint8, 2: np.int16, 4: np.int32, 8: np.int64}
        here = Library(integers, lambda count, _: np.arange(count), lambda part, _: part)
        return holding(here, cls.flat(array), saved, itemsize, byte)

    @staticmethod
    def extent(array: Any) -> Extent:
        return _extent("host", array.__array_interface__["data"][0], array.shape, array.strides, array.itemsize)


class _Torch:
    """``torch.Tensor``, on any device that torch can copy from."""

    kind = ("torch", "Tensor")

    @staticmethod
    def plain(array: Any) -> bool:
        wraps = type(array).__torch_dispatch__ is not sys.modules["torch"].Tensor.__torch_dispatch__  # as DTensor does
        strided = str(array.layout) == "torch.strided" and not array.is_quantized and array.device.type != "meta"
        return strided and not wraps and bool(array.numel())

    @staticmethod
    def stored(array: Any) -> Any:
        """Return the numbers as stored: without gradient, conjugation and negation, booleans as bytes."""
        torch, plain = sys.modules["torch"], array.detach()
        plain = plain.conj() if plain.is_conj() else torch._neg_view(plain) if plain.is_neg() else plain  # noqa: SLF001
        return plain.view(torch.uint8) if plain.element_size() == 1 else plain

    @classmethod
    def flat(cls, array: Any) -> Any:
        whole = cls.stored(array).contiguous()
        begins_at_a_word = whole.storage_offset() * whole.element_size() % WORD == 0
        return (whole if begins_at_a_word else whole.clone()).reshape(-1).view(sys.modules["torch"].uint8)

    @staticmethod
    def library() -> Library:
        torch = sys.modules["torch"]
        return Library(
            integers={1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64},
            count_up=lambda count, like: torch.arange(count, device=like.device),
            to_device_of=lambda part, like: part.to(like.device),
        )

    @classmethod
    def saved(cls, array: Any) -> Any:
        torch, plain = sys.modules["torch"], cls.stored(array)
        try:
            return cls.flat(plain).clone()
        except torch.OutOfMemoryError:  # a call that fills its device is still checked, row by row if it has gaps
            return cls.flat(plain.cpu() if plain.is_contiguous() else torch.stack([row.cpu() for row in plain]))

    @classmethod
    def restore(cls, array: Any, saved: Any) -> None:
        plain = cls.stored(array)
        once = tuple(slice(None if step else 1) for step in plain.stride())  # an expanded element is one in memory
        plain[once].copy_(saved.view(plain.dtype).reshape(plain.shape)[once])

    @classmethod
    def fill(cls, array: Any, byte: int) -> None:
        torch, plain = sys.modules["torch"], cls.stored(array)
        plain = torch.view_as_real(plain) if plain.dtype == torch.complex128 else plain
        size = plain.element_size()
        word = int.from_bytes(bytes([byte]) * size, "little", signed=size > 1)
        plain.view(cls.library().integers[size]).fill_(word)

    @classmethod
    def fingerprint(cls, array: Any) -> bytes:
        flat = cls.flat(array)
        return _Numpy.fingerprint(flat.numpy()) if array.device.type in _HOST else fingerprint(cls.library(), flat)

    @classmethod
    def unchanged(cls, array: Any, saved: Any) -> bool:
        torch, flat = sys.modules["torch"], cls.flat(array)
        aligned = len(flat) - len(flat) % WORD
        parts = (*((*ends, torch.int64) for ends in _chunks(aligned, WORD)), (aligned, len(flat), torch.uint8))
        pairs = ((flat[b:e].view(kind), saved[b:e].to(flat.device).view(kind)) for b, e, kind in parts)
        return len(saved) == len(flat) and all(torch.equal(*pair) for pair in pairs)

    @classmethod
    def holding(cls, array: Any, byte: int, saved: Any, itemsize: int) -> float:
        flat = cls.flat(array)
        if array.device.type in _HOST:  # numpy is faster
            return _Numpy.holding(flat.numpy(), byte, saved.numpy(), itemsize)
        return holding(cls.library(), flat, saved, itemsize, byte)

    @staticmethod
    def ends(array: Any) -> tuple[float, float] | None:
        """Return the least and the greatest element; if they differ, 0 and 1 stand for both."""
        torch, whole = sys.modules["torch"], array.detach()
        if array.device.type in _HOST or array.dtype in (torch.bool, torch.complex64, torch.complex128):
            return None
        extremes = torch.aminmax(whole.view(torch.uint8) if array.element_size() == 1 else whole)
        first = float(whole[(0,) * whole.dim()].float())
        return (first, first) if bool(extremes.min == extremes.max) else (0.0, 1.0)

    @staticmethod
    def extent(array: Any) -> Extent:
        size = array.element_size()
        strides = [step * size for step in array.stride()]
        memory = "host" if array.device.type == "cpu" else str(array.device)
        return _extent(memory, array.data_ptr(), array.shape, strides, size)


class _Cupy:
    kind = ("cupy", "ndarray")

    @staticmethod
    def plain(array: Any) -> bool:
        return bool(array.size)

    @staticmethod
    def flat(array: Any) -> Any:
        cupy = sys.modules["cupy"]
        whole = cupy.ascontiguousarray(array)
        return (whole.copy() if whole.data.ptr % WORD else whole).reshape(-1).view(cupy.uint8)

    @staticmethod
    def library() -> Library:
        cupy = sys.modules["cupy"]
        return Library(
            integers={1: cupy.uint8, 2: cupy.int16, 4: cupy.int32, 8: cupy.int64},
            count_up=lambda count, _: cupy.arange(count, dtype=cupy.int64),
            to_device_of=lambda part, _: cupy.asarray(part),
        )

    @classmethod
    def saved(cls, array: Any) -> Any:
        cupy, flat = sys.modules["cupy"], cls.flat(array)
        try:
            return flat.copy()
        except cupy.cuda.memory.OutOfMemoryError:  # a call that fills its device is still checked
            return flat.get()

    @staticmethod
    def restore(array: Any, saved: Any) -> None:
        array[...] = sys.modules["cupy"].asarray(saved).view(array.dtype).reshape(array.shape)

    @staticmethod
    def fill(array: Any, byte: int) -> None:
        cupy = sys.modules["cupy"]
        array[...] = cupy.full(array.itemsize, byte, dtype=cupy.uint8).view(array.dtype).reshape(())

    @classmethod
    def fingerprint(cls, array: Any) -> bytes:
        return fingerprint(cls.library(), cls.flat(array))

    @classmethod
    def unchanged(cls, array: Any, saved: Any) -> bool:
        data, asarray = cls.flat(array), sys.modules["cupy"].asarray
        pairs = ((data[b:e], asarray(saved[b:e])) for b, e in _chunks(len(data), 1))
        return len(data) == len(saved) and all((one == other).all() for one, other in pairs)

    @classmethod
    def holding(cls, array: Any, byte: int, saved: Any, itemsize: int) -> float:
        return holding(cls.library(), cls.flat(array), saved, itemsize, byte)

    @staticmethod
    def ends(array: Any) -> tuple[float, float] | None:
        return None if array.dtype.kind not in "iuf" else (float(array.min()), float(array.max()))

    @staticmethod
    def extent(array: Any) -> Extent:
        return _extent(f"cuda:{array.device.id}", array.data.ptr, array.shape, array.strides, array.itemsize)


_LIBRARIES: tuple[Any, ...] = (_Numpy, _Torch, _Cupy)


def _arrays(things: Any) -> tuple[Any, ...]:
    """Return arrays of the loaded libraries within reach, each once."""
    loaded = ((sys.modules.get(module), name) for module, name in (one.kind for one in _LIBRARIES))
    kinds: Any = tuple(kind for module, name in loaded if isinstance(kind := getattr(module, name, None), type))
    return reachable_objects(things, kinds) if kinds else ()


def _unread(array: Any) -> str:
    """Return ``Tensor float32 sparse_coo``; "" for an array that is read or empty."""
    if _plain(array) or not (array.numel() if hasattr(array, "numel") else array.size):
        return ""
    return f"{type(array).__name__} {array.dtype} {getattr(array, 'layout', '')}".replace("torch.", "").strip()


def _library(array: Any) -> Any:
    for one in _LIBRARIES:
        module, name = one.kind
        kind = getattr(sys.modules.get(module), name, None)
        if isinstance(kind, type) and isinstance(array, kind):
            return one
    raise TypeError(f"{type(array).__name__} is not an array of a known library")


def _plain(array: Any) -> bool:
    """Return whether its bytes can be read; False for a subclass that raises."""
    library = _library(array)
    try:
        return bool(library.plain(array) and library.extent(array))
    except Exception:  # noqa: BLE001 - any code of the user's
        return False


def _extent(memory: str, pointer: int, shape: Sequence[int], strides: Sequence[int], itemsize: int) -> Extent:
    """Return the bytes from the lowest to the highest element; strides may be negative."""
    if not prod(shape):
        return memory, pointer, pointer
    steps = [(count - 1) * stride for count, stride in zip(shape, strides, strict=True)]
    low, high = sum(step for step in steps if step < 0), sum(step for step in steps if step > 0)
    return memory, pointer + low, pointer + high + itemsize


MIXERS = (0x1E3779B97F4A7C15, 0x3F58476D1CE4E5B9, 0x14D049BB133111EB)
"""Odd numbers below 2**63: multiplication by one wraps without losing information."""
WORD = 8
CHUNK = 1 << 25
"""Bytes that are processed at once; intermediate values take a few times as many."""


class Library(NamedTuple):
    """The functions of an array library that are needed here, on the array's device."""

    integers: dict[int, Any]
    """Its integer types by bytes; the one of one byte is unsigned."""
    count_up: Callable[[int, Any], Any]
    """Returns integers from zero, of eight bytes, on the device of an array."""
    to_device_of: Callable[[Any, Any], Any]
    """Returns a part of what was saved, on the device of an array."""


def holding(library: Library, data: Any, saved: Any, itemsize: int, byte: int) -> float:
    """Return the share of elements that hold only one byte, and did not when saved; both are flat bytes."""
    if len(saved) != len(data):
        return 0.0
    size = itemsize if itemsize in library.integers else next(n for n in (8, 4, 2, 1) if itemsize % n == 0)
    counts = []
    for begin, end in _chunks(len(data), itemsize):
        now = _elements(library, data[begin:end], size, itemsize, byte)
        was = _elements(library, library.to_device_of(saved[begin:end], data), size, itemsize, byte)
        counts.append((now & ~was).sum())
    return sum(map(int, counts)) * itemsize / len(data)


def _elements(library: Library, data: Any, size: int, itemsize: int, byte: int) -> Any:
    """Return which elements hold only the byte; those of unusual sizes are compared as words of known ones."""
    word = int.from_bytes(bytes([byte]) * size, "little", signed=size > 1)
    equal = data.view(library.integers[size]) == word
    return equal if size == itemsize else equal.reshape(-1, itemsize // size).all(1)


def fingerprint(library: Library, data: Any) -> bytes:
    """Return two sums of all words, each mixed with its position, so that changed or swapped bytes show.

    The mixing is one-to-one, and the sums of a part are multiplied by an odd number for each part after it, so a single
    changed word always changes the first sum. Nothing is read before all parts are summed: the device does not wait.
    """
    aligned = len(data) - len(data) % WORD
    places = library.count_up(min(aligned, CHUNK) // WORD, data)
    turned, weights, sums = places * MIXERS[0], places + MIXERS[2], []
    for begin, end in _chunks(aligned, WORD):
        words = data[begin:end].view(library.integers[WORD])
        mixed = words ^ turned[: len(words)]
        mixed ^= mixed >> 32
        mixed *= MIXERS[1]
        first = mixed.sum()
        mixed *= weights[: len(words)]
        sums.append((first, mixed.sum()))
    totals = [0, 0]
    for at, part in product((0, 1), sums):
        totals[at] = (totals[at] * MIXERS[at] + int(part[at])) % (1 << 64)
    tail = bytes(int(byte) for byte in data[aligned:])
    return b"".join(total.to_bytes(8, "little") for total in totals) + tail


def _chunks(size: int, unit: int) -> Iterator[tuple[int, int]]:
    step = CHUNK - CHUNK % unit
    return ((begin, min(begin + step, size)) for begin in range(0, size, step))
