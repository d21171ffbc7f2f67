"""What a call can return in place of having done its work."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Coroutine, Generator, Iterable, Iterator
from itertools import accumulate, starmap
from typing import Any

from pytest_perfgate.model.errors import PerfgateError

_LIST = "lambda: list(f()), or a loop over it"
_PROMISES: tuple[tuple[Any, str, str], ...] = (
    (Coroutine, "a coroutine", "lambda: asyncio.run(f()), or a loop's run_until_complete"),
    (Generator, "a generator", _LIST),
    (AsyncGenerator, "an async generator", "lambda: asyncio.run(g()), where the coroutine g() goes through it"),
    ((map, filter, zip, starmap, accumulate), "an iterator", _LIST),
)
_LAZY = (
    (("add_done_callback",), "a future", "lambda: f().result(), or a loop's run_until_complete"),
    (("__dask_graph__", "compute"), "a graph", "lambda: f().compute()"),
    (("collect_schema", "collect"), "a query", "lambda: f().collect()"),
)
"""Methods by which classes that nobody needs to import are known: futures of any library, dask, polars."""


def refuse_unrun(result: object) -> None:
    """What a call only promised was not measured: its making takes no time."""
    for what, mend in _promised(result):
        if isinstance(result, (Coroutine, Generator)):
            result.close()
        said = f"the call returned {what} that nobody ran: only its making was timed"
        raise PerfgateError("call-wrong", said, mend=f"measure {mend}")
    if type(result) in {list, tuple}:
        _refuse_futures(result)


def _promised(result: object) -> Iterator[tuple[str, str]]:
    yield from ((what, mend) for kind, what, mend in _PROMISES if isinstance(result, kind))
    yield from ((what, mend) for methods, what, mend in _LAZY if _has(result, methods) and not _plain(result))


def _has(thing: object, methods: Iterable[str]) -> bool:
    return all(callable(getattr(type(thing), method, None)) for method in methods)


def _plain(thing: Any) -> bool:
    """One that could hold a graph of dask and holds none, as a data set of xarray in memory."""
    return _has(thing, ("__dask_graph__",)) and thing.__dask_graph__() is None


def _refuse_futures(results: Any) -> None:
    """Several handed to a pool at once: the first tells."""
    if results and _has(results[0], _LAZY[0][0]):
        said = "the call returned futures that nobody waited for: only their making was timed"
        raise PerfgateError("call-wrong", said, mend="measure lambda: [one.result() for one in f()]")
