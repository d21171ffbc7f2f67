"""The few CUDA driver calls that are needed, and the version of ptxas."""

from __future__ import annotations

import ctypes
import functools
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from inspect import signature
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
    """A driver call returned an error."""

    def __init__(self, name: str, status: int) -> None:
        self.status = status
        super().__init__(f"{name} returned {status}")


class CudaDriver:
    """Works in the current context, whether of torch, CuPy or cuda.core."""

    def __init__(self, load: Callable[[], Any] = lambda: ctypes.CDLL(LIBRARY)) -> None:
        self._load = load
        self._library: Any = None
        self._gate: ctypes.c_uint32 | None = None
        self._address = ctypes.c_uint64(0)
        self._capped: set[int | None] = set()
        """The contexts in which no cache lines persist."""

    def block(self, stream: int) -> Callable[[], None]:
        """Make the stream wait for a word of host memory; return the function that writes it."""
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
        """Reset persisting cache lines and forbid new ones; return what was done, in words."""
        context = ctypes.c_void_p(0)
        try:
            self._call("cuCtxGetCurrent", ctypes.byref(context))
            if context.value not in self._capped:
                self._call("cuCtxSetLimit", ctypes.c_int(_LIMIT_PERSISTING), ctypes.c_size_t(0))
                self._capped.add(context.value)
            self._call("cuCtxResetPersistingL2Cache")
        except (OSError, RuntimeError, AttributeError) as error:
            return f"not reset: {sentence(error)}"
        return "reset, limit 0"

    def memory(self, index: int) -> float | None:
        """Return the bytes of a device; None if the driver does not report them."""
        device, size = ctypes.c_int(0), ctypes.c_size_t(0)
        try:
            self._call("cuDeviceGet", ctypes.byref(device), ctypes.c_int(index))
            self._call("cuDeviceTotalMem_v2", ctypes.byref(size), device)
        except (OSError, RuntimeError, AttributeError):
            return None
        return float(size.value) or None

    def uuid(self, index: int) -> str:
        """Return the UUID of a device or MIG instance; "" if the driver does not report it."""
        device, buffer = ctypes.c_int(0), ctypes.create_string_buffer(16)
        try:
            self._call("cuDeviceGet", ctypes.byref(device), ctypes.c_int(index))
            self._call("cuDeviceGetUuid_v2", buffer, device)
        except (OSError, RuntimeError, AttributeError):
            return ""
        return str(UUID(bytes=buffer.raw))

    def synchronize(self) -> None:
        """Wait for every stream of the current context."""
        self._call("cuCtxSynchronize")

    def enter(self) -> None:
        """Enter the first device's primary context, for a process without one."""
        context = ctypes.c_void_p(0)
        self._call("cuInit", ctypes.c_uint(0))
        self._call("cuDevicePrimaryCtxRetain", ctypes.byref(context), ctypes.c_int(0))
        self._call("cuCtxSetCurrent", context)

    def untouched(self) -> bool:
        """Return whether nothing in this process has created a context yet."""
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
        """Return whether this process has initialised the driver; it is not loaded to find out."""
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
        """Give the device minimal work, setting a few bytes, and wait for it."""
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


class DriverInUse(CudaDriver):
    """The driver, if this process has loaded it: it is neither loaded nor initialised here."""

    def __init__(self, load: Callable[[], Any] = lambda: ctypes.CDLL(LIBRARY, mode=os.RTLD_NOLOAD)) -> None:
        super().__init__(load)

    def wait(self) -> Callable[[], None] | None:
        """Return a wait for the work of all contexts in use; None without one, or where earlier work has failed."""
        try:
            contexts = self._contexts()
            wait = self._wait_for(contexts)
            wait()
        except (OSError, RuntimeError, AttributeError, PerfgateError):
            return None
        return wait if contexts else None

    def _contexts(self) -> tuple[int, ...]:
        """Return the current context and the primary ones in use."""
        current, count = ctypes.c_void_p(0), ctypes.c_int(0)
        self._call("cuDeviceGetCount", ctypes.byref(count))  # fails without an initialised driver
        self._call("cuCtxGetCurrent", ctypes.byref(current))
        primary = [self._primary(index) for index in range(count.value) if self._active(index)]
        return tuple(dict.fromkeys(context for context in (current.value, *primary) if context))

    def _primary(self, index: int) -> int | None:
        """Return the primary context of a device in use; it gets no user more."""
        device, context = ctypes.c_int(0), ctypes.c_void_p(0)
        self._call("cuDeviceGet", ctypes.byref(device), ctypes.c_int(index))
        self._call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self._call("cuDevicePrimaryCtxRelease_v2", device)
        return context.value

    def _wait_for(self, contexts: Iterable[int]) -> Callable[[], None]:
        push, settle, pop = map(self._function, ("cuCtxPushCurrent_v2", "cuCtxSynchronize", "cuCtxPopCurrent_v2"))
        handles, popped = tuple(map(ctypes.c_void_p, contexts)), ctypes.byref(ctypes.c_void_p(0))

        def wait() -> None:
            for handle in handles:
                status = push(handle)
                if not status:
                    status = settle()
                    pop(popped)
                if status:
                    raise PerfgateError("device-lost", f"the work of the call failed: CUDA returned {status}")

        return wait

    def _function(self, name: str) -> Callable[..., int]:
        function: Callable[..., int] = getattr(self._library, name)
        return function


_VERSION = re.compile(r"\bV(\d+(?:\.\d+)+)")


def ptxas_version(arch: str = "") -> str:
    """Return the version, such as ``13.0.88``, of the ptxas for an architecture; "" without one."""
    return _version_of(_tritons_choice(arch) or _program())


def _tritons_choice(arch: str) -> str:
    """Return the ptxas that Triton itself chooses for an architecture, if it can say so."""
    choose = getattr(sys.modules.get("triton.backends.nvidia.compiler"), "get_ptxas", None)
    number = re.sub(r"\D", "", arch)
    if choose is None or not number:
        return ""
    with suppress(TypeError, ValueError, *BORDER):
        tool = choose(*[int(number)][: len(signature(choose).parameters)])  # Triton 3.4 and 3.5 have one for all
        return str(tool[0] if isinstance(tool, tuple) else getattr(tool, "path", ""))  # a pair in 3.3
    return ""


def _program() -> str:
    """Return the path of ptxas: named by Triton's variable, included in Triton, or on the path."""
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
