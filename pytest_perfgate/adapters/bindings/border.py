"""The border to libraries that may be missing, half there, or without a driver."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from importlib import import_module
from typing import Any

from pytest_perfgate.model.device import Availability
from pytest_perfgate.model.errors import PerfgateError

BORDER: tuple[type[Exception], ...] = (ImportError, RuntimeError, AssertionError, OSError, KeyError)
"""What libraries raise when the driver or the device is missing; amdsmi fails at import with a KeyError."""


def quiet_import(name: str) -> Any:
    """A library that may warn at import, which a project's filters would turn into a failure of ours."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return import_module(name)


def quietly(ask: Callable[[], Any]) -> tuple[Any, str]:
    """An answer, and the first sentence of what the library warns of meanwhile; no filter makes an error of that."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        answer = ask()
    return answer, str(warned[0].message).partition(". ")[0].strip() if warned else ""


def probe_availability(name: str, version: Callable[[], str], *, also: Any = (), mend: str = "") -> Availability:
    """Try an instrument; a failure of any of the known kinds becomes its reason, and so does a driver's silence."""
    try:
        return Availability(name=name, usable=True, version=version())
    except PerfgateError as silent:
        if silent.code.name != "driver-silent":
            raise
        return Availability(name=name, usable=False, why=silent.what, mend=silent.mend)
    except Exception as error:
        if not isinstance(error, (*BORDER, *foreign(also))):
            raise
        return Availability(name=name, usable=False, why=sentence(error), mend=mend)


def foreign(also: Any) -> tuple[type[Exception], ...]:
    """A library's own errors, asked for late: importing it may be what fails."""
    try:
        found = also() if callable(also) else also
    except BORDER:
        return ()
    return tuple(found)


def faults(also: Any) -> tuple[type[Exception], ...]:
    """What a library raises when the device does not do what it was asked for."""
    return (RuntimeError, *foreign(also))


def sentence(error: BaseException) -> str:
    """The first line of an error with its kind, for people; where that only announces the next, both."""
    text, *more = [line.strip() for line in str(error).strip().splitlines()] or [""]
    if text.endswith(":") and more:
        text = f"{text} {more[0]}"
    kind = type(error).__name__
    return f"{kind}: {text}" if text else kind
