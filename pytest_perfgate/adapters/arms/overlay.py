"""Overlay environments: the package of one revision in front of everything the caller has installed."""

from __future__ import annotations

import site
import sys
from collections.abc import Sequence
from pathlib import Path

from pytest_perfgate.adapters.system.commands import run_captured
from pytest_perfgate.model.errors import PerfgateError

PARENT = "perfgate_parent.pth"


def make_overlay(folder: Path, editable: Sequence[str]) -> tuple[Path, Path]:
    """An empty environment that sees the caller's packages; its interpreter and its site-packages.

    A ``.pth`` names the caller's folders. Their own ``.pth`` files are not run, so an editable
    install of the package under test stays out of sight; other editable packages are listed.
    """
    line = [sys.executable, "-I", "-m", "venv", "--without-pip", "--symlinks", str(folder)]
    done = run_captured(line, None)
    if done.returncode:
        said = (done.stdout + done.stderr).decode("utf-8", "replace").strip()[-400:]
        raise PerfgateError("arm-not-made", f"python -m venv: exit {done.returncode}: {said}", place=str(folder))
    scripts = "Scripts" if sys.platform == "win32" else "bin"
    python = folder / scripts / Path(sys.executable).name
    python = python if python.exists() else folder / scripts / "python"
    packages = next(folder.rglob("site-packages"))
    (packages / PARENT).write_text("\n".join(parent_folders(editable)) + "\n", encoding="utf-8")
    return python, packages


def parent_folders(editable: Sequence[str]) -> list[str]:
    """What the overlay puts behind itself on the path."""
    user = [site.getusersitepackages()] if site.ENABLE_USER_SITE else []
    installed = [*site.getsitepackages(), *user, *_linked()]
    ours = str(Path(__file__).resolve().parents[3])
    folders = [*editable, *installed, *([] if ours in installed else [ours])]
    return list(dict.fromkeys(str(Path(folder).resolve()) for folder in folders if Path(folder).is_dir()))


def surroundings(editable: Sequence[str]) -> list[str]:
    """What is installed beside the package, by name and version: an arm built against others is another arm."""
    folders = [Path(folder) for folder in parent_folders(editable)]
    return [str(folder) for folder in folders] + sorted(
        entry.name for folder in folders for entry in folder.glob("*.dist-info")
    )


def _linked() -> list[str]:
    """Site-packages that the caller's own environment was given, by whatever means, to stand behind it."""
    return [entry for entry in sys.path if Path(entry).name in {"site-packages", "dist-packages"}]


def launch_line(python: Path) -> tuple[str, ...]:
    """How to start pytest without the current folder on the path."""
    if sys.version_info >= (3, 11):
        return (str(python), "-P", "-m", "pytest")
    drop = "import os, sys; sys.path[:] = [p for p in sys.path if p not in ('', os.getcwd())]; import pytest"
    return (str(python), "-c", f"{drop}; raise SystemExit(pytest.main())")
