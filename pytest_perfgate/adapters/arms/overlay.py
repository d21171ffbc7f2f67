"""Overlay environments, and checks of what was imported."""

from __future__ import annotations

import hashlib
import os
import re
import site
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path, PurePosixPath
from urllib.parse import unquote

from pytest_perfgate.adapters.arms import hash_of
from pytest_perfgate.adapters.system.processes import mapped_libraries, run_captured
from pytest_perfgate.model.errors import PerfgateError

PARENT = "zz_perfgate_parent.pth"  # after a .pth of the package under test, whose folders are the arm's own


def make_overlay(folder: Path, editable: Sequence[str]) -> tuple[Path, Path]:
    """Create an empty environment that sees the caller's packages; return its interpreter and site-packages.

    A ``.pth`` names the caller's folders. Their own ``.pth`` files are not run, so an editable install of the package
    under test stays hidden; other editable packages are listed.
    """
    result = run_captured([sys.executable, "-I", "-m", "venv", "--without-pip", "--symlinks", str(folder)], None)
    if result.returncode:
        output = (result.stdout + result.stderr).decode("utf-8", "replace").strip()[-400:]
        fix = "" if str(folder).isprintable() else "move the project to a folder whose path is text in UTF-8"
        raise PerfgateError("arm-not-made", f"python -m venv: {output}", place=str(folder), fix=fix)
    named, plain = folder / "bin" / Path(sys.executable).name, folder / "bin" / "python"
    python = named if named.exists() else plain
    packages = next(folder.rglob("site-packages"))
    (packages / PARENT).write_text("\n".join(parent_folders(editable)) + "\n", encoding="utf-8")
    return python, packages


def parent_folders(editable: Sequence[str]) -> list[str]:
    """Return the folders that the overlay adds at the end of the path."""
    user = [site.getusersitepackages()] if site.ENABLE_USER_SITE else []
    on_path = [p for p in sys.path if {"site-packages", "dist-packages"} & {*Path(p).parts} and "/_vendor" not in p]
    own_folder = str(Path(__file__).resolve().parents[3])
    folders = (Path(folder) for folder in (*editable, *site.getsitepackages(), *user, *on_path, own_folder))
    return list(dict.fromkeys(str(folder.resolve()) for folder in folders if folder.is_dir()))


def surroundings(editable: Sequence[str]) -> list[str]:
    """Return the other installed packages by name and version: other versions make another arm."""
    folders = parent_folders(editable)
    return [*folders, *sorted(entry.name for folder in folders for entry in Path(folder).glob("*.dist-info"))]


_NATIVE = {".c", ".cc", ".cpp", ".cxx", ".cu", ".cuh", ".h", ".hpp", ".hip", ".f", ".f90", ".f95", ".m", ".mm", ".zig"}
_CODE = _NATIVE | {".py", ".pyx", ".pyd", ".so", ".rs", ".go", ".jl", ".metal", ".cl", ".v"}
_TESTS = {"tests", "test"}


def inside_package(root: Path, path: str) -> bool:
    """Return whether pytest would import a test file through the package under test.

    It looks at parents with an ``__init__.py``; a top folder such as ``tests`` does not count as the package.
    """
    folder = (root / path).parent
    top = None
    while (folder / "__init__.py").is_file() and folder != root:
        top, folder = folder, folder.parent
    return top is not None and top.name not in _TESTS


def source_modules(folder: Path) -> tuple[str, ...]:
    """Return the top-level names that can be imported from a checkout, in a flat or a src layout."""
    names = set()
    for place in (folder, folder / "src"):
        if place.is_dir():
            names |= {p.parent.name for p in place.glob("*/__init__.py")}
            names |= {p.stem for p in place.glob("*.py") if not p.stem.startswith(("test_", "conftest", "setup"))}
            names |= {p.name.partition(".")[0] for built in ("*.so", "*.pyd", "*.pyx") for p in place.glob(built)}
    return tuple(sorted(filter(str.isprintable, names - _TESTS)))  # a name that is no UTF-8 cannot be sent


