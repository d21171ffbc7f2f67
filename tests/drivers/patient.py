"""A patience with a driver that counts only once the driver hangs, so that a slow machine is never taken for that."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import SimpleNamespace

from pytest_perfgate.adapters.bindings import border
from tests.waits import until


def patient_until(hung: Callable[[], object]) -> None:
    """From now on a question to a driver is not given up before the driver hangs."""

    class Question(threading.Thread):
        def join(self, timeout: float | None = None) -> None:
            until(lambda: hung() or not self.is_alive())
            super().join(timeout)

    border.threading = SimpleNamespace(Thread=Question)
