"""Builds a revision by pip or by the project's own commands, and says why it cannot be built."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module, metadata
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_perfgate.adapters.system.processes import TIMED_OUT, abridged, answer, log_tail, run_logged
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.values import value

if TYPE_CHECKING:
    from pytest_perfgate.model.verdict import ArmSettings

_VERSION_S, _KILLED, _PROJECT, _SHOWN = 30.0, 137, {"pyproject.toml", "setup.py"}, 3

_STEERED = ("CMAKE", "CUDA", "CXX", "HIP", "LD", "MESON", "NVCC", "PKG_CONFIG", "ROCM", "RUST", "SKBUILD", "TORCH_CUDA")
_FLAGS = ("CC", "CFLAGS", "CPATH", "CPPFLAGS", "LIBRARY_PATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "ARCHFLAGS")
_COMPILERS, _MODELS = ("nvcc", "hipcc", "rustc"), ("model name", "flags", "CPU part", "Features", "Model:")


@value
class BuildPlaces:
    """The places of a build: the folder to install into, a scratch folder, the log, and the commands' environment."""

    packages: Path
    scratch: Path
    log: Path
    environment: tuple[tuple[str, str], ...] = ()


def build_into(site: BuildPlaces, source: Path, settings: ArmSettings) -> None:
    """Install every project of a checkout, non-editable; the log keeps all output."""
    site.log.touch()
    for project in settings.projects:
        folder = source / project
        if not folder.is_dir():
            raise PerfgateError("arm-no-project", f"the revision has no folder {project!r}")
        lines = dict(settings.builds).get(project, "").splitlines() or settings.build
        if lines:
            _by_command(lines, folder, site, settings.timeout_s)
        elif is_buildable(folder):
            if project == "." and packaging_fix(folder, settings.accepted):
                shutil.rmtree(folder / settings.accepted, ignore_errors=True)
            _by_pip(folder, site, settings.timeout_s)
        else:
            where = "its root" if project == "." else f"its folder {project!r}"
            raise nothing_in(source, f"no pyproject.toml or setup.py that builds in {where}")


_FULL = ("No space left on device", "Disk quota exceeded", "not enough space", "No usable temporary directory")
_LEAST = 4 << 20


@contextmanager
def explained(side: str, home: Path) -> Iterator[None]:
    """Add the side to an error; a full disk is reported as such, wherever it occurs."""
    try:
        yield
    except PerfgateError as fault:
        what = f"{side}: {fault.what}"
        if _is_full(fault.what, home):
            raise _no_room(what, home) from fault
        raise PerfgateError(fault.code.name, what, why=fault.why, fix=fault.fix, place=fault.place) from fault
    except OSError as fault:
        what = f"{side}: {fault}"
        raise (_no_room(what, home) if _is_full(str(fault), home) else PerfgateError("arm-not-made", what)) from fault


def _is_full(message: str, home: Path) -> bool:
    return any(words in message for words in _FULL) or _free(home) < _LEAST


def _free(folder: Path) -> int:
    """Return the free bytes on the disk of a folder, which may not exist yet."""
    place = next(place for place in (folder, *folder.parents) if place.exists())
    return shutil.disk_usage(place).free


def _no_room(what: str, home: Path) -> PerfgateError:
    try:
        scratch = tempfile.gettempdir()
    except OSError:
        scratch = "/tmp"  # noqa: S108 - only to report how full it is
    free = ", ".join(f"{_free(Path(place)) / 1e6:.0f} MB on {place}" for place in (str(home), scratch))
    return PerfgateError("arm-no-room", f"{what}\n  left free: {free}")


def launch_line(python: Path) -> tuple[str, ...]:
    """Return how to start pytest without the current folder on the path."""
    drop = "import os, sys; sys.path[:] = [p for p in sys.path if p not in ('', os.getcwd())]; import pytest"
    old = ("-c", f"{drop}; raise SystemExit(pytest.main())")
    return (str(python), *(("-P", "-m", "pytest") if sys.version_info >= (3, 11) else old))


def nothing_in(source: Path, what: str) -> PerfgateError:
    """Return the error for a folder with nothing to import or build, naming folders that can be, if any."""
    projects = {file.parent for depth in ("*", "*/*") for file in source.glob(f"{depth}/*") if file.name in _PROJECT}
    files = (file for file in source.glob("*/*.py") if not file.name.startswith(("test_", "conftest", "setup")))
    places = list(filter(is_buildable, projects)) or {file.parent for file in files if file.parent.name not in _NOT}
    names = sorted(place.relative_to(source).as_posix() for place in places)[:_SHOWN]
    fix = f"set projects = {json.dumps(names)} in [tool.perfgate], as far as that is the package" if names else ""
    return PerfgateError("arm-no-project", what, fix=fix)


