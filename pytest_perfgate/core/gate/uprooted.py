"""Where the lines of a project lay before its root moved: another folder, or one that held it too."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath


def forerunner(files: Mapping[str, bool], device: str, path: str, below: str) -> str:
    """The file that held the lines of a test file before; empty where there was none.

    Of a folder beside this one only a file that went: what is still there is another project's own. ``below`` is
    where this root lies, from the top of the repository: a root above it named the same test by a longer path.
    """
    tails = {f"/{device}/{path}.yaml": False}
    parts = PurePosixPath(below).parts
    tails |= {f"/{device}/{'/'.join(parts[at:])}/{path}.yaml": True for at in range(len(parts))}
    found = (
        one
        for one, kept in files.items()
        for tail, above in tails.items()
        if one.endswith(tail) and (above or not kept)
    )
    return next(found, "")
