"""What a test hands to the fixture in words that it cannot take, and how it is written instead."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from pytest_perfgate.model.errors import PerfgateError

_OWN = ("setup", "work", "check", "calls", "name", "limits")
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+>")
_LONGEST = 30


def unknown_arguments(fn: Any, names: Iterable[str]) -> PerfgateError:
    """Keywords of the measured function: the fixture has its own, and passes on none."""
    from pytest_perfgate.core.gate.nearest import nearest

    given = list(names)
    called = getattr(fn, "__name__", "")
    called = called if called.isidentifier() else "f"
    inside = ", ".join(f"{name}=..." for name in given)
    meant = [near for name in given for near in nearest(name, _OWN, 1)]
    mend = f"measure a call that has them: perfgate(lambda: {called}(..., {inside}))"
    mend = f"did you mean {meant[0]}=? Otherwise {mend}" if meant else mend
    why = f"its own keywords are {', '.join(_OWN)}; those of the function would be mistaken for them"
    return PerfgateError("call-wrong", f"perfgate() does not take {', '.join(given)}=", why=why, mend=mend)


def insist_on_callables(**given: Any) -> None:
    """What runs around a call is itself a call, or is not given."""
    for name, thing in given.items():
        if thing is not None and not callable(thing):
            mend = f"{name}=lambda: ..." if name == "setup" else f"{name}=lambda result: ..."
            raise PerfgateError("call-wrong", f"{name}= is a callable, and {thing!r:.60} is none", mend=mend)


def note_text(key: str, value: object) -> str:
    """A note as it joins the identity; what names an address is another one in each process."""
    text = str(value)
    if not _ADDRESS.search(text):
        return text
    why = "a note joins the identity, and an address differs in each process: nothing would be compared"
    mend = f'write what it stands for as a text, such as perfgate.note({str(key)!r:.{_LONGEST}}, "64x128")'
    raise PerfgateError("call-wrong", f"a note is {text:.60}, which names an address", why=why, mend=mend)