def with_conftests(paths: Sequence[str]) -> tuple[str, ...]:
    """Return test files and every ``conftest.py`` that applies to them."""
    parents = (parent for path in paths for parent in PurePosixPath(path).parents)
    return tuple(dict.fromkeys([*paths, *(str(parent / "conftest.py") for parent in parents)]))


def only_tests(folder: Path, paths: Sequence[str]) -> bool:
    """Return whether a checkout contains only tests, which are the same on both sides, so that nothing is checked."""
    tests = {folder / path for path in paths}
    files = (place for place in folder.rglob("*") if place.suffix in _CODE)
    code = (place for place in files if ".perfgate" not in place.relative_to(folder).parts)  # the root may lie in one
    return all(place in tests or place.name == "conftest.py" or place.name.startswith("test_") for place in code)


_LEFT = frozenset({".git", ".perfgate", "__pycache__", ".pytest_cache"})
_INSTALLED = frozenset({"site-packages", "dist-packages", ".perfgate"})
_PAGES = (".md", ".rst")
_DESCRIBES = frozenset({"pyproject.toml", "setup.py", "setup.cfg", "MANIFEST.in", "conf.py"})
_BASELINES = re.compile(rb"^perfgate: \d+\r?\nbaselines:", re.MULTILINE)


def loaded_modules(names: Collection[str]) -> tuple[tuple[str, str], ...]:
    """Return (file, hash) of loaded modules below these names, and of libraries that the arm or its checkout has."""
    mapped, arm = mapped_libraries(), Path(sys.prefix).parent
    files = {str(file) for file in _loaded(lambda name: name in names)}
    files.update(foreign_libraries(mapped, arm, names), (f for f in mapped if Path(f).is_relative_to(arm / "tree")))
    return tuple((file, hash_of(Path(file))[0]) for file in sorted(files))


def neighbour_modules(root: Path, names: Collection[str]) -> tuple[tuple[str, str], ...]:
    """Return (path from the root, hash) of loaded modules and libraries below it, not the package's or installed."""
    top, python = root.resolve(), Path(sys.base_prefix).resolve()
    files = _loaded(lambda name: name not in names).union(map(Path, mapped_libraries()))
    files -= _loaded(lambda name: name in names)  # an extension of the package is mapped too
    below = [file for file in files if file.is_relative_to(top)]
    if top in python.parents:  # else the project may lie below Python, such as /usr/src/app
        below = [file for file in below if not file.is_relative_to(python)]
    inside = {file.relative_to(top).as_posix(): file for file in below}
    paths = (path for path in sorted(inside) if not _INSTALLED.intersection(path.split("/")))
    return tuple((path, hash_of(inside[path])[0]) for path in paths)


def _loaded(is_wanted: Callable[[str], bool]) -> set[Path]:
    """Return the files of loaded modules with wanted top-level names."""
    modules = (module for name, module in list(sys.modules.items()) if is_wanted(name.partition(".")[0]))
    return {file.resolve() for file in map(_file_of, modules) if file is not None}


def _file_of(module: object) -> Path | None:
    """Return the file that a module was loaded from, by its dictionary: a lazy module's attributes import or raise.

    A library's synthetic modules may name no real file (``torch.ops`` says ``_ops.py``).
    """
    place = getattr(module, "__dict__", {}).get("__file__")
    file = Path(place) if isinstance(place, str) else None
    return file if file is not None and file.is_absolute() and file.is_file() else None


_NO_PACKAGE = ("test_", "conftest", "setup")
_SOURCES = ("pyproject.toml", "setup.py", ".git")  # entries of a folder that holds a project's source


