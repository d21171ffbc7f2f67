"""Arrays of numpy and of torch on the processor: read, overwritten, put back, told apart."""

from __future__ import annotations

import functools

import numpy as np
import pytest

from pytest_perfgate.adapters.runtimes import contents
from pytest_perfgate.adapters.runtimes.contents import ArrayContents

CONTENTS = ArrayContents()


def arrays():
    yield np.arange(24, dtype=np.float64).reshape(4, 6)
    yield np.arange(24, dtype=np.int16).reshape(4, 6)[::2, ::-1]
    torch = pytest.importorskip("torch", reason="torch is not installed", exc_type=ImportError)
    yield torch.arange(24, dtype=torch.bfloat16).reshape(4, 6).t()
    yield torch.nn.Parameter(torch.ones(3))
    yield torch.tensor(2.5)


def test_bytes_are_read_overwritten_and_put_back() -> None:
    for array in arrays():
        known = CONTENTS.read(array)
        count = array.numel() if hasattr(array, "numel") else array.size
        assert known.dtype == np.uint8
        assert known.size == count * CONTENTS.itemsize(array)
        CONTENTS.write(array, np.full(known.size, 0x5A, dtype=np.uint8))
        assert (CONTENTS.read(array) == 0x5A).all()
        CONTENTS.write(array, known)
        assert (CONTENTS.read(array) == known).all()


def test_memory_that_two_libraries_share_is_one() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed", exc_type=ImportError)
    whole = np.zeros(64)
    shared = torch.from_numpy(whole)
    assert CONTENTS.overlap(whole, shared)
    assert CONTENTS.overlap(shared[8:16], whole[15:])
    assert not CONTENTS.overlap(shared[8:16], whole[16:])


def test_writing_a_view_leaves_what_lies_between() -> None:
    whole = np.zeros((4, 4))
    CONTENTS.write(whole[:, ::2], np.full(64, 0xA5, dtype=np.uint8))
    assert (whole[:, 1::2] == 0).all()
    assert (whole[:, ::2] != 0).all()


def test_arrays_are_found_where_a_call_can_reach_them() -> None:
    a, b, empty, objects = np.ones(2), np.ones(3), np.ones(0), np.array([None])
    found = CONTENTS.within(functools.partial(lambda x: x + b, a), {"more": [empty, objects]})
    assert {id(array) for array in found} == {id(a), id(b)}
    assert CONTENTS.within(3.5, "text", None) == ()


def test_views_of_one_memory_overlap_and_neighbours_do_not() -> None:
    whole = np.zeros(10)
    assert CONTENTS.overlap(whole[::-1], whole[3:4])
    assert not CONTENTS.overlap(whole[:5], whole[5:])
    torch = pytest.importorskip("torch", reason="torch is not installed", exc_type=ImportError)
    tensor = torch.zeros(4, 4)
    assert CONTENTS.overlap(tensor.t(), tensor[2])
    assert not CONTENTS.overlap(tensor[0], tensor[1])


def test_an_array_is_named_by_type_and_shape() -> None:
    assert CONTENTS.name(np.ones((2, 3), dtype=np.float32)) == "float32[2, 3]"
    torch = pytest.importorskip("torch", reason="torch is not installed", exc_type=ImportError)
    assert CONTENTS.name(torch.ones(4, dtype=torch.float16)) == "float16[4]"


def test_what_holds_no_bytes_is_passed_over() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed", exc_type=ImportError)
    assert CONTENTS.within([torch.empty(3, device="meta"), torch.eye(2).to_sparse(), torch.empty(0)]) == ()


class FakeCupy:
    """As much of ``cupy`` as is asked, on the host."""

    class ndarray:
        def __init__(self, host) -> None:
            self.host = host
            self.size, self.dtype, self.shape, self.strides = host.size, host.dtype, host.shape, host.strides
            self.itemsize = host.itemsize
            self.device = type("Device", (), {"id": 0})
            self.data = type("Memory", (), {"ptr": host.__array_interface__["data"][0]})

        def get(self):
            return self.host

        def __setitem__(self, at, given) -> None:
            self.host[at] = given

    @staticmethod
    def asarray(given):
        return given


def test_cupy_is_read_and_written_through_the_host(monkeypatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "cupy", FakeCupy)
    array = FakeCupy.ndarray(np.arange(6, dtype=np.float32).reshape(2, 3))
    assert CONTENTS.within([array]) == (array,)
    CONTENTS.write(array, np.full(24, 0xA5, dtype=np.uint8))
    assert (CONTENTS.read(array) == 0xA5).all()
    assert CONTENTS.overlap(array, array)
    assert not CONTENTS.overlap(array, array.host)


@pytest.fixture
def on_device(monkeypatch):
    """The processor's tensors stand for a GPU's."""
    torch = pytest.importorskip("torch", reason="torch is not installed", exc_type=ImportError)
    monkeypatch.setattr(contents, "_HOST", frozenset())
    return torch


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


def test_what_says_nothing_of_the_data_is_not_looked_at(on_device, monkeypatch) -> None:
    torch = on_device
    nothing = [torch.zeros(1023), torch.zeros(2048, dtype=torch.bool), torch.zeros(2048, dtype=torch.complex64)]
    assert [CONTENTS.level(array) for array in [*nothing, np.zeros(2048)]] == [None] * 4
    monkeypatch.setattr(torch, "aminmax", lambda array: (_ for _ in ()).throw(NotImplementedError("of this type")))
    assert CONTENTS.level(torch.zeros(2048)) is None


def test_tensors_of_the_processor_are_left_alone() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed", exc_type=ImportError)
    assert CONTENTS.level(torch.zeros(2048)) is None
