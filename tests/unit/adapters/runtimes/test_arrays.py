"""Arrays of numpy and of torch on the processor: read, overwritten, put back, told apart."""

from __future__ import annotations

import functools

import numpy as np
import pytest

from pytest_perfgate.adapters.runtimes import arrays as contents
from pytest_perfgate.adapters.runtimes.arrays import ArrayContents

CONTENTS = ArrayContents()


def numpy_arrays():
    yield np.arange(24, dtype=np.float64).reshape(4, 6)
    yield np.arange(24, dtype=np.int16).reshape(4, 6)[::2, ::-1]
    yield np.array(["one", "three"])
    yield np.full(5, np.nan)
    yield np.zeros(3, dtype=np.longdouble)


def torch_arrays():
    torch = pytest.importorskip("torch", reason="torch is not installed", exc_type=ImportError)
    yield torch.arange(24, dtype=torch.bfloat16).reshape(4, 6).t()
    yield torch.nn.Parameter(torch.ones(3))
    yield torch.tensor(2.5)
    yield torch.tensor([True, False, True])
    yield torch.ones(3).to(torch.float8_e4m3fn)
    yield torch.ones(3, 2, dtype=torch.complex64)[:, 0]
    yield torch.full((3,), 1 + 2j, dtype=torch.complex128)
    yield torch.full((3,), 1 + 2j, dtype=torch.complex128).conj()
    yield torch.tensor([float("nan"), 1.0])


@pytest.mark.parametrize("arrays", [numpy_arrays, pytest.param(torch_arrays, marks=pytest.mark.torch)])
def test_bytes_are_saved_overwritten_counted_and_put_back(arrays) -> None:
    for array in arrays():
        saved, fingerprint = CONTENTS.saved(array), CONTENTS.fingerprint(array)
        count = array.numel() if hasattr(array, "numel") else array.size
        assert len(saved) == count * CONTENTS.itemsize(array)
        assert CONTENTS.unchanged(array, saved)
        assert CONTENTS.holding(array, 0x5A, saved) == 0.0
        CONTENTS.fill(array, 0x5A)
        assert CONTENTS.holding(array, 0x5A, saved) == 1.0
        assert CONTENTS.holding(array, 0x5A, CONTENTS.saved(array)) == 0.0, "it held that by itself"
        assert not CONTENTS.unchanged(array, saved)
        assert CONTENTS.fingerprint(array) != fingerprint
        CONTENTS.restore(array, saved)
        assert (CONTENTS.unchanged(array, saved), CONTENTS.fingerprint(array)) == (True, fingerprint)


@pytest.mark.torch
def test_memory_that_two_libraries_share_is_one() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed", exc_type=ImportError)
    whole = np.zeros(64)
    shared = torch.from_numpy(whole)
    assert CONTENTS.overlap(whole, shared)
    assert CONTENTS.overlap(shared[8:16], whole[15:])
    assert not CONTENTS.overlap(shared[8:16], whole[16:])


def test_writing_a_view_leaves_what_lies_between() -> None:
    whole = np.zeros((4, 4))
    CONTENTS.fill(whole[:, ::2], 0xA5)
    assert (whole[:, 1::2] == 0).all()
    assert (whole[:, ::2] != 0).all()


def test_arrays_are_found_where_a_call_can_reach_them() -> None:
    a, b, empty, objects = np.ones(2), np.ones(3), np.ones(0), np.array([None])
    arrays = CONTENTS.within(functools.partial(lambda x: x + b, a), {"more": [empty, objects]})
    assert {id(array) for array in arrays} == {id(a), id(b)}
    assert CONTENTS.within(3.5, "text", None) == ()


@pytest.mark.torch
def test_views_of_one_memory_overlap_and_neighbours_do_not() -> None:
    whole = np.zeros(10)
    assert CONTENTS.overlap(whole[::-1], whole[3:4])
    assert not CONTENTS.overlap(whole[:5], whole[5:])
    torch = pytest.importorskip("torch", reason="torch is not installed", exc_type=ImportError)
    tensor = torch.zeros(4, 4)
    assert CONTENTS.overlap(tensor.t(), tensor[2])
    assert not CONTENTS.overlap(tensor[0], tensor[1])


@pytest.mark.torch
def test_an_array_is_named_by_type_and_shape() -> None:
    assert CONTENTS.name(np.ones((2, 3), dtype=np.float32)) == "float32[2, 3]"
    torch = pytest.importorskip("torch", reason="torch is not installed", exc_type=ImportError)
    assert CONTENTS.name(torch.ones(4, dtype=torch.float16)) == "float16[4]"


@pytest.mark.torch
def test_what_holds_no_bytes_is_passed_over() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed", exc_type=ImportError)
    assert CONTENTS.within([torch.empty(3, device="meta"), torch.eye(2).to_sparse(), torch.empty(0)]) == ()