def from_elsewhere(
    root: Path, projects: Sequence[str], packages: Collection[str], origin: Callable[[str], str | None]
) -> Iterator[tuple[str, Path, Path]]:
    """Yield packages of a repository that come from another source tree: (name, own file, other folder).

    ``packages`` limits them to top-level names. Left out: what the repository has elsewhere, and unchanged copies.
    """
    top = next((place for place in (root, *root.parents) if (place / ".git").exists()), root).resolve()
    tables = "\n".join(os.fsdecode(_bytes(root / one / "pyproject.toml")) for one in (".", *projects))
    titles = re.findall(r"(?m)^name *= *[\"']([^\"']+)", re.sub("[_.]", "-", tables.lower()))
    for place in dict.fromkeys(root / one / inside for one in (".", *projects) for inside in (".", "src")):
        for name, own in _own_modules(place, "", origin):
            file = Path(origin(name) or "")
            if file.name != own.name or not file.is_file() or (packages and name.partition(".")[0] not in packages):
                continue
            file = file.resolve()
            folder = file.parents[name.count(".") + (file.name == "__init__.py")]
            if _INSTALLED.intersection(file.parts):
                if changed := _changed_source(own, file, folder, titles):
                    yield name, changed, folder
            elif file != own.resolve() and _is_other_tree(file, folder, top):
                yield name, own, folder


def _is_other_tree(file: Path, folder: Path, top: Path) -> bool:
    """Return whether a file is of another source tree; inside of ours that is a git worktree, but no submodule."""
    if not file.is_relative_to(top):
        return any((place / entry).exists() for place in (folder, folder.parent) for entry in _SOURCES)
    marks = (place / ".git" for place in file.parents if place != top and place.is_relative_to(top))
    return any(Path(os.fsdecode(_bytes(mark))).parent.name == "worktrees" for mark in marks if mark.is_file())


def _changed_source(own: Path, file: Path, folder: Path, titles: Collection[str]) -> Path | None:
    """Return a source that differs from the loaded copy, which is older or came from another folder or an index."""
    named = (i for i in folder.glob("*.dist-info") if re.sub("[_.]", "-", i.name.partition("-")[0].lower()) in titles)
    infos = {*named, *(url.parent for url in folder.glob("*.dist-info/direct_url.json"))}
    installs = [(_bytes(info / "direct_url.json"), _bytes(info / "RECORD")) for info in infos]
    top = file.relative_to(folder).parts[0].partition(".")[0]
    for copy in sorted(_loaded(lambda name: name == top)) if installs else ():
        if copy.suffix == ".py" and "version" not in copy.stem and copy.is_relative_to(file.parent):
            source, entry = own.parent / copy.relative_to(file.parent), f"{copy.relative_to(folder).as_posix()},"
            differs = source.is_file() and _bytes(source) != _bytes(copy)
            urls = [url for url, record in installs if os.fsencode(entry) in record] if differs else []
            # a build may write other text than its source has, so it is later too; a wheel's times are as coarse as 2 s
            if any(source.stat().st_mtime - copy.stat().st_mtime > 2 or _is_elsewhere(url, source) for url in urls):
                return source
    return None


def _is_elsewhere(url: bytes, source: Path) -> bool:
    """Return whether there is no direct_url.json, or it names an existing folder that a source does not lie in."""
    place = Path(unquote(os.fsdecode(b"".join(re.findall(rb'"url": ?"file://([^"]*)"', url)))))
    inside = source.resolve().is_relative_to(place.resolve())
    return b'"url"' not in url or (place.is_absolute() and place.is_dir() and not inside)


def _own_modules(folder: Path, prefix: str, origin: Callable[[str], str | None]) -> Iterator[tuple[str, Path]]:
    """Yield (name, file) of modules that a folder has and that have an origin; of a namespace package those inside."""
    for entry in os.listdir(folder) if folder.is_dir() else ():  # noqa: PTH208 - a Path for each takes twice as long
        name = prefix + entry.removesuffix(".py")
        file = None if name in _TESTS or entry.startswith(_NO_PACKAGE) else origin(name)
        if file is None:
            continue
        inside = folder / (entry if entry.endswith(".py") else f"{entry}/__init__.py")
        if inside.is_file():
            yield name, inside
        elif not file:
            yield from _own_modules(folder / entry, f"{name}.", origin)


