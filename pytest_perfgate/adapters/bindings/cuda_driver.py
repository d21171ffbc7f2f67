"""Few calls of the CUDA driver; ptxas."""

from __future__ import annotations

import ctypes
import functools
import os
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID

from pytest_perfgate.adapters.bindings.border import BORDER, sentence
from pytest_perfgate.adapters.system.processes import answer
from pytest_perfgate.model.errors import PerfgateError

LIBRARY = "libcuda.so.1"

_PORTABLE_AND_MAPPED = 0x01 | 0x02

_WAIT_UNTIL_EQUAL = 0x1

_LIMIT_PERSISTING = 0x06

_FEW = 256

_NOT_INITIALISED = 3


class DriverFault(RuntimeError):
    """A driver call returned a status."""

    def __init__(self, name: str, status: int) -> None:
        self.status = status
        super().__init__(f"{name} returned {status}")


class CudaDriver:
    """Works in whatever context is current: that of torch, CuPy or cuda.core."""

    def __init__(self, load: Callable[[], Any] = lambda: ctypes.CDLL(LIBRARY)) -> None:
        self._load = load
        self._library: Any = None
        self._gate: ctypes.c_uint32 | None = None
        self._address = ctypes.c_uint64(0)
        self._capped = False

    def block(self, stream: int) -> Callable[[], None]:
        """The stream waits on a word of host memory that the returned function writes."""
        try:
            gate = self._gate or self._allocated()
            gate.value = 0
            where, what = ctypes.c_void_p(stream), ctypes.c_uint32(1)
            self._call("cuStreamWaitValue32_v2", where, self._address, what, ctypes.c_uint(_WAIT_UNTIL_EQUAL))
        except (OSError, RuntimeError, AttributeError) as error:
            raise PerfgateError("block-unsupported", sentence(error)) from error

        def release() -> None:
            gate.value = 1

        return release

    def give_up_persisting(self) -> str:
        """Reset persisting lines and keep any from being set aside; what was done, in words."""
        try:
            if not self._capped:
                self._call("cuCtxSetLimit", ctypes.c_int(_LIMIT_PERSISTING), ctypes.c_size_t(0))
                self._capped = True
            self._call("cuCtxResetPersistingL2Cache")
        except (OSError, RuntimeError, AttributeError) as error:
            return f"not reset: {sentence(error)}"
        return "reset, limit 0"

    def memory(self, index: int) -> float | None:
        """Bytes of a device; nothing where the driver does not say."""
        device, size = ctypes.c_int(0), ctypes.c_size_t(0)
        try:
            self._call("cuDeviceGet", ctypes.byref(device), ctypes.c_int(index))
            self._call("cuDeviceTotalMem_v2", ctypes.byref(size), device)
        except (OSError, RuntimeError, AttributeError):
            return None
        return float(size.value) or None

    def uuid(self, index: int) -> str:
        """The UUID of a device, or of the instance that it is; empty where the driver does not say."""
        device, buffer = ctypes.c_int(0), ctypes.create_string_buffer(16)
        try:
            self._call("cuDeviceGet", ctypes.byref(device), ctypes.c_int(index))
            self._call("cuDeviceGetUuid_v2", buffer, device)
        except (OSError, RuntimeError, AttributeError):
            return ""
        return str(UUID(bytes=buffer.raw))

    def synchronize(self) -> None:
        """Until every stream of the current context is done."""
        self._call("cuCtxSynchronize")

    def enter(self) -> None:
        """The first device's own context, for a process that no library has given one."""
        context = ctypes.c_void_p(0)
        self._call("cuInit", ctypes.c_uint(0))
        self._call("cuDevicePrimaryCtxRetain", ctypes.byref(context), ctypes.c_int(0))
        self._call("cuCtxSetCurrent", context)

    def untouched(self) -> bool:
        """Whether nothing in this process has made a context yet: the driver may not even be initialised."""
        context, count = ctypes.c_void_p(0), ctypes.c_int(0)
        try:
            self._call("cuDeviceGetCount", ctypes.byref(count))
            self._call("cuCtxGetCurrent", ctypes.byref(context))
            return not context.value and not any(map(self._active, range(count.value)))
        except DriverFault as fault:
            return fault.status == _NOT_INITIALISED
        except (OSError, AttributeError):
            return False

    def initialised(self) -> bool:
        """Whether anything has initialised the driver that this process has loaded; none is loaded for the answer."""
        try:
            self._library = self._library or ctypes.CDLL(LIBRARY, mode=os.RTLD_NOLOAD)
            self._call("cuDeviceGetCount", ctypes.byref(ctypes.c_int(0)))
        except DriverFault as fault:
            return fault.status != _NOT_INITIALISED
        except (OSError, AttributeError):
            return True
        return True

    def _active(self, index: int) -> bool:
        device, flags, active = ctypes.c_int(0), ctypes.c_uint(0), ctypes.c_int(0)
        self._call("cuDeviceGet", ctypes.byref(device), ctypes.c_int(index))
        self._call("cuDevicePrimaryCtxGetState", device, ctypes.byref(flags), ctypes.byref(active))
        return bool(active.value)

    def touch(self) -> None:
        """The least work that a device can be given: a few bytes set, and waited for."""
        where = ctypes.c_uint64(0)
        self._call("cuMemAlloc_v2", ctypes.byref(where), ctypes.c_size_t(_FEW))
        try:
            self._call("cuMemsetD8_v2", where, ctypes.c_ubyte(0), ctypes.c_size_t(_FEW))
            self.synchronize()
        finally:
            self._call("cuMemFree_v2", where)

    def _allocated(self) -> ctypes.c_uint32:
        host = ctypes.c_void_p(0)
        self._call("cuMemHostAlloc", ctypes.byref(host), ctypes.c_size_t(4), ctypes.c_uint(_PORTABLE_AND_MAPPED))
        self._call("cuMemHostGetDevicePointer_v2", ctypes.byref(self._address), host, ctypes.c_uint(0))
        self._gate = ctypes.c_uint32.from_address(host.value or 0)
        return self._gate

    def _call(self, name: str, *arguments: Any) -> None:
        if self._library is None:
            self._library = self._load()
        status = getattr(self._library, name)(*arguments)
        if status:
            raise DriverFault(name, status)


_VERSION = re.compile(r"\bV(\d+(?:\.\d+)+)")


def ptxas_version(arch: str = "") -> str:
    """``13.0.88`` of the one for an architecture such as ``sm_90``; nothing where there is no such program."""
    return _version_of(_tritons_choice(arch) or _program())


def _tritons_choice(arch: str) -> str:
    """Triton brings several along and takes one by the architecture: what it says itself, where it can say."""
    choose = getattr(sys.modules.get("triton.backends.nvidia.compiler"), "get_ptxas", None)
    number = re.sub(r"\D", "", arch)
    if choose is None or not number:
        return ""
    try:
        return str(getattr(choose(int(number)), "path", ""))
    except BORDER:
        return ""


def _program() -> str:
    """Where it lies: named by Triton's variable, brought along by Triton, or on the path."""
    triton = sys.modules.get("triton")
    requested = os.environ.get("TRITON_PTXAS_PATH", "")
    if triton is not None and requested:
        return requested
    if triton is not None and getattr(triton, "__file__", None):
        own = Path(str(triton.__file__)).parent / "backends" / "nvidia" / "bin" / "ptxas"
        if own.is_file():
            return str(own)
    return shutil.which("ptxas") or ""


@functools.cache
def _version_of(program: str) -> str:
    if not program:
        return ""
    match = _VERSION.search(answer([program, "--version"], 10) or "")
    return match.group(1) if match else ""
