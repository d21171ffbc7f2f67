"""Cost against size as a small SVG: both axes logarithmic, so a straight line of slope one is linear cost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import log10
from pathlib import Path

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 560, 320, 60, 20, 40, 50
Point = tuple[float, float]
Scale = Callable[[float], float]


def write_plot(path: Path, seconds: Sequence[Point], memory: Sequence[Point], subtitle: str) -> None:
    """Points of (megabytes of trace, processor seconds) and of (megabytes of trace, peak megabytes)."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(_lines(seconds, memory, subtitle)) + "\n", encoding="utf-8")


def _lines(seconds: Sequence[Point], memory: Sequence[Point], subtitle: str) -> list[str]:
    largest = seconds[-1]
    linear = [(size, largest[1] * size / largest[0]) for size, _ in seconds]
    return [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}">',
        '<g font-family="sans-serif" font-size="11">',
        "<title>Cost of the report against the size of the trace</title>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<text x="{LEFT}" y="16" font-size="13">Report of a generated trace: processor time and memory</text>',
        f'<text x="{LEFT}" y="31" fill="#555">{subtitle}</text>',
        *_axes(),
        _path(linear, _second, "#999", 'stroke-dasharray="4 4"'),
        *_series(seconds, (_second, 16), "#1f5fa8", "{:.3g} s"),
        *_series(memory, (_megabyte, -7), "#b3541e", "{:.0f} MB"),
        f'<text x="{WIDTH - RIGHT}" y="{HEIGHT - 8}" text-anchor="end">size of the trace, MB</text>',
        "</g></svg>",
    ]


def _axes() -> list[str]:
    lines = []
    for power in range(1, 4):
        x = _across(10**power)
        lines.append(f'<path d="M{x:.1f} {TOP}V{HEIGHT - BOTTOM}" stroke="#ddd"/>')
        lines.append(f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{10**power:,}</text>')
    for power in range(-1, 3):
        y = _second(10.0**power)
        lines.append(f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="#ddd"/>')
        lines.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{10.0**power:g} s</text>')
    return lines


def _series(points: Sequence[Point], place: tuple[Scale, int], colour: str, shown: str) -> list[str]:
    up, aside = place
    lines = [_path(points, up, colour)]
    for size, value in points:
        x, y = _across(size), up(value)
        lines.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>')
        lines.append(
            f'<text x="{x:.1f}" y="{y + aside:.1f}" text-anchor="middle" fill="{colour}">{shown.format(value)}</text>'
        )
    return lines


def _path(points: Sequence[Point], up: Scale, colour: str, more: str = "") -> str:
    steps = " ".join(f"{_across(size):.1f},{up(value):.1f}" for size, value in points)
    return f'<polyline points="{steps}" fill="none" stroke="{colour}" {more}/>'


def _across(megabytes: float) -> float:
    return LEFT + (WIDTH - LEFT - RIGHT) * (log10(megabytes) - 0.85) / 2.3


def _second(seconds: float) -> float:
    return HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * (log10(seconds) + 1.1) / 3.2


def _megabyte(megabytes: float) -> float:
    """Memory in units of 12 MB on the seconds' axis: its own labels tell the value."""
    return _second(megabytes / 12)