def installed_modules(packages: Path) -> tuple[str, ...]:
    """Return the top-level import names that a build installed."""
    return tuple(sorted({entry.name.split(".", 1)[0] for entry in packages.iterdir() if _is_module(entry)}))


def toolchain(machine: Path = Path("/proc")) -> str:
    """Return all that an extension depends on apart from its source, such as the processor for ``-march=native``."""
    flags = (f"{name}={text}" for name, text in os.environ.items() if name in _FLAGS or name.startswith(_STEERED))
    names = (os.environ.get("CC", "cc"), os.environ.get("CXX", "c++"), *_COMPILERS)
    paths = (shutil.which(shlex.split(name)[0] if name.strip() else "cc") for name in names)
    versions = (answer([path, "--version"], _VERSION_S) or "" for path in paths if path)
    files = (machine / "cpuinfo", *sorted(machine.glob("driver/nvidia/gpus/*/information")))
    lines = (line for file in files if file.is_file() for line in file.read_text(errors="replace").splitlines())
    return "\n".join([*sorted(flags), *versions, *sorted({line for line in lines if line.startswith(_MODELS)})])


def _is_module(entry: Path) -> bool:
    """Return whether an entry can be imported: a folder with code, or a module; test files are shared by both arms."""
    if entry.is_dir():
        return entry.name.isidentifier() and any(_is_code(path) for path in entry.rglob("*"))
    return _is_code(entry) and not (entry.suffix == ".py" and entry.name.startswith(("test_", "conftest.")))


def _is_code(path: Path) -> bool:
    return path.name.endswith((".py", *EXTENSION_SUFFIXES))


def _by_command(lines: Sequence[str], folder: Path, site: BuildPlaces, timeout_s: float) -> None:
    """Run each line as a command; paths are inserted after splitting, so that they may contain spaces."""
    fill = {"{source}": folder, "{site}": site.packages, "{build}": site.scratch, "{python}": Path(sys.executable)}
    shutil.rmtree(site.scratch, ignore_errors=True)
    site.scratch.mkdir(parents=True)
    for line in lines:
        words = [_filled(part, fill) for part in shlex.split(line, comments=True)]
        if words:
            _build(words, folder, site, timeout_s)
    shutil.rmtree(site.scratch, ignore_errors=True)


def _build(command: Sequence[str], folder: Path, site: BuildPlaces, timeout_s: float) -> None:
    """Run one command of a build; raise with the tail of its log if it fails."""
    variables = {**dict(site.environment), "PWD": str(folder)}
    try:
        code = run_logged(command, site.log, folder=folder, env=variables, timeout_s=timeout_s)
    except FileNotFoundError as fault:
        raise _failure(command, str(fault.strerror), site.log) from fault
    if code == TIMED_OUT:
        raise _failure(command, f"no end after {timeout_s:.0f} s", site.log)
    if code:
        killed = " (killed: out of memory?)" if code == _KILLED else ""
        raise _failure(command, f"exit {code}{killed}", site.log)


def _failure(command: Sequence[str], how: str, log: Path) -> PerfgateError:
    return PerfgateError("arm-build-failed", f"{abridged(command)}: {how}{log_tail(log)}", place=str(log))


def _filled(part: str, fill: dict[str, Path]) -> str:
    for mark, path in fill.items():
        part = part.replace(mark, str(path))
    return part


def _by_pip(folder: Path, site: BuildPlaces, timeout_s: float) -> None:
    """Install with pip, without isolation if this environment has the build tools: faster, and equal on both sides."""
    missing = missing_tools(folder)
    line = [*_installer(), "--target", str(site.packages), *([] if missing else ["--no-build-isolation"])]
    try:
        _build([*line, str(folder)], folder, site, timeout_s)
    except PerfgateError as fault:
        if not missing:
            raise
        what = f"{fault.what}\n  tools {', '.join(missing)}: not installed beside the tests, so they were downloaded"
        fix = f"pip install {shlex.join(missing)}   (then nothing is downloaded); or fix the build"
        raise PerfgateError(fault.code.name, what, fix=fix, place=fault.place) from fault


def _installer() -> list[str]:
    """Return the command of pip, or, as environments of uv and PDM have none, of uv or a pip from elsewhere."""
    options = ["--no-deps", "--no-compile", "--quiet", "--upgrade", "--disable-pip-version-check", "--no-input"]
    if _is_met("pip"):  # a find_spec("pip") makes setuptools, before Python 3.12, refuse to work in this process
        return [sys.executable, "-m", "pip", "install", *options]
    if uv := os.environ.get("UV") or shutil.which("uv", path=scripts_first()):
        return [uv, "pip", "install", "--no-deps", "--quiet", "--python", sys.executable]
    if pip := shutil.which("pip"):
        return [pip, "--python", sys.executable, "install", *options]
    raise PerfgateError("arm-build-failed", "neither pip nor uv is installed here", fix="install pip beside the tests")


