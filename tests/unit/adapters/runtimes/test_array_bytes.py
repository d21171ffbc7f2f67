"""What is found out of an array on its own device, and how little of it comes to the host."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from pytest_perfgate.adapters.runtimes import arrays
from pytest_perfgate.adapters.runtimes.arrays import ArrayContents
from pytest_perfgate.app.output_check import OutputCheck, Subject
from pytest_perfgate.model.plan import CaseKey, Plan
from pytest_perfgate.plugin.calls import MeasuredCall

CONTENTS = ArrayContents()
BROUGHT = [0]


class CudaArray:
    """An array of CuPy as far as it is asked, in numpy's memory: it counts what is brought to the host."""

    def __init__(self, inside) -> None:
        self.inside = np.asarray(inside)
        self.device = type("Device", (), {"id": 0})
        self.data = type("Memory", (), {"ptr": self.inside.__array_interface__["data"][0]})

    size = property(lambda self: self.inside.size)
    shape = property(lambda self: self.inside.shape)
    strides = property(lambda self: self.inside.strides)
    dtype = property(lambda self: self.inside.dtype)
    itemsize = property(lambda self: self.inside.itemsize)

    def get(self):
        BROUGHT[0] += self.inside.nbytes
        return self.inside.copy()

    def __int__(self) -> int:
        BROUGHT[0] += self.inside.nbytes
        return int(self.inside)

    def __bool__(self) -> bool:
        BROUGHT[0] += self.inside.nbytes
        return bool(self.inside)

    def __len__(self) -> int:
        return len(self.inside)

    def __getitem__(self, at):
        return CudaArray(self.inside[at])

    def __setitem__(self, at, value) -> None:
        self.inside[at] = value.inside

    def __invert__(self):
        return CudaArray(~self.inside)


def _own(name: str):
    def method(self, *arguments):
        with np.errstate(over="ignore"):
            return CudaArray(getattr(self.inside, name)(*(getattr(one, "inside", one) for one in arguments)))

    return method


OWN = ("view", "reshape", "copy", "sum", "all", "__eq__", "__and__", "__xor__", "__rshift__", "__mul__", "__add__")
for _name in OWN:
    setattr(CudaArray, _name, _own(_name))


class FakeCupy:
    """As much of ``cupy`` as is asked."""

    ndarray = CudaArray
    uint8, int16, int32, int64 = np.uint8, np.int16, np.int32, np.int64

    class cuda:
        class memory:
            class OutOfMemoryError(Exception):
                """No room."""

    @staticmethod
    def asarray(value):
        return value if isinstance(value, CudaArray) else CudaArray(value)

    @staticmethod
    def ascontiguousarray(value):
        return CudaArray(np.ascontiguousarray(value.inside))

    @staticmethod
    def full(size, byte, dtype):
        return CudaArray(np.full(size, byte, dtype=dtype))

    @staticmethod
    def arange(count, dtype):
        return CudaArray(np.arange(count, dtype=dtype))


