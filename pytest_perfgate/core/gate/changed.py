"""Settings that the change under test changes: the change is judged by them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

_FIRST = (
    "limits", "tests", "policy", "target", "mode", "baselines", "devices", "conviction", "pytest", "floor", "facts",
)  # fmt: skip
"""Keys that can take a limit away or loosen it, those first that do it plainest."""


def changed(then: Mapping[str, str], now: Mapping[str, str]) -> tuple[str, ...]:
    """Each key with what it was and what it is; first those that a gate stands on."""
    apart = (key for key in {**then, **now} if then.get(key) != now.get(key))
    return tuple(f"{key}: {then.get(key, 'unset')} -> {now.get(key, 'unset')}" for key in sorted(apart, key=_rank))


def requirements(then: str, now: str) -> tuple[str, ...]:
    """Of two lists as JSON, what one has and the other has not."""
    before, after = json.loads(then), json.loads(now)
    return (*(f"-{one}" for one in before if one not in after), *(f"+{one}" for one in after if one not in before))


def _rank(key: str) -> tuple[int, str]:
    word = re.split(r"[.\[:]", key, maxsplit=1)[0]
    word = "pytest" if ": " in key else word
    return (_FIRST.index(word) if word in _FIRST else len(_FIRST), key)
