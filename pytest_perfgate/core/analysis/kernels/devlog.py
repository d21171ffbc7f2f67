"""A kernel's log: one entry a version, written again without losing what people wrote into it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from pytest_perfgate.core.analysis.kernels.contract import root_cause, said
from pytest_perfgate.core.analysis.kernels.diagnosis import Diagnosis
from pytest_perfgate.core.analysis.roofline import Placement
from pytest_perfgate.core.render.markdown import escape
from pytest_perfgate.core.render.quantity import ABSENT, quantity, signed
from pytest_perfgate.model.quantity import Dimension
from pytest_perfgate.model.values import array_value

BY_HAND = ("Issues", "Insights")
"""What people write; kept word for word."""
_EMPTY = "- (nothing written yet)"


@array_value
class Version:
    """One version of a kernel as it was measured."""

    name: str
    changed: str
    diagnosis: Diagnosis
    device: str
    dtype: str = ""
    parameters: Mapping[str, str]
    locked: bool = False
    placement: Placement | None = None


def devlog_entry(now: Version, then: Version | None = None, kept: Mapping[str, str] | None = None) -> str:
    """The entry as Markdown."""
    return "\n".join(_lines(now, then, kept or {})) + "\n"


def _lines(now: Version, then: Version | None, kept: Mapping[str, str]) -> Iterator[str]:
    yield from (f"## {now.name}", "", now.changed, "")
    locked = ["locked clocks"] if now.locked else []
    shape = [f"{name}={text}" for name, text in now.parameters.items()]
    yield f"**Performance** ({', '.join([now.device, *locked, *filter(None, [now.dtype]), *shape])}):"
    yield from ("", "| Metric | Value | vs Previous |", "|---|---:|---:|")
    for name, (value, text) in _figures(now).items():
        before = _figures(then)[name][0] if then else None
        yield f"| {name} | {escape(text)} | {_change(name, value, before)} |"
    yield from ("", f"**Bottleneck**: {said(now.diagnosis)}. {root_cause(now.diagnosis)}")
    for title in BY_HAND:
        yield from ("", f"**{title}**:", "", kept.get(title) or _EMPTY)


def _figures(version: Version) -> dict[str, tuple[float | None, str]]:
    numbers, placed = version.diagnosis.numbers, version.placement
    rows = (
        ("Duration", numbers.get("duration"), Dimension.TIME),
        ("Achieved TFLOPs/s", placed.flops_rate if placed else None, Dimension.FLOPS),
        ("Achieved GB/s", placed.bandwidth if placed else None, Dimension.BANDWIDTH),
        ("Occupancy", numbers.get("occupancy"), Dimension.FRACTION),
        ("TC Util", numbers.get("tc_util"), Dimension.FRACTION),
    )
    return {
        name: (value, quantity(value, dimension) if value is not None else ABSENT) for name, value, dimension in rows
    }


def _change(name: str, now: float | None, then: float | None) -> str:
    if now is None or not then:
        return "--"
    if name == "Duration":
        gain = then / now - 1
        return f"{abs(gain) * 100:.1f} % {'faster' if gain >= 0 else 'slower'}"
    return signed(now / then - 1)


def updated_devlog(text: str, now: Version, then: Version | None = None) -> str:
    """The log with this version's entry at its end, or in its old place when it was there already."""
    found = re.search(rf"^## {re.escape(now.name)}[ \t]*$", text, re.MULTILINE)
    if found is None:
        return f"{text.rstrip()}\n\n{devlog_entry(now, then)}".lstrip()
    following = re.search(r"^## ", text[found.end() :], re.MULTILINE)
    end = found.end() + following.start() if following else len(text)
    entry = devlog_entry(now, then, _by_hand(text[found.start() : end]))
    return f"{text[: found.start()]}{entry}{chr(10) if following else ''}{text[end:]}"


def _by_hand(entry: str) -> dict[str, str]:
    """What stands under each heading that belongs to people."""
    kept = {}
    for title in BY_HAND:
        found = re.search(rf"^\*\*{title}\*\*:[ \t]*\n(.*?)(?=^\*\*|\Z)", entry, re.MULTILINE | re.DOTALL)
        body = found[1].strip() if found else ""
        if body and body != _EMPTY:
            kept[title] = body
    return kept
