"""The proof of an arm: which files the package under test was loaded from, and what they hold."""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Collection
from pathlib import Path

_LEFT = frozenset({".git", ".perfgate", "__pycache__", "bin", "build", ".pytest_cache"})
_INSTALLED = frozenset({"site-packages", "dist-packages", ".perfgate"})
_PAGES = (".md", ".rst")
_DESCRIBES = frozenset({"pyproject.toml", "setup.py", "setup.cfg", "MANIFEST.in", "conf.py"})
_BASELINES = re.compile(rb"^perfgate: \d+\r?\nbaselines:", re.MULTILINE)
_MARKS = frozenset({".pyc", ".pth"})


def loaded_modules(names: Collection[str]) -> tuple[tuple[str, str], ...]:
    """(file, hash) of every loaded module below these top-level names, sorted by file.

    With them every shared library that the arm has, and that was loaded from another place: a path in the environment
    or in the library's own header leads past the arm as an import does.
    """
    wanted = set(names)
    files = {
        str(file.resolve())
        for name, module in list(sys.modules.items())
        if name.split(".", 1)[0] in wanted and (file := _file_of(module)) is not None
    }
    files.update(foreign_libraries(_mapped(), Path(sys.prefix).parent))
    return tuple((file, _digest(Path(file))) for file in sorted(files))


def beside_modules(root: Path, names: Collection[str]) -> tuple[tuple[str, str], ...]:
    """(path from the root, hash) of loaded modules below it that are neither the package's nor installed."""
    places = {
        file.resolve()
        for name, module in list(sys.modules.items())
        if name.split(".", 1)[0] not in names and (file := _file_of(module)) is not None
    }
    top = root.resolve()
    inside = {place.relative_to(top).as_posix(): place for place in places if place.is_relative_to(top)}
    return tuple(
        (path, _digest(inside[path])) for path in sorted(inside) if not _INSTALLED.intersection(path.split("/"))
    )


def _file_of(module: object) -> Path | None:
    """The file that a module was loaded from.

    Modules that a library makes up name a file that is none (``torch.ops`` says ``_ops.py``); a lazy one would import
    or raise when asked, and is looked at without asking.
    """
    told = getattr(module, "__dict__", {}).get("__file__")
    file = Path(told) if isinstance(told, str) else None
    return file if file is not None and file.is_absolute() and file.is_file() else None


def foreign_libraries(mapped: Collection[str], arm: Path) -> list[str]:
    """Shared libraries from elsewhere whose names the arm has itself."""
    outside = {file for file in mapped if not Path(file).is_relative_to(arm)}
    if not outside or not (arm / "ready.json").is_file():
        return []
    own = {path.name for path in arm.rglob("*.so*")}
    return sorted(file for file in outside if Path(file).name in own)


def _mapped() -> set[str]:
    """Shared libraries in this process; none where the system does not say."""
    try:
        lines = Path("/proc/self/maps").read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return set()
    files = {line.split(maxsplit=5)[-1] for line in lines if line.count("/")}
    return {file for file in files if ".so" in Path(file).name and file.startswith("/")}


def content_of(folder: Path) -> str:
    """A hash of every file below a folder that code may load or read; what builds and Python leave is none.

    Neither are accepted times, nor pages of documentation where no code speaks of files of their kind.
    """
    held: dict[Path, str] = {}
    pages = set(_PAGES)
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder)
        if _is_content(inside, path):
            data = _bytes(path)
            held[inside] = hashlib.sha256(data).hexdigest()[:16]
            pages -= {suffix for suffix in pages if suffix.encode() in data and _is_code(inside)}
    said = hashlib.sha256()
    for inside, digest in held.items():
        if inside.suffix not in pages and not _is_accepted(folder / inside):
            said.update(f"{inside.as_posix()}\0{digest}\0".encode())
    return said.hexdigest()[:20]


def _is_content(inside: Path, path: Path) -> bool:
    if _LEFT.intersection(inside.parts) or path.suffix in _MARKS:
        return False
    return path.is_file() and not any(part.endswith((".dist-info", ".egg-info")) for part in inside.parts)


def _is_code(inside: Path) -> bool:
    """Whether a file may open others while it is measured: no page, no description of the package or its site."""
    hidden = any(part.startswith(".") for part in inside.parts)
    return not hidden and inside.suffix not in _PAGES and inside.name not in _DESCRIBES


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b"unreadable"


def _is_accepted(path: Path) -> bool:
    """A file of baselines, or of what surrounded them: nobody but the gate reads those."""
    if path.suffix == ".json" and path.parent.name == "environments":
        return any(map(_is_accepted, path.parent.parent.glob("*.yaml")))
    return path.suffix == ".yaml" and _BASELINES.search(_bytes(path)) is not None


def _digest(file: Path) -> str:
    try:
        return hashlib.sha256(file.read_bytes()).hexdigest()[:16]
    except OSError:
        return "unreadable"
