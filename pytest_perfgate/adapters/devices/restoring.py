"""Puts clocks back however this process ends: in ``finally``, at exit, and on signals that end it."""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

SIGNALS = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP", "SIGINT") if hasattr(signal, name))


class Restoration:
    """Runs once, whoever asks first; signals that were there before are put back and served."""

    def __init__(self, restore: Callable[[], None]) -> None:
        self._restore = restore
        self._done = False
        self._owner = os.getpid()
        self._previous: dict[int, Any] = {}
        self._deferring = False
        self._late: list[int] = []
        """Signals that came while a card was being changed: they are heard when it is in order."""

    def arm(self) -> None:
        atexit.register(self.run)
        if threading.current_thread() is threading.main_thread():
            ends = (number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN)
            self._previous = {number: signal.signal(number, self._signalled) for number in ends}

    def run(self) -> None:
        """Restore; a forked child leaves it to its parent."""
        if self._done or os.getpid() != self._owner:
            return
        self._done = True
        with self.undisturbed():
            try:
                self._restore()
            except Exception as error:
                if self._late:  # which end this process before anybody can say it
                    _say(error)
                raise
            finally:
                self._disarm()

    def cancel(self) -> None:
        """There is nothing to put back."""
        self._done = True
        self._disarm()

    @contextmanager
    def undisturbed(self) -> Iterator[None]:
        """An impatient second Ctrl-C, or a signal between a change and its record, waits until this is done."""
        before, self._deferring = self._deferring, True
        try:
            yield
        finally:
            self._deferring = before
            late, self._late = self._late, []
            for number in late:
                os.kill(os.getpid(), number)

    def _disarm(self) -> None:
        atexit.unregister(self.run)
        if threading.current_thread() is threading.main_thread():
            for number, handler in self._previous.items():
                signal.signal(number, handler if handler is not None else signal.SIG_DFL)

    def _signalled(self, number: int, frame: FrameType | None) -> None:
        if self._deferring and os.getpid() == self._owner:
            self._late.append(number)
            return
        previous = self._previous.get(number)
        try:
            self.run()
        except Exception as error:  # noqa: BLE001 - the process is ending: say it and let the signal go on
            _say(error)
        if callable(previous):
            previous(number, frame)
        else:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)


def _say(error: Exception) -> None:
    sys.stderr.write(f"perfgate: {error}\n")