def loaded_origin(name: str) -> str | None:
    """Return the file of a loaded module, "" where it has none; None if it is not loaded."""
    return None if name not in sys.modules else str(_file_of(sys.modules[name]) or "")


def foreign_libraries(mapped: Collection[str], arm: Path, names: Collection[str]) -> list[str]:
    """Return loaded shared libraries from elsewhere whose names the arm has too.

    Left out: extension modules, which are checked as modules, and libraries of other packages than those under test.
    """
    outside = {file for file in mapped if not Path(file).is_relative_to(arm)}
    if not outside or not (arm / "ready.json").is_file():
        return []
    tagged = tuple(suffix for suffix in EXTENSION_SUFFIXES if suffix != ".so")
    own = {path.name for path in arm.rglob("*.so*") if not path.name.endswith(tagged)}
    return sorted(file for file in outside if Path(file).name in own and _installed_package(file) in {"", *names})


def _installed_package(file: str) -> str:
    """Return the package that an installed file belongs to; "" if it is not installed."""
    *_, inside = re.split(r"/(?:site|dist)-packages/", file)
    return "" if inside == file else re.split(r"[./]", inside)[0]


def content_of(folder: Path) -> str:
    """Return a hash of all files below a folder that code may load, read or start: no bytecode or accepted times.

    Pages outside of folders of tests and data are left out if no code mentions their file suffix.
    """
    digests, pages = dict[Path, str](), set(_PAGES)
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder)
        if _is_content(inside, path):
            digests[inside], mentioned = hash_of(path, pages if _is_code(inside) else set())
            pages -= mentioned
    hasher = hashlib.sha256()
    for inside, digest in digests.items():
        data = inside.suffix not in pages or {*_TESTS, "data"} & {*inside.parts}
        if data and not _is_accepted(folder / inside):
            hasher.update(os.fsencode(f"{inside.as_posix()}\0{digest}\0"))
    return hasher.hexdigest()[:20]


_LOADED = re.compile(r"[^\ud800-\udfff]+\.(?:py|so|pyd|dylib)", re.DOTALL)  # no import has a name that is no UTF-8


def sources_of(folder: Path) -> dict[str, str]:
    """Return the hash of each code file below a folder as built; :func:`loaded_modules` lists the loaded ones."""
    files = (path for path in folder.resolve().rglob("*") if _LOADED.fullmatch(str(path)) and path.is_file())
    return {str(path): hash_of(path)[0] for path in sorted(files)}


def _is_content(inside: Path, path: Path) -> bool:
    about = any(p.endswith((".dist-info", ".egg-info")) for p in inside.parts) and inside.name != "entry_points.txt"
    left = about or inside.parts[0] == "build" or inside.name == PARENT or path.suffix == ".pyc"  # build/ names its arm
    return not left and _LEFT.isdisjoint(inside.parts) and (path.is_file() or path.is_symlink())


def _is_code(inside: Path) -> bool:
    """Return whether a file may open others during measuring; pages and descriptions of the project do not."""
    hidden = any(part.startswith(".") for part in inside.parts)
    return not hidden and inside.suffix not in _PAGES and inside.name not in _DESCRIBES


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b"unreadable"


def _is_accepted(path: Path) -> bool:
    """Return whether a file holds baselines or their environments, which only the gate reads."""
    if path.suffix == ".json" and path.parent.name == "environments":
        return any(map(_is_accepted, path.parent.parent.rglob("*.yaml")))
    return path.suffix == ".yaml" and _BASELINES.search(_bytes(path)) is not None
