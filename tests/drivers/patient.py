"""A patience with a driver that counts only once the driver hangs, so that a slow machine is never taken for that."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from types import SimpleNamespace

from pytest_perfgate.adapters.bindings import border


def wait(reached: Callable[[], object], most: float = 60.0) -> None:
    end = time.monotonic() + most
    while not reached() and time.monotonic() < end:
        time.sleep(0.005)


def patient_until(hung: Callable[[], object]) -> None:
    """From now on a question to a driver is not given up before the driver hangs."""

    class Question(threading.Thread):
        def join(self, timeout: float | None = None) -> None:
            wait(lambda: hung() or not self.is_alive())
            super().join(timeout)

    border.threading = SimpleNamespace(Thread=Question)
