"""When samples are being taken: timers say it, who watches a device meanwhile asks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


def _nobody() -> None:
    """Is told."""


class Sampling:
    """Odd marks are inside of a sampled region; warming up, trials and a first call that compiles are outside."""

    def __init__(self) -> None:
        self.mark = 0
        self._listener: Callable[[], None] = _nobody

    def tell(self, listener: Callable[[], None] | None) -> Callable[[], None]:
        """Whom to call when a region begins and when it ends; returned is who was called before."""
        before, self._listener = self._listener, listener or _nobody
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
