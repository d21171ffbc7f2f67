"""When samples are being taken: timers say it, who watches a device meanwhile asks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


def _nobody() -> None:
    """Is told."""


def _always() -> bool:
    """What nobody watches holds still."""
    return True


class Sampling:
    """Odd marks are inside of a sampled region; warming up, trials and a first call that compiles are outside."""

    def __init__(self) -> None:
        self.mark = 0
        self.loads = 0
        """Warm-ups so far: what a device did before the newest says nothing of whether it has settled."""
        self._listener: Callable[[], None] = _nobody
        self.steady: Callable[[], bool] = _always
        """Whether the device that is being warmed up has settled, as far as somebody watches it."""

    def tell(self, listener: Callable[[], None] | None) -> Callable[[], None]:
        """Whom to call when a region begins and when it ends; returned is who was called before."""
        before, self._listener = self._listener, listener or _nobody
        return before

    def ask(self, steady: Callable[[], bool] | None) -> Callable[[], bool]:
        """Whom to ask whether the device has settled; returned is who was asked before."""
        before, self.steady = self.steady, steady or _always
        return before

    @contextmanager
    def region(self) -> Iterator[None]:
        self.mark += 1
        self._listener()
        try:
            yield
        finally:
            self.mark += 1
            self._listener()


SAMPLING = Sampling()
"""Of this process: it measures one call at a time."""