@pytest.fixture
def on_device(monkeypatch):
    """The processor's tensors stand for a GPU's."""
    torch = pytest.importorskip("torch", reason="torch is not installed", exc_type=ImportError)
    monkeypatch.setattr(contents, "_HOST", frozenset())
    return torch


@pytest.mark.torch
def test_the_one_value_of_an_array_on_a_device_is_told(on_device) -> None:
    torch = on_device
    constants = [
        (torch.zeros(64, 64), "0"),
        (torch.full((2048,), 0.5, dtype=torch.bfloat16)[::2], "0.5"),
        (torch.full((2048,), -1, dtype=torch.int8), "-1"),
        (torch.ones(2048).to(torch.float8_e4m3fn), "1"),
        (torch.nn.Parameter(torch.ones(64, 64)).t(), "1"),
    ]
    assert [CONTENTS.level(array) for array, _ in constants] == [value for _, value in constants]
    data = [torch.eye(64), torch.arange(2048), torch.full((2048,), float("nan")), torch.arange(2048).to(torch.uint8)]
    assert [CONTENTS.level(array) for array in data] == [""] * 4


@pytest.mark.torch
def test_what_says_nothing_of_the_data_is_not_looked_at(on_device, monkeypatch) -> None:
    torch = on_device
    nothing = [torch.zeros(1023), torch.zeros(2048, dtype=torch.bool), torch.zeros(2048, dtype=torch.complex64)]
    assert [CONTENTS.level(array) for array in [*nothing, np.zeros(2048)]] == [None] * 4
    monkeypatch.setattr(torch, "aminmax", lambda array: (_ for _ in ()).throw(NotImplementedError("of this type")))
    assert CONTENTS.level(torch.zeros(2048)) is None


@pytest.mark.torch
def test_tensors_of_the_processor_are_left_alone() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed", exc_type=ImportError)
    assert CONTENTS.level(torch.zeros(2048)) is None


@pytest.mark.torch
def test_views_that_torch_negates_conjugates_or_expands_are_filled_and_put_back() -> None:
    torch = pytest.importorskip("torch")
    numbers, contents = torch.arange(1, 7) * (1 + 2j), ArrayContents()
    for view in (numbers.conj(), numbers.conj().imag, torch.arange(6.0).reshape(1, 6).expand(4, 6)):
        before, saved = view.clone(), contents.saved(view)
        contents.fill(view, 0x3F)
        assert contents.holding(view, 0x3F, saved) == 1.0
        contents.restore(view, saved)
        assert torch.equal(view, before)
        assert contents.unchanged(view, saved)


@pytest.mark.torch
def test_a_tensor_that_wraps_others_is_passed_over() -> None:
    torch = pytest.importorskip("torch")

    class Wrapper(torch.Tensor):
        """A tensor without memory of its own, as DTensor is."""

        @staticmethod
        def __new__(cls, inner):
            return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)

        @classmethod
        def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
            raise NotImplementedError(function)

    plain = torch.nn.Parameter(torch.ones(3))
    assert len(ArrayContents().within([Wrapper(plain.detach()), plain])) == 1


@pytest.mark.torch
@pytest.mark.parametrize("gaps", [False, True])
def test_what_a_full_device_cannot_copy_is_saved_on_the_host(monkeypatch, gaps) -> None:
    torch = pytest.importorskip("torch")
    array = torch.arange(24.0).reshape(4, 6)[:, :4] if gaps else torch.arange(24.0)
    whole = type(array).contiguous
    room = [False]

    def contiguous(tensor):
        if not room[0] and tensor.shape == array.shape:
            room[0] = True
            raise torch.OutOfMemoryError("CUDA out of memory")
        return whole(tensor)

    monkeypatch.setattr(torch.Tensor, "contiguous", contiguous)
    saved = CONTENTS.saved(array)
    assert room == [True]
    assert CONTENTS.unchanged(array, saved)


@pytest.mark.torch
@pytest.mark.parametrize("changed", [None, 0, 100, 512, 999])
def test_a_full_device_takes_back_only_a_part_of_what_was_saved(monkeypatch, changed) -> None:
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(contents, "CHUNK", 64)
    array = torch.arange(1000).to(torch.uint8)[:-1]
    saved, taken, to = CONTENTS.saved(array), [], torch.Tensor.to
    monkeypatch.setattr(torch.Tensor, "to", lambda part, *where: (taken.append(len(part)), to(part, *where))[1])
    if changed is not None:
        array[min(changed, 998)] += 1
    assert CONTENTS.unchanged(array, saved) is (changed is None)
    assert max(taken) == 64
    assert not CONTENTS.unchanged(array[:-1], saved)