@pytest.fixture
def cupy(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", FakeCupy)
    BROUGHT[0] = 0
    return FakeCupy


def test_cupy_is_saved_filled_counted_and_put_back_on_its_device(cupy) -> None:
    array = CudaArray(np.arange(1_000_000, dtype=np.float32).reshape(1000, 1000)[:, ::2])
    saved, fingerprint = CONTENTS.saved(array), CONTENTS.fingerprint(array)
    assert CONTENTS.within([array]) == (array,)
    CONTENTS.fill(array, 0xA5)
    assert CONTENTS.holding(array, 0xA5, saved) == 1.0
    assert CONTENTS.fingerprint(array) != fingerprint
    assert not CONTENTS.unchanged(array, saved)
    CONTENTS.restore(array, saved)
    assert CONTENTS.unchanged(array, saved)
    assert CONTENTS.fingerprint(array) == fingerprint
    assert not CONTENTS.unchanged(CudaArray(np.zeros(3)), saved)
    assert CONTENTS.overlap(array, array)
    assert not CONTENTS.overlap(array, array.inside)
    assert BROUGHT[0] < 1000, "bytes brought to the host, of four million"


def test_a_full_device_keeps_what_was_saved_on_the_host(cupy, monkeypatch) -> None:
    def full(self):
        raise FakeCupy.cuda.memory.OutOfMemoryError

    array = CudaArray(np.arange(6.0))
    monkeypatch.setattr(CudaArray, "copy", full)
    saved = CONTENTS.saved(array)
    assert isinstance(saved, np.ndarray)
    CONTENTS.fill(array, 0x3F)
    assert CONTENTS.holding(array, 0x3F, saved) == 1.0
    CONTENTS.restore(array, saved)
    assert array.inside.tolist() == list(range(6))


@pytest.fixture
def torch(monkeypatch):
    """Its tensors on the processor stand for a GPU's."""
    monkeypatch.setattr(arrays, "_HOST", frozenset())
    return pytest.importorskip("torch", reason="torch is not installed", exc_type=ImportError)


@pytest.mark.torch
def test_a_full_device_of_torch_too(torch, monkeypatch) -> None:

    def full(self):
        raise torch.OutOfMemoryError

    array = torch.arange(6.0)
    with monkeypatch.context() as patch:
        patch.setattr(torch.Tensor, "clone", full)
        saved = CONTENTS.saved(array)
    assert len(saved) == 24


@pytest.mark.torch
def test_little_of_a_tensor_comes_to_the_host(torch, monkeypatch) -> None:
    brought = []
    for name in ("cpu", "numpy", "tolist"):
        monkeypatch.setattr(torch.Tensor, name, lambda self, *_: brought.append(self.nbytes))
    array = torch.arange(1 << 20, dtype=torch.float32)
    saved, fingerprint = CONTENTS.saved(array), CONTENTS.fingerprint(array)
    CONTENTS.fill(array, 0x3F)
    assert CONTENTS.holding(array, 0x3F, saved) == 1.0
    CONTENTS.restore(array, saved)
    assert CONTENTS.fingerprint(array) == fingerprint
    assert not brought


@pytest.mark.torch
def test_a_whole_check_hardly_waits_for_a_slow_way_to_the_host(torch, monkeypatch) -> None:
    """A gigabyte a second, and 20 us a copy: copying its arrays there, a check of 32 MB would wait for 0.1 s and more."""
    from torch.utils._python_dispatch import TorchDispatchMode

    copies: list[int] = []

    class Scalars(TorchDispatchMode):
        """Counts the numbers that the host reads from the device."""

        def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
            if str(operation) in {"aten._local_scalar_dense.default", "aten.equal.default"}:
                copies.append(8)
            return operation(*args, **(kwargs or {}))

    for name in ("cpu", "numpy", "tolist"):
        plain = getattr(torch.Tensor, name)
        monkeypatch.setattr(torch.Tensor, name, lambda one, *_, plain=plain: (copies.append(one.nbytes), plain(one))[1])
    source = torch.arange(1 << 22, dtype=torch.float32)
    target = torch.empty_like(source)
    measured_call = MeasuredCall(
        CaseKey(nodeid="t"), lambda: target.copy_(source), check=lambda result: bool(torch.equal(result, source))
    )
    timed = measured_call.with_last_result()
    subject = Subject(
        once=measured_call.called, last=lambda: timed.last, check=measured_call.judge, reach=(measured_call.fn,)
    )
    scrutiny = OutputCheck(subject, CONTENTS)
    with Scalars():
        scrutiny.before()
        timed()
        problems = scrutiny.after()
    assert problems == ()
    assert copies
    assert sum(copies) <= 1_000_000
    assert sum(copies) + 20_000 * len(copies) <= 0.05 * Plan().budget_ns


@pytest.mark.parametrize("chunk", [8, 64, 1 << 25])
@pytest.mark.torch
def test_any_byte_that_is_another_changes_the_fingerprint(torch, monkeypatch, chunk: int) -> None:
    monkeypatch.setattr(arrays, "CHUNK", chunk)
    array = torch.zeros(131, dtype=torch.uint8)
    fingerprints = {CONTENTS.fingerprint(array)}
    for at in range(131):
        for bit in (1, 128):
            array[at] = bit
            fingerprints.add(CONTENTS.fingerprint(array))
            array[at] = 0
    assert len(fingerprints) == 1 + 2 * 131


@pytest.mark.parametrize("chunk", [64, 1 << 25])
@pytest.mark.torch
def test_words_in_each_others_place_change_the_fingerprint(torch, monkeypatch, chunk: int) -> None:
    monkeypatch.setattr(arrays, "CHUNK", chunk)
    array = torch.randint(-(2**62), 2**62, (4096,), generator=torch.Generator().manual_seed(3))
    fingerprints = {
        CONTENTS.fingerprint(array),
        CONTENTS.fingerprint(array.flip(0)),
        CONTENTS.fingerprint(array.roll(1)),
    }
    swapped = array.clone()
    swapped[[7, 4000]] = swapped[[4000, 7]]
    parts = torch.cat((array[8:16], array[:8], array[16:]))
    assert len(fingerprints | {CONTENTS.fingerprint(swapped), CONTENTS.fingerprint(parts)}) == 5
    assert CONTENTS.fingerprint(array.clone()) in fingerprints


@pytest.mark.torch
def test_a_view_that_begins_inside_a_word_is_checked_too(torch) -> None:
    """Torch refuses to read it in words, and a device would stop at the address."""
    array = torch.arange(1000, dtype=torch.float16)[1:]
    saved, fingerprint = CONTENTS.saved(array), CONTENTS.fingerprint(array)
    assert CONTENTS.fingerprint(array.clone()) == fingerprint
    assert CONTENTS.unchanged(array, saved)
    array[998] = -1
    assert not CONTENTS.unchanged(array, saved)
    assert CONTENTS.fingerprint(array) != fingerprint


@pytest.mark.parametrize("chunk", [16, 1 << 25])
def test_what_was_not_written_is_counted_in_elements(monkeypatch, chunk: int) -> None:
    monkeypatch.setattr(arrays, "CHUNK", chunk)
    for kind in (np.float16, np.float32, np.float64, np.complex128, np.dtype("S3"), np.longdouble):
        array = np.zeros(100, dtype=kind)
        saved = CONTENTS.saved(array)
        CONTENTS.fill(array[25:50], 0xBE)
        assert CONTENTS.holding(array, 0xBE, saved) == 0.25, kind
        assert CONTENTS.holding(array, 0x3F, saved) == 0.0
        assert CONTENTS.holding(array, 0xBE, CONTENTS.saved(array)) == 0.0
        assert CONTENTS.holding(array[:50], 0xBE, saved) == 0.0, "another size says nothing"


def test_a_single_byte_of_an_element_is_not_the_element() -> None:
    array = np.full(64, 0xBE, dtype=np.uint8).view(np.float32)
    saved = CONTENTS.saved(np.zeros_like(array))
    array.view(np.uint8)[::4] = 0
    assert CONTENTS.holding(array, 0xBE, saved) == 0.0


@pytest.mark.torch
def test_tensors_of_both_kinds_are_counted_alike(torch, monkeypatch) -> None:
    for kind in (torch.float16, torch.float32, torch.float64, torch.complex128, torch.bool, torch.uint8):
        array = torch.zeros(8, 16).to(kind)[:, ::2]
        saved = CONTENTS.saved(array)
        CONTENTS.fill(array[2:4], 0xBE)
        assert CONTENTS.holding(array, 0xBE, saved) == 0.25, kind
        with monkeypatch.context() as patch:
            patch.setattr(arrays, "_HOST", frozenset({"cpu"}))
            assert CONTENTS.holding(array, 0xBE, saved) == 0.25, kind
            assert CONTENTS.fingerprint(array) != CONTENTS.fingerprint(torch.zeros(8, 8).to(kind))
