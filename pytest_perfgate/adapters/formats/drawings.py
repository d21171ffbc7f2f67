"""Pictures of documents as SVG files, one a picture."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from pytest_perfgate.model.document import Block, Document, Picture, Section


def write_drawings(folder: Path, documents: Mapping[str, Document]) -> tuple[Path, ...]:
    """Named after their view, numbered from the second on; the files written."""
    written = []
    for view, document in documents.items():
        for number, drawn in enumerate(_pictures(document.blocks), 1):
            path = folder / (f"{view}.svg" if number == 1 else f"{view}_{number}.svg")
            path.write_text(drawn.svg, encoding="utf-8")
            written.append(path)
    return tuple(written)


def _pictures(blocks: Sequence[Block]) -> Iterator[Picture]:
    for block in blocks:
        if isinstance(block, Picture):
            yield block
        elif isinstance(block, Section):
            yield from _pictures(block.blocks)
