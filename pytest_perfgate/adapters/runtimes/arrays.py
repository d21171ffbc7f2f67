"""What arrays hold, whatever library they are of: read as bytes, written, found where a call can reach them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from math import prod
from typing import Any

from pytest_perfgate.adapters.bindings.border import touched

Extent = tuple[str, int, int]
"""Where an array lies: the memory's name, the first byte, the byte behind the last.

Libraries share memory without a copy, so each calls it the same: ``host``, ``cuda:0``.
"""

_MANY = 1024
"""Elements of an array that is data: a smaller one is a scale, a size, a flag."""

_HOST = frozenset({"cpu", "meta"})


class ArrayContents:
    """Arrays of numpy, torch and CuPy; a library that this process has not loaded has none."""

    def within(self, *things: Any) -> tuple[Any, ...]:
        """Arrays within reach of these things, each once; empty ones and those of Python objects hold no bytes."""
        kinds: Any = _kinds()
        found: tuple[Any, ...] = touched(things, kinds) if kinds else ()
        return tuple(array for array in found if _plain(array))

    def read(self, array: Any) -> Any:
        """Its elements in order, as a flat array of bytes on the host."""
        return _library(array).read(array)

    def write(self, array: Any, data: Any) -> None:
        """The same bytes, put back."""
        _library(array).write(array, data)

    def itemsize(self, array: Any) -> int:
        return int(array.element_size() if hasattr(array, "element_size") else array.itemsize)

    def name(self, array: Any) -> str:
        """``float32[4096, 16]``."""
        return f"{str(array.dtype).removeprefix('torch.')}{list(array.shape)}"

    def overlap(self, one: Any, other: Any) -> bool:
        """Whether two arrays lie in the same memory."""
        (here, begins, ends), (there, first, last) = (_library(array).extent(array) for array in (one, other))
        return bool(here == there and begins < last and first < ends)

    def level(self, array: Any) -> str | None:
        """The value of all elements, empty where they differ; None of what says nothing of the data."""
        library = _library(array)
        if library is _Numpy or prod(array.shape) < _MANY:
            return None
        try:
            ends = library.ends(array)
        except Exception:  # noqa: BLE001 - no library has this for every type, and the call itself is still to come
            return None
        return ends and (f"{ends[0]:g}" if ends[0] == ends[1] else "")


class _Numpy:
    """``numpy.ndarray``."""

    kind = ("numpy", "ndarray")

    @staticmethod
    def plain(array: Any) -> bool:
        return bool(array.size) and not array.dtype.hasobject

    @staticmethod
    def read(array: Any) -> Any:
        import numpy as np

        return np.ascontiguousarray(array).reshape(-1).view(np.uint8).copy()

    @staticmethod
    def write(array: Any, data: Any) -> None:
        array[...] = data.view(array.dtype).reshape(array.shape)

    @staticmethod
    def extent(array: Any) -> Extent:
        return _extent("host", array.__array_interface__["data"][0], array.shape, array.strides, array.itemsize)


class _Torch:
    """``torch.Tensor``, on any device that torch can copy from."""

    kind = ("torch", "Tensor")

    @staticmethod
    def plain(array: Any) -> bool:
        strided = str(array.layout) == "torch.strided" and not array.is_quantized and array.device.type != "meta"
        return strided and bool(array.numel())

    @staticmethod
    def read(array: Any) -> Any:
        torch = sys.modules["torch"]
        return array.detach().contiguous().reshape(-1).view(torch.uint8).cpu().numpy().copy()

    @staticmethod
    def write(array: Any, data: Any) -> None:
        torch = sys.modules["torch"]
        array.detach().copy_(torch.from_numpy(data.copy()).view(array.dtype).reshape(array.shape))

    @staticmethod
    def ends(array: Any) -> tuple[float, float] | None:
        """The least and the greatest element, found where it lies; of those that differ only that they do."""
        torch = sys.modules["torch"]
        if array.device.type in _HOST or array.dtype in (torch.bool, torch.complex64, torch.complex128):
            return None
        whole = array.detach()
        found = torch.aminmax(whole.view(torch.uint8) if array.element_size() == 1 else whole)
        first = float(whole[(0,) * whole.dim()].float())
        return (first, first) if bool(found.min == found.max) else (0.0, 1.0)

    @staticmethod
    def extent(array: Any) -> Extent:
        size = array.element_size()
        strides = [step * size for step in array.stride()]
        memory = "host" if array.device.type == "cpu" else str(array.device)
        return _extent(memory, array.data_ptr(), array.shape, strides, size)


class _Cupy:
    """``cupy.ndarray``."""

    kind = ("cupy", "ndarray")

    @staticmethod
    def plain(array: Any) -> bool:
        return bool(array.size)

    @staticmethod
    def read(array: Any) -> Any:
        return _Numpy.read(array.get())

    @staticmethod
    def write(array: Any, data: Any) -> None:
        array[...] = sys.modules["cupy"].asarray(data.view(array.dtype).reshape(array.shape))

    @staticmethod
    def ends(array: Any) -> tuple[float, float] | None:
        return None if array.dtype.kind not in "iuf" else (float(array.min()), float(array.max()))

    @staticmethod
    def extent(array: Any) -> Extent:
        return _extent(f"cuda:{array.device.id}", array.data.ptr, array.shape, array.strides, array.itemsize)


_LIBRARIES: tuple[Any, ...] = (_Numpy, _Torch, _Cupy)


def _kinds() -> tuple[type, ...]:
    """The array types of the libraries that are loaded here."""
    loaded = ((sys.modules.get(module), name) for module, name in (one.kind for one in _LIBRARIES))
    return tuple(kind for module, name in loaded if isinstance(kind := getattr(module, name, None), type))


def _library(array: Any) -> Any:
    for one in _LIBRARIES:
        module, name = one.kind
        kind = getattr(sys.modules.get(module), name, None)
        if isinstance(kind, type) and isinstance(array, kind):
            return one
    raise TypeError(f"{type(array).__name__} is not an array of a known library")


def _plain(array: Any) -> bool:
    """Whether its bytes can be looked at; a subclass that raises at being asked where they lie has none for us."""
    library = _library(array)
    try:
        return bool(library.plain(array) and library.extent(array))
    except Exception:  # noqa: BLE001 - anybody's code
        return False


def _extent(memory: str, pointer: int, shape: Sequence[int], strides: Sequence[int], itemsize: int) -> Extent:
    """The bytes between the lowest and the highest element; strides may run backwards."""
    if not prod(shape):
        return memory, pointer, pointer
    steps = [(count - 1) * stride for count, stride in zip(shape, strides, strict=True)]
    low, high = sum(step for step in steps if step < 0), sum(step for step in steps if step > 0)
    return memory, pointer + low, pointer + high + itemsize
