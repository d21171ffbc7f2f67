"""Hooks that only pytest sees: those of a conftest that the settings do not name."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

_HOOK = b"def pytest_perfgate_"
_SKIPPED = {"node_modules", "site-packages", "build", "dist", "__pycache__"}
_FOLDERS = 2000


def invisible(root: Path, plugins: Sequence[str]) -> tuple[Path, ...]:
    """Conftests below a folder that define our hooks and are no plugin of the command line."""
    named = {name.replace(".", "/") + ".py" for name in plugins}
    paths = (path.relative_to(root) for path in _conftests(root))
    return tuple(p for p in paths if p.as_posix() not in named and _HOOK in (root / p).read_bytes())


def _conftests(root: Path) -> Iterator[Path]:
    for number, (folder, names, files) in enumerate(os.walk(root)):
        if number > _FOLDERS:
            return
        names[:] = [n for n in names if not n.startswith(".") and n not in _SKIPPED]
        names[:] = [n for n in names if not (Path(folder) / n / "pyvenv.cfg").exists()]
        if "conftest.py" in files:
            yield Path(folder) / "conftest.py"
