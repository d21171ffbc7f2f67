from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from pytest_perfgate.adapters.bindings.cuda_driver import CudaDriver, DriverInUse, ptxas_version
from pytest_perfgate.model.errors import PerfgateError


def program(path, version: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho 'Cuda compilation tools, release {version[:4]}, V{version}'\n")
    path.chmod(0o755)
    return str(path)


@pytest.fixture(autouse=True)
def _alone(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.delenv("TRITON_PTXAS_PATH", raising=False)
    monkeypatch.setitem(sys.modules, "triton", None)
    monkeypatch.setitem(sys.modules, "triton.backends.nvidia.compiler", None)


def test_without_one_nothing_is_said() -> None:
    assert ptxas_version() == ""


def test_that_of_the_path(tmp_path) -> None:
    program(tmp_path / "bin" / "ptxas", "12.8.93")
    assert ptxas_version() == "12.8.93"


def test_tritons_own_goes_before_it_and_the_one_it_is_told_before_that(tmp_path, monkeypatch) -> None:
    program(tmp_path / "bin" / "ptxas", "12.8.93")
    program(tmp_path / "triton" / "backends" / "nvidia" / "bin" / "ptxas", "13.0.88")
    monkeypatch.setitem(sys.modules, "triton", SimpleNamespace(__file__=str(tmp_path / "triton" / "__init__.py")))
    assert ptxas_version() == "13.0.88"
    monkeypatch.setenv("TRITON_PTXAS_PATH", program(tmp_path / "other", "13.1.5"))
    assert ptxas_version() == "13.1.5"


def test_of_several_that_triton_has_the_one_that_it_takes_for_the_device(tmp_path, monkeypatch) -> None:
    program(tmp_path / "bin" / "ptxas", "12.8.93")
    newer = program(tmp_path / "ptxas-blackwell", "13.1.5")

    def get_ptxas(arch: int):
        if arch < 100:
            raise RuntimeError("Cannot find ptxas")
        return SimpleNamespace(path=newer)

    monkeypatch.setitem(sys.modules, "triton.backends.nvidia.compiler", SimpleNamespace(get_ptxas=get_ptxas))
    assert [ptxas_version(arch) for arch in ("sm_100", "sm_90", "")] == ["13.1.5", "12.8.93", "12.8.93"]


@pytest.mark.parametrize("form", ["one for all", "a pair", "of an unknown form"])
def test_other_versions_of_triton_say_it_in_other_forms(tmp_path, monkeypatch, form) -> None:
    program(tmp_path / "bin" / "ptxas", "12.8.93")
    own = program(tmp_path / "own", "12.9.86")
    choose = {
        "one for all": lambda: SimpleNamespace(path=own),  # Triton 3.4 and 3.5
        "a pair": lambda arch: (own, "12.9"),  # 3.3
        "of an unknown form": lambda arch, *, options: own,
    }[form]
    monkeypatch.setitem(sys.modules, "triton.backends.nvidia.compiler", SimpleNamespace(get_ptxas=choose))
    assert ptxas_version("sm_90") == ("12.8.93" if form == "of an unknown form" else "12.9.86")


def test_one_that_does_not_start_is_none(tmp_path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "ptxas").write_text("no program")
    (tmp_path / "bin" / "ptxas").chmod(0o755)
    assert ptxas_version() == ""


class Library:
    """A driver of two cards: whether it is initialised, the current context, the cards with a primary one."""

    def __init__(self, begun: bool = True, current: int = 0, active: tuple[int, ...] = ()) -> None:
        self._begun, self._current, self._active = begun, current, active
        self.calls: list[str] = []
        self.fault = 0

    def cuDeviceGetCount(self, count) -> int:
        count._obj.value = 2
        return 0 if self._begun else 3

    def cuCtxGetCurrent(self, context) -> int:
        context._obj.value = self._current
        return 0

    def cuDeviceGet(self, device, index) -> int:
        device._obj.value = index.value
        return 0

    def cuDevicePrimaryCtxGetState(self, device, flags, active) -> int:
        active._obj.value = device.value in self._active
        return 0

    def cuDevicePrimaryCtxRetain(self, context, device) -> int:
        self.calls.append("retain")
        context._obj.value = 100 + device.value
        return 0

    def cuDevicePrimaryCtxRelease_v2(self, device) -> int:
        self.calls.append("release")
        return 0

    def cuCtxPushCurrent_v2(self, context) -> int:
        self.calls.append(f"push {context.value}")
        return 0

    def cuCtxSynchronize(self) -> int:
        self.calls.append("wait")
        return self.fault

    def cuCtxPopCurrent_v2(self, context) -> int:
        self.calls.append("pop")
        return 0


@pytest.mark.parametrize(
    ("library", "untouched"),
    [
        (Library(begun=False), True),
        (Library(), True),
        (Library(current=7), False),
        (Library(active=(1,)), False),
        (SimpleNamespace(), False),
        (SimpleNamespace(cuDeviceGetCount=lambda count: 999), False),
    ],
    ids=["not initialised", "initialised", "a context", "a card in use", "another library", "a broken driver"],
)
def test_whether_a_device_was_given_anything_to_do(library, untouched: bool) -> None:
    assert CudaDriver(lambda: library).untouched() is untouched


def test_a_driver_that_does_not_load_tells_nothing() -> None:
    def missing():
        raise OSError("no libcuda.so.1")

    assert not CudaDriver(missing).untouched()


@pytest.mark.parametrize(
    ("library", "contexts"),
    [
        (Library(begun=False, current=7), []),
        (Library(), []),
        (Library(current=7), [7]),
        (Library(current=100, active=(0,)), [100]),
        (Library(current=7, active=(0, 1)), [7, 100, 101]),
        (SimpleNamespace(), []),
    ],
    ids=["not initialised", "no context", "a context", "the primary one", "several", "another library"],
)
def test_a_wait_is_for_all_contexts_in_use(library, contexts: list[int]) -> None:
    wait = DriverInUse(lambda: library).wait()
    assert (wait is not None) is bool(contexts)
    if wait is not None:
        assert library.calls.count("retain") == library.calls.count("release"), (
            "the process has as many users as before"
        )
        library.calls.clear()
        wait()
        assert library.calls == [word for one in contexts for word in (f"push {one}", "wait", "pop")]


def test_work_that_fails_is_an_error_and_a_context_that_failed_before_is_not_waited_for() -> None:
    library = Library(current=7)
    wait = DriverInUse(lambda: library).wait()
    assert wait is not None
    library.fault = 700
    with pytest.raises(PerfgateError, match="CUDA returned 700") as error:
        wait()
    assert error.value.code.name == "device-lost"
    assert library.calls[-1] == "pop"
    assert DriverInUse(lambda: library).wait() is None


def test_the_driver_is_not_loaded_to_wait_for_it() -> None:
    assert DriverInUse().wait() is None
