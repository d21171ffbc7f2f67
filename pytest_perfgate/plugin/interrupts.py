"""An interrupt ends the run, also where something swallowed it on its way."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def interrupts_heard() -> Iterator[None]:
    """Raise an interrupt once more that Python lost: what is raised in a finaliser goes no further."""
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield
        return
    heard: list[int] = []
    served = before

    def note(number: int, frame: FrameType | None) -> None:
        heard.append(number)
        served(number, frame)

    signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGINT) is note:
            signal.signal(signal.SIGINT, before)
    if heard:
        raise KeyboardInterrupt
