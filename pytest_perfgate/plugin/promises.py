"""What a call can return in place of having done its work."""

from __future__ import annotations

import gc
import itertools
from collections.abc import AsyncGenerator, Coroutine, Generator, Iterable, Iterator
from contextlib import suppress
from typing import Any

from pytest_perfgate.model.errors import PerfgateError

_FUTURE = "a future"
_LIST = "lambda: list(f()), or a loop over it"
_STEPPING = (
    *("accumulate", "batched", "combinations", "combinations_with_replacement", "compress", "dropwhile"),
    *("filterfalse", "groupby", "pairwise", "permutations", "product", "starmap", "takewhile", "zip_longest"),
)
"""Of itertools; some versions of Python lack one or another."""
_STEPS = [getattr(itertools, name) for name in _STEPPING if hasattr(itertools, name)]
_WORKING: tuple[Any, ...] = (map, filter, zip, type(iter(int, 1)), *_STEPS)
"""Iterators that work at each step, whatever they go through; ``re.finditer`` calls as ``iter(f, end)`` does."""
_PASSING: tuple[Any, ...] = (enumerate, itertools.chain, itertools.cycle, itertools.islice, type(itertools.tee(())[0]))
"""Those that hand on what is there: lazy where what they go through is."""
_CARRYING: tuple[Any, ...] = (*_PASSING, list, tuple, type(iter([])), type(iter(())))
_PROMISES: tuple[tuple[Any, str, str], ...] = (
    (Coroutine, "a coroutine", "lambda: asyncio.run(f()), or a loop's run_until_complete"),
    (Generator, "a generator", _LIST),
    (AsyncGenerator, "an async generator", "lambda: asyncio.run(g()), where the coroutine g() goes through it"),
    (_WORKING, "an iterator", _LIST),
)
_LAZY = (
    (("add_done_callback",), _FUTURE, "lambda: f().result(), or a loop's run_until_complete"),
    (("__dask_graph__", "compute"), "a graph", "lambda: f().compute()"),
    (("collect_schema", "collect"), "a query", "lambda: f().collect()"),
)
"""Methods by which classes that nobody needs to import are known: futures of any library, dask, polars."""
_LOOKED_AT = 1000
"""Of a collection: what is longer holds more of the same."""
_DEEPEST = 8


def refuse_unrun(result: object) -> None:
    """What a call only promised was not measured: its making takes no time."""
    if told := _told(result):
        raise _unrun(f"{told[0]} that nobody ran: only its making was timed", f"measure {told[1]}")
    if type(result) in {list, tuple}:
        _refuse_held(result)


def _refuse_held(results: Any) -> None:
    """Several handed to a pool at once: the first tells; one beside what was done is lazy all the same."""
    looked = results[:_LOOKED_AT]
    found = next(filter(None, map(_told, looked)), None)
    if found is None:
        return
    if found[0] == _FUTURE and _told(looked[0]) == found:
        said = "futures that nobody waited for: only their making was timed"
        raise _unrun(said, "measure lambda: [one.result() for one in f()]")
    for unrun in looked:
        _closed(unrun)
    said = f"a {type(results).__name__} with {found[0]} that nobody ran: only its making was timed"
    raise _unrun(said, "let the call run it, or go through it, before it returns")


def _unrun(said: str, mend: str) -> PerfgateError:
    return PerfgateError("call-wrong", f"the call returned {said}", mend=mend)


def _told(result: object) -> tuple[str, str] | None:
    """What a thing promises and how that is measured; a thing that raises at being asked promises nothing."""
    try:
        found = next(_promised(result), None)
    except Exception:  # noqa: BLE001 - anybody's code
        return None
    if found:
        _closed(result)
    return found


def _closed(result: object) -> None:
    """Nobody is to be warned that it was never awaited."""
    with suppress(Exception):
        if isinstance(result, (Coroutine, Generator)):
            result.close()


def _promised(result: object) -> Iterator[tuple[str, str]]:
    yield from ((what, mend) for kind, what, mend in _PROMISES if isinstance(result, kind))
    yield from ((what, mend) for methods, what, mend in _LAZY if _has(result, methods) and not _plain(result))
    if type(result) in _PASSING and _lazy_source(result):
        yield "an iterator", _LIST


def _has(thing: object, methods: Iterable[str]) -> bool:
    return all(callable(getattr(type(thing), method, None)) for method in methods)


def _plain(thing: Any) -> bool:
    """One that could hold a graph of dask and holds none, as a data set of xarray in memory."""
    return _has(thing, ("__dask_graph__",)) and thing.__dask_graph__() is None


def _lazy_source(passing: object, depth: int = _DEEPEST) -> bool:
    """Whether what an iterator hands on comes of one that works at each step; nothing of it is taken."""
    sources = gc.get_referents(passing)[:_LOOKED_AT]
    if any(isinstance(source, (Generator, *_WORKING)) for source in sources):
        return True
    return depth > 0 and any(_lazy_source(source, depth - 1) for source in sources if type(source) in _CARRYING)
