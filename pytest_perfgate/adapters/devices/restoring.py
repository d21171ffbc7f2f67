"""Puts clocks back however this process ends: in ``finally``, at exit, and on signals that end it."""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
from collections.abc import Callable
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
        self._disarm()
        self._restore()

    def _disarm(self) -> None:
        atexit.unregister(self.run)
        if threading.current_thread() is threading.main_thread():
            for number, handler in self._previous.items():
                signal.signal(number, handler if handler is not None else signal.SIG_DFL)

    def _signalled(self, number: int, frame: FrameType | None) -> None:
        previous = self._previous.get(number)
        try:
            self.run()
        except Exception as error:  # noqa: BLE001 - the process is ending: say it and let the signal go on
            sys.stderr.write(f"perfgate: {error}\n")
        if callable(previous):
            previous(number, frame)
        else:
            os.kill(os.getpid(), number)
