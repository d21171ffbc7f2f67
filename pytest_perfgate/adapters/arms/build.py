"""Builds: a project of one revision into an overlay, the same way on both sides."""

from __future__ import annotations

import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from pytest_perfgate.model.arm import ArmSettings
from pytest_perfgate.model.errors import PerfgateError

_IGNORED = {"bin", "__pycache__"}


def build_into(packages: Path, source: Path, settings: ArmSettings, log: Path) -> None:
    """Install every project of a checkout, non-editable; the log keeps all that was said."""
    with log.open("ab") as out:
        for project in settings.projects:
            folder = source / project
            if not folder.is_dir():
                raise PerfgateError("arm-no-project", f"the revision has no folder {project!r}")
            for command in _commands(folder, packages, settings, project):
                _run(command, folder, out, log, settings.timeout_s)


def is_buildable(folder: Path) -> bool:
    return (folder / "setup.py").is_file() or _has_build(folder / "pyproject.toml")


def installed_modules(packages: Path) -> tuple[str, ...]:
    """Top-level import names that a build left."""
    names = set()
    for entry in packages.iterdir():
        if entry.is_dir() and entry.suffix not in {".dist-info", ".egg-info"} and entry.name not in _IGNORED:
            names.add(entry.name)
        if entry.suffix in {".py", ".so", ".pyd"}:
            names.add(entry.name.split(".", 1)[0])
    return tuple(sorted(names))


def toolchain() -> str:
    """Whatever a compiled extension depends on beside its source."""
    said = [os.environ.get(name, "") for name in ("CC", "CXX", "CFLAGS", "CXXFLAGS", "LDFLAGS", "CUDA_HOME")]
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if compiler:
        done = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=False)
        said.append(done.stdout.partition("\n")[0])
    return "\n".join(said)


def _has_build(pyproject: Path) -> bool:
    """Whether a pyproject.toml is there for building: tool tables alone make no project."""
    if not pyproject.is_file():
        return False
    text = pyproject.read_text(encoding="utf-8", errors="replace")
    heads = {line.strip() for line in text.splitlines()}
    return bool(heads & {"[build-system]", "[project]", "[tool.poetry]"})


def _commands(folder: Path, packages: Path, settings: ArmSettings, project: str) -> Sequence[Sequence[str]]:
    own = dict(settings.builds).get(project)
    lines = (own,) if own else settings.build
    if lines:
        fill = {"{source}": str(folder), "{site}": str(packages), "{python}": sys.executable}
        return [[_filled(part, fill) for part in shlex.split(line)] for line in lines]
    if not is_buildable(folder):
        raise PerfgateError("arm-no-project", f"no pyproject.toml or setup.py that builds in {folder.name!r}")
    return [_pip_command(folder, packages)]


def _filled(part: str, fill: dict[str, str]) -> str:
    for mark, text in fill.items():
        part = part.replace(mark, text)
    return part


def _pip_command(folder: Path, packages: Path) -> list[str]:
    if importlib.util.find_spec("pip") is None:
        raise PerfgateError(
            "arm-build-failed",
            "this environment has no pip",
            mend='install pip beside the tests, or set build = "uv pip install --no-deps --target {site} {source}"',
        )
    line = [sys.executable, "-m", "pip", "install", "--no-deps", "--no-compile", "--quiet", "--upgrade"]
    line += ["--disable-pip-version-check", "--no-input", "--target", str(packages)]
    return [*line, *(["--no-build-isolation"] if _backend_is_here(folder) else []), str(folder)]


def _backend_is_here(folder: Path) -> bool:
    """Whether the caller's environment can build by itself: faster, and the same on both sides."""
    pyproject = folder / "pyproject.toml"
    backend = "setuptools"
    if pyproject.is_file():
        for line in pyproject.read_text(encoding="utf-8", errors="replace").splitlines():
            key, _, found = line.partition("=")
            if key.strip() == "build-backend":
                backend = found.strip().strip("\"'").split(".", 1)[0].split(":", 1)[0]
    needed = {"setuptools": ("setuptools", "wheel"), "mesonpy": ("mesonpy", "ninja")}.get(backend, (backend,))
    return all(importlib.util.find_spec(name) is not None for name in needed)


def _run(command: Sequence[str], folder: Path, out: object, log: Path, timeout_s: float) -> None:
    failed = ""
    try:
        done = subprocess.run(command, cwd=folder, stdout=out, stderr=out, timeout=timeout_s, check=False)  # type: ignore[call-overload]
        failed = f"exit {done.returncode}" if done.returncode else ""
    except subprocess.TimeoutExpired:
        failed = f"no end after {timeout_s:.0f} s"
    except FileNotFoundError:
        failed = f"{command[0]} is not installed"
    if failed:
        tail = "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-20:])
        raise PerfgateError(
            "arm-build-failed",
            f"{shlex.join(command[:6])} ...: {failed}\n{tail}",
            place=str(log),
        )
