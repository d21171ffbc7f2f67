"""Asking a driver that may never answer: in a thread of its own, which is left behind if it does not come back."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial, wraps
from typing import Any, Generic, ParamSpec, TypeVar

from pytest_perfgate.model.errors import PerfgateError

START_S = 60.0
"""For a library's start, which on a machine of many cards without a resident driver wakes each of them."""
PATIENCE_S = 10.0
"""For anything else."""
P = ParamSpec("P")
T = TypeVar("T")
_here = threading.local()
_silent: dict[str, str] = {}


def silence(library: str) -> str:
    """Why a library is not asked any more in this process; empty where it has always answered."""
    return _silent.get(library, "")


@contextmanager
def expendable() -> Iterator[None]:
    """This thread may wait for ever: whoever needs it waits for so long and no longer."""
    _here.expendable = True
    try:
        yield
    finally:
        _here.expendable = False


def patiently(library: str, what: str, ask: Callable[[], T], patience_s: float | None = None) -> T:
    """The answer, or an error once patience is over; from then on the library is not asked again."""
    if getattr(_here, "expendable", False):
        return ask()
    if silence(library):
        raise PerfgateError("driver-silent", silence(library))
    patience_s = PATIENCE_S if patience_s is None else patience_s
    asked = _Asked(ask)
    thread = threading.Thread(target=asked.run, name=f"perfgate-{library}", daemon=True)
    try:
        thread.start()
    except RuntimeError:  # at exit Python 3.12 starts no more threads; clocks are put back all the same
        return ask()
    thread.join(patience_s)
    if thread.is_alive():
        _silent[library] = f"{library} did not answer within {patience_s:g} s, asked for {what}"
        raise PerfgateError("driver-silent", silence(library))
    return asked.told()


class _Asked(Generic[T]):
    """A question on its way to a driver."""

    def __init__(self, ask: Callable[[], T]) -> None:
        self._ask = ask
        self._answer: list[T] = []
        self._error: BaseException | None = None

    def run(self) -> None:
        with expendable():
            try:
                self._answer.append(self._ask())
            except BaseException as error:  # noqa: BLE001 - whoever asked is to have it
                self._error = error

    def told(self) -> T:
        if self._error is not None:
            raise self._error
        return self._answer[0]


def patient(method: Callable[P, T]) -> Callable[P, T]:
    """A method that asks a driver, of an object that names its ``maker``'s library."""

    @wraps(method)
    def asked(*args: P.args, **kwargs: P.kwargs) -> T:
        owner: Any = args[0]
        return patiently(owner.maker, method.__name__, partial(method, *args, **kwargs))

    return asked
