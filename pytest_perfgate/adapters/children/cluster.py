"""Many files on a Dask cluster, or one after the other here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from importlib.util import find_spec
from typing import TypeVar

from pytest_perfgate.model.errors import PerfgateError

T = TypeVar("T")
R = TypeVar("R")
LOCAL = "local"


def spread(address: str) -> Callable[[Callable[[T], R], Sequence[T]], Iterable[R]]:
    """How a function is applied to every item: ``tcp://HOST:PORT`` of a scheduler, ``local`` for processes here."""
    if not address:
        return map
    if find_spec("distributed") is None:
        raise PerfgateError(
            "cluster-tool", f"workers={address} needs Dask's distributed", mend="pip install distributed"
        )
    return lambda function, items: _on_cluster(address, function, items)


def _on_cluster(address: str, function: Callable[[T], R], items: Sequence[T]) -> Iterator[R]:
    from distributed import Client, as_completed

    try:
        client = Client(processes=True, threads_per_worker=1) if address == LOCAL else Client(address, timeout=10)
    except (OSError, ValueError, RuntimeError) as broken:
        raise PerfgateError("cluster-tool", f"no scheduler answers at {address}: {broken}") from broken
    with client:
        for future in as_completed(client.map(partial(attempted, function), items, pure=False)):
            found = future.result()
            if isinstance(found, PerfgateError):
                raise found
            yield found


def attempted(function: Callable[[T], R], item: T) -> R | PerfgateError:
    """What a worker sends back: a worker that raises writes a stack trace into its log."""
    try:
        return function(item)
    except PerfgateError as error:
        return error