def build_environment(python_path: str) -> tuple[tuple[str, str], ...]:
    """Return the caller's variables, with its own tools first and none of the working copy on Python's path."""
    elsewhere = {"PIP_TARGET", "PIP_PREFIX", "PIP_ROOT"}
    variables = {name: text for name, text in os.environ.items() if name not in elsewhere}
    return tuple({**variables, "PATH": scripts_first(), "PYTHONPATH": python_path, "PIP_USER": "0"}.items())


_PROGRAMS = {"mesonpy": (("meson",), ("ninja",)), "scikit_build_core": (("cmake",), ("ninja", "make"))}
"""Programs that a build backend starts, one of each group; pyproject.toml does not list them."""

_NAMING = ("packages", "py_modules", "ext_modules")

_NOT = ("test", "tests", "setup", "conftest", "docs", "examples", "benchmarks", "scripts", "tools", "build")
"""Usual names that setuptools leaves out by itself."""


def is_buildable(folder: Path) -> bool:
    """Return whether a folder can be built: tool tables alone are not a project."""
    table = _pyproject(folder)
    poetry = isinstance(table.get("tool"), dict) and "poetry" in table["tool"]
    return (folder / "setup.py").is_file() or "build-system" in table or "project" in table or poetry


def missing_tools(folder: Path) -> tuple[str, ...]:
    """Return build requirements that this environment does not meet, so that pip would download them."""
    system = _pyproject(folder).get("build-system")
    system = system if isinstance(system, dict) else {}
    wanted = [str(one) for one in system.get("requires", ["setuptools"])]
    backend = str(system.get("build-backend", "setuptools")).partition(":")[0].partition(".")[0]
    wheel = ["wheel"] if backend == "setuptools" and not _is_met("setuptools>=70.1") else []
    lacking = [one for one in dict.fromkeys((*wanted, *wheel)) if not _is_met(one)]
    programs = (group for group in _PROGRAMS.get(backend, ()) if not any(map(_is_there, group)))
    return (*lacking, *(group[0] for group in programs))


def scripts_first() -> str:
    """Return ``PATH`` with this environment's programs first, so that a build finds them without activation."""
    return os.pathsep.join(part for part in (str(Path(sys.executable).parent), os.environ.get("PATH", "")) if part)


def _is_there(program: str) -> bool:
    return shutil.which(program, path=scripts_first()) is not None or _is_met(program)


def _is_met(text: str) -> bool:
    """Return whether an installed distribution meets a requirement; pip handles unreadable ones."""
    rules = import_module("packaging.requirements")
    try:
        wanted = rules.Requirement(text)
        if wanted.marker is not None and not wanted.marker.evaluate():
            return True
        return bool(wanted.specifier.contains(metadata.version(wanted.name), prereleases=True))
    except (rules.InvalidRequirement, metadata.PackageNotFoundError):
        return False


def _pyproject(folder: Path) -> dict[str, Any]:
    """Return the tables of a ``pyproject.toml``; empty if it is missing, or broken, which pip will report."""
    reader = import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    try:
        return dict(reader.loads((folder / "pyproject.toml").read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return {}


def packaging_fix(folder: Path, name: str) -> str:
    """Return what to add to ``pyproject.toml`` if setuptools' discovery would take this folder for a package.

    In a flat layout, any folder with a Python name counts as a package, and setuptools refuses two of them.
    """
    table = _pyproject(folder)
    system, tool = table.get("build-system", {}), table.get("tool", {}).get("setuptools", {})
    if not is_buildable(folder) or not str(system.get("build-backend", "setuptools")).startswith("setuptools"):
        return ""
    if not name.isidentifier() or "packages" in tool or "py-modules" in tool or (folder / "src").is_dir():
        return ""
    if any(word in _read(folder / file) for file in ("setup.py", "setup.cfg") for word in _NAMING):
        return ""
    packages = sorted({place.parent.name for place in folder.glob("*/__init__.py")} - {name, *_NOT})
    if packages:
        patterns = json.dumps([f"{package}*" for package in packages])
        return f"[tool.setuptools.packages.find] include = {patterns} in pyproject.toml"
    files = sorted(place.stem for place in folder.glob("*.py") if not place.stem.startswith(("test_", *_NOT)))
    return f"[tool.setuptools] py-modules = {json.dumps(files)} in pyproject.toml"


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
