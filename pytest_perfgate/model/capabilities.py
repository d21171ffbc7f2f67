"""Capabilities: what a runtime, an event, clocks or an inspector may offer beyond its port.

Whoever uses one asks with ``isinstance``: a class has a capability by having its method or attribute.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, runtime_checkable

from pytest_perfgate.model.device import Device
from pytest_perfgate.model.plan import Plan
from pytest_perfgate.model.verdict import Posting


@runtime_checkable
class SupportsWait(Protocol):
    """A runtime whose device works beside the host, which can wait for one of its events."""

    def wait(self, event: Any) -> None:
        """Return when the device has passed this event; other queues may still be busy."""


@runtime_checkable
class SupportsRelease(Protocol):
    """A runtime that can let go of the memory that flushing took."""

    def release(self) -> None: ...


@runtime_checkable
class SupportsTouches(Protocol):
    """A runtime that can tell whether a call works with its library; one that cannot is believed."""

    def touches(self, call: Any) -> bool: ...


@runtime_checkable
class SupportsAdopt(Protocol):
    """A runtime that times on the queue that a call uses."""

    def adopt(self, call: Any) -> None: ...


@runtime_checkable
class SupportsOwnQueue(Protocol):
    """A runtime that can make a queue where no call has brought one."""

    def own_queue(self) -> None: ...


@runtime_checkable
class SupportsClock(Protocol):
    """A runtime with a clock of its own, such as a simulated one: nanoseconds, ever increasing."""

    def clock(self) -> int: ...


@runtime_checkable
class SupportsCuda(Protocol):
    """A runtime that says whether its device is driven by CUDA: then CUPTI can time it."""

    @property
    def cuda(self) -> bool: ...


@runtime_checkable
class SupportsLook(Protocol):
    """An event that hands out its library's own way to read a pair, in milliseconds."""

    def look(self, earlier: Any) -> tuple[Callable[[Any], float], Any]:
        """A function and what to call it with, looked up before the pair is read."""


@runtime_checkable
class SupportsBind(Protocol):
    """A call that takes the arrays that its set-up returns, so that it can be bound to several sets of them."""

    def bind(self, given: Any) -> Callable[[], Any]: ...


@runtime_checkable
class SupportsMemory(Protocol):
    """A runtime whose library counts what it gives out of the device's memory."""

    def memory_of(self, call: Callable[[], object]) -> tuple[int, int]:
        """Bytes that a call holds at the most beyond what stood before it, and how often it asks for memory."""


@runtime_checkable
class SupportsSettled(Protocol):
    """Clocks that decide before the first sample whether they can be locked where a plan wants to try."""

    def settled(self, device: Device, plan: Plan) -> tuple[Plan, str]:
        """The plan as it will be measured, and why the clocks are only observed."""


@runtime_checkable
class SupportsTellWaits(Protocol):
    """Clocks that may wait, such as for a hot device, and say so."""

    def tell_waits(self, tell: Callable[[str], None] | None) -> None: ...


@runtime_checkable
class SupportsKernels(Protocol):
    """A profiler that can be told to collect some kernels only."""

    def only(self, kernel: str, launches: int = 0) -> Any:
        """The same profiler for kernels whose name holds this, and for so many launches of them; 0 is all."""


@runtime_checkable
class SupportsPosting(Protocol):
    """A delivery that posts where people discuss a change."""

    def posting(self, how: Posting) -> Any:
        """The same delivery that posts as it is told: under a key, changes only, or nothing at all."""


@runtime_checkable
class SupportsOperators(Protocol):
    """An inspector that counts the work of operators, the user's own among them."""

    operators: Mapping[str, Any]


@runtime_checkable
class SupportsInputs(Protocol):
    """A ``check=`` that wants to know what the call is given."""

    def on_inputs(self, inputs: Callable[[], tuple[Any, ...]]) -> Callable[[Any], Any]:
        """The check of a call with these inputs, made when it asks for them."""
