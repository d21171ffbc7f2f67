"""What is wrong with a drawing: marks outside of it, labels on each other, colours that cannot be read."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from xml.etree import ElementTree as ET

from pytest_perfgate.core.render.html import STYLE
from pytest_perfgate.model.metric import Picture

SVG = "{http://www.w3.org/2000/svg}"

LETTER = 0.5
"""Of its height the width of a letter in the narrower fonts: what overlaps in these overlaps in all."""

Box = tuple[float, float, float, float]


def flaws(picture: Picture) -> list[str]:
    """Of both widths; none where all is well."""
    return [
        f"{name}: {flaw}"
        for name, svg in (("wide", picture.svg), ("narrow", picture.narrow or picture.svg))
        for flaw in (*outside(svg), *overlapping(svg), *unfilled(svg))
    ]


def root(svg: str) -> ET.Element:
    return ET.fromstring(svg)


def texts(svg: str) -> list[str]:
    return [node.text or "" for node in root(svg).iter(f"{SVG}text")]


def areas(svg: str) -> list[Box]:
    """The boxes that carry a title: x, y, width, height."""
    return [box for node, _, box in marks(svg) if node.tag == f"{SVG}rect" and node.find(f"{SVG}title") is not None]


def marks(svg: str) -> Iterator[tuple[ET.Element, str, Box]]:
    """Every visible mark with the box around it: x, y, width, height."""
    yield from _marks(root(svg), 0.0, 0.0)


def _marks(node: ET.Element, dx: float, dy: float) -> Iterator[tuple[ET.Element, str, Box]]:
    for child in node:
        if child.tag == f"{SVG}defs":
            continue
        moved = re.match(r"translate\(([-\d.]+),([-\d.]+)\)$", child.get("transform", ""))
        x, y = (dx + float(moved[1]), dy + float(moved[2])) if moved else (dx, dy)
        if child.tag == f"{SVG}g":
            yield from _marks(child, x, y)
        elif box := _box(child):
            yield child, child.tag.removeprefix(SVG), (box[0] + x, box[1] + y, box[2], box[3])


def _box(node: ET.Element) -> Box | None:
    def number(name: str) -> float:
        return float(node.get(name, "0"))

    if node.tag == f"{SVG}rect" and "%" not in node.get("width", ""):
        return number("x"), number("y"), number("width"), number("height")
    if node.tag == f"{SVG}circle":
        r = number("r")
        return number("cx") - r, number("cy") - r, 2 * r, 2 * r
    if node.tag == f"{SVG}line":
        left, top = min(number("x1"), number("x2")), min(number("y1"), number("y2"))
        return left, top, abs(number("x1") - number("x2")), abs(number("y1") - number("y2"))
    if node.tag == f"{SVG}polyline":
        points = [tuple(map(float, pair.split(","))) for pair in node.get("points", "").split()]
        xs, ys = [x for x, _ in points], [y for _, y in points]
        return min(xs), min(ys), max(xs) - min(xs), max(ys) - min(ys)
    if node.tag == f"{SVG}text" and "rotate" not in node.get("transform", ""):
        wide = len(node.text or "") * 12 * LETTER
        shift = {"start": 0.0, "middle": 0.5, "end": 1.0}[node.get("text-anchor", "start")]
        return number("x") - wide * shift, number("y") - 9, wide, 11
    return None


def outside(svg: str) -> list[str]:
    """Marks beyond the edges."""
    wide, tall = (float(part) for part in root(svg).get("viewBox", "").split()[2:])
    return [
        f"{kind} {node.text or ''} at {box} is outside of {wide:g} x {tall:g}"
        for node, kind, box in marks(svg)
        if not all(map(math.isfinite, box))
        or box[0] < -1
        or box[1] < -1
        or box[0] + box[2] > wide + 1
        or box[1] + box[3] > tall + 1
    ]


def overlapping(svg: str) -> list[str]:
    """Labels that lie on each other."""
    labels = [(node.text, box) for node, kind, box in marks(svg) if kind == "text" and node.text]
    return [
        f"{a!r} lies on {b!r}"
        for at, (a, (x, y, w, h)) in enumerate(labels)
        for b, (x2, y2, w2, h2) in labels[at + 1 :]
        if x < x2 + w2 and x2 < x + w and y < y2 + h2 and y2 < y + h
    ]


def unfilled(svg: str) -> list[str]:
    """Patterns that are used and not there."""
    there = set(re.findall(r'<pattern id="([^"]+)"', svg))
    return [f"no pattern {name}" for name in set(re.findall(r"url\(#([^)]+)\)", svg)) - there]


def palettes() -> list[dict[str, str]]:
    """The colours of a page by day and by night."""
    day, night = (dict(re.findall(r"--(\w+):(#\w+)", part)) for part in STYLE.split("@media")[:2])
    return [day, {**day, **night}]


def contrast(one: str, two: str) -> float:
    """The ratio of luminances, as the guidelines for accessible pages count it."""
    light, dark = sorted((_luminance(one), _luminance(two)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _luminance(colour: str) -> float:
    digits = colour.lstrip("#")
    digits = "".join(d * 2 for d in digits) if len(digits) == 3 else digits
    parts = [int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    red, green, blue = (p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
