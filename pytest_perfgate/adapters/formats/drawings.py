"""Pictures as files: SVG, and PNG by what is at hand."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from math import ceil
from pathlib import Path

from pytest_perfgate.adapters.system.processes import answer, is_installed
from pytest_perfgate.model.errors import PerfgateError, written
from pytest_perfgate.model.metric import Block, Document, Picture, Section


def write_drawings(
    folder: Path, documents: Mapping[str, Document], alone: Callable[[str], str] = str
) -> tuple[Path, ...]:
    """Pictures by their section and name, or by their view, numbered where that is taken; the files written."""
    folder.mkdir(parents=True, exist_ok=True)
    files: dict[Path, None] = {}
    for view, document in documents.items():
        for section, drawn in _pictures(document.blocks):
            stem = "-".join(filter(None, (_UNNAMED.sub("-", section).strip("-."), drawn.name or view)))
            names = (f"{stem}.svg", *(f"{stem}_{number}.svg" for number in range(2, 10_000)))
            path = next(folder / name for name in names if folder / name not in files)
            path.write_text(alone(drawn.svg), encoding="utf-8")
            files[path] = None
    return tuple(files)


_UNNAMED = re.compile(r"[^\w.=]+")
"""What no name of a picture's file holds."""


def write_picture(path: Path, svg: str) -> None:
    """A drawing as SVG, or as PNG by the first program here that makes one."""
    kind = path.suffix.lower()
    if kind not in {".svg", ".png"}:
        what = f"{path.name!r} ends in neither .svg nor .png"
        raise PerfgateError("command-usage", what, mend=f"name {path.with_suffix('.svg')}")
    with written(str(path)):
        if kind == ".svg":
            path.write_text(svg, encoding="utf-8")
        else:
            path.write_bytes(_png(svg, path))


_SHARP = 2
"""Points of a PNG to a pixel of the drawing."""


def _png(svg: str, path: Path) -> bytes:
    if find_spec("cairosvg") is not None:
        return bytes(import_module("cairosvg").svg2png(bytestring=svg.encode(), scale=_SHARP))
    with tempfile.TemporaryDirectory() as folder:
        drawing, points = Path(folder, "drawing.svg"), Path(folder, "points.png")
        drawing.write_text(svg, encoding="utf-8")
        for command in _painters(svg, drawing, points):
            if is_installed(command[0], Path(folder), os.environ.get("PATH", "")):
                answer(command, _PAINTED_S)
                if points.exists():
                    return points.read_bytes()
    raise PerfgateError("picture-tool", "no program here makes a PNG", place=str(path))


_PAINTED_S = 60.0

_SIZE = re.compile(r'width="([\d.]+)" height="([\d.]+)"')


def _painters(svg: str, drawing: Path, points: Path) -> Iterator[list[str]]:
    """Commands that make a PNG of a drawing, the lightest first."""
    yield ["rsvg-convert", "--zoom", str(_SHARP), "--output", str(points), str(drawing)]
    size = _SIZE.search(svg)
    window = ",".join(str(ceil(float(side))) for side in size.groups()) if size else "760,400"
    for browser in ("chromium", "chromium-browser", "google-chrome"):
        yield [browser, "--headless", "--disable-gpu", "--hide-scrollbars", f"--force-device-scale-factor={_SHARP}",
               f"--user-data-dir={drawing.parent / 'profile'}", f"--window-size={window}", f"--screenshot={points}",
               *(["--no-sandbox"] if os.geteuid() == 0 else []), drawing.as_uri()]  # fmt: skip


def _pictures(blocks: Sequence[Block], section: str = "", depth: int = 0) -> Iterator[tuple[str, Picture]]:
    """Each with the section within a section that it stands in."""
    for block in blocks:
        if isinstance(block, Picture):
            yield section, block
        elif isinstance(block, Section):
            yield from _pictures(block.blocks, block.title if depth else "", depth + 1)
