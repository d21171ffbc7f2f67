"""One case that cannot be shown costs no other its place: what stands there instead says so."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from pytest_perfgate.model.faults import SHOWING, fault_sentence

T = TypeVar("T")


def shown(render: Callable[[], T], instead: Callable[[str], T]) -> T:
    """What a renderer makes; where it stumbles, what ``instead`` makes of the sentence that says so."""
    try:
        return render()
    except Exception as fault:  # noqa: BLE001 - whatever it is, the others are shown
        return instead(fault_sentence(fault, "showed this", SHOWING))
