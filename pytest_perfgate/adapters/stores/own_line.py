"""A line of a baseline file as we write it, read by one pattern: a thousand cases take no time."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from pytest_perfgate.adapters.stores.baseline_line import FIELDS, IDENTITY, WORD
from pytest_perfgate.model.measurement import Identity
from pytest_perfgate.model.quantity import TIME_UNITS

_SAFE = r"[^\"\\\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff\ud800-\udfff]*"
_SHARE, _COUNT, _DAY = r"([0-9]+(?:\.[0-9]+)?)%", r"([1-9][0-9]{0,8})", r"([0-9]{4}-[0-9]{2}-[0-9]{2})"
_TEXT = rf"\"({_SAFE})\""
_FORMS = {
    "scatter": _SHARE,
    "sittings": _COUNT,
    "blind": _SHARE,
    "processes": _COUNT,
    "commit": f"({WORD})",
    "who": _TEXT,
    "when": _DAY,
    "why": _TEXT,
    "expires": _DAY,
    "environment": f"({WORD})",
    "counted": _TEXT,
    "power": "(limited)",
    "identity": rf"\{{((?:(?:, )?[a-z]+: (?:{WORD}|\"{_SAFE}\"))*)\}}",
}
"""Each field behind the time, as we write it; one that has no form here is missed when this is imported."""
_OWN = re.compile(
    r"  '((?:[^'\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff\ud800-\udfff]|'')+)': \{time: ([0-9]+(?:\.[0-9]+)?)(ns|us|ms|s)"
    + "".join(f"(?:, {name}: {_FORMS[name]})?" for name in FIELDS[1:])
    + r"\}\Z"
)
"""A line without notes in its identity; any other is read as YAML."""
_PART = re.compile(rf"(?:, )?([a-z]+): (?:({WORD})|\"({_SAFE})\")")
_PARTS = frozenset(IDENTITY) - {"notes"}
_TEXTS = tuple(name for name in FIELDS if _FORMS.get(name) in {f"({WORD})", _TEXT, _DAY})
_LARGEST = 1e30


def own_fields(line: str, device: str) -> tuple[str, dict[str, Any]] | None:
    """A case's name, and what a Baseline is made of; None where the line has another form."""
    match = _OWN.match(line)
    if match is None:
        return None
    name, time, unit, scatter, sittings, blind, processes, *texts, power, identity = match.groups()
    if not 0 < float(time) < _LARGEST:
        return None
    fields: dict[str, Any] = {"time": float(time) * TIME_UNITS[unit]}
    if scatter:
        fields["scatter"] = float(scatter) / 100
    if sittings:
        fields["sittings"] = int(sittings)
    if blind:
        fields["blind"] = float(blind) / 100
    if processes:
        fields["processes"] = int(processes)
    fields |= {k: t for k, t in zip(_TEXTS, texts) if t is not None}
    if power:
        fields["limited"] = True
    if identity is not None:
        fields["identity"] = _identity(identity, device)
        if fields["identity"] is None:
            return None
    return name.replace("''", "'"), fields


@lru_cache(maxsize=256)
def _identity(text: str, device: str) -> Identity | None:
    """An identity without notes; most lines of a file have the same."""
    pairs = [(key, word or quoted) for key, word, quoted in _PART.findall(text)]
    parts = dict(pairs)
    return Identity(**{"device": device, **parts}) if len(parts) == len(pairs) and parts.keys() <= _PARTS else None
