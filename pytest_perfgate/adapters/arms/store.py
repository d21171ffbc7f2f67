"""Arms by tree: made once, kept under ``.perfgate/arms``, found again by the next run."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from pytest_perfgate.adapters.arms.backend import is_buildable
from pytest_perfgate.adapters.arms.build import (
    Site,
    build_environment,
    build_into,
    installed_modules,
    nothing_in,
    toolchain,
)
from pytest_perfgate.adapters.arms.keeping import READY, discard, forget_unused, hide_from_git, leftovers
from pytest_perfgate.adapters.arms.layout import inside_package, lay_over, only_tests, source_modules, with_conftests
from pytest_perfgate.adapters.arms.overlay import launch_line, make_overlay, surroundings
from pytest_perfgate.adapters.arms.proof import content_of
from pytest_perfgate.adapters.arms.room import explained
from pytest_perfgate.adapters.system.files import write_atomically
from pytest_perfgate.adapters.system.git import Git, Revision, check_out
from pytest_perfgate.adapters.system.locks import exclusive
from pytest_perfgate.model.arm import Arm, ArmSettings, Leftover
from pytest_perfgate.model.errors import PerfgateError

_FORM = "2"
"""Of what lies in an arm's folder: another version's is not found again."""
_CACHES = {
    "TORCH_EXTENSIONS_DIR": "torch-extensions",
    "TRITON_CACHE_DIR": "triton",
    "TORCHINDUCTOR_CACHE_DIR": "inductor",
    "NUMBA_CACHE_DIR": "numba",
    "CUPY_CACHE_DIR": "cupy",
    "CUDA_CACHE_PATH": "cuda",
    "PYTHONPYCACHEPREFIX": "pycache",
}


class ArmStore:
    """Prepares arms of one repository."""

    def __init__(self, rootdir: Path, settings: ArmSettings, paths: Sequence[str] = ()) -> None:
        self._rootdir = rootdir.resolve()
        self._settings = settings
        self._paths = tuple(dict.fromkeys(paths))
        """Test files relative to the root: they say whether an overlay can work."""
        self._git = Git(self._rootdir)
        self._inside = self._rootdir.relative_to(self._git.top.resolve())
        """Where the root lies in a checkout: projects are named from there."""
        self._home = self._rootdir / ".perfgate" / "arms"

    def prepare(self, name: str, revision: str) -> Arm:
        """The arm of a commit, or of the working copy; built once per tree, interpreter and toolchain."""
        wanted = self._git.revision(revision) if revision else self._git.snapshot()
        mode = self._mode()
        digest = self._digest(wanted, mode)
        folder = self._home / digest
        with explained(f"the {name} arm ({revision or 'the working copy'}, {wanted.commit[:10]})", self._home):
            hide_from_git(self._home.parent)
            with exclusive(self._home / f"{digest}.lock"):
                if reused := (folder / READY).is_file():
                    os.utime(folder / READY)
                else:
                    self._make(folder, wanted, mode)
            facts = json.loads((folder / READY).read_text(encoding="utf-8"))
        return Arm(
            name=name,
            revision=wanted.commit,
            tree=wanted.tree,
            dirty=wanted.dirty,
            mode=mode,
            python=facts["python"],
            launch=tuple(facts["launch"]),
            environment=(*_caches(folder), ("PYTHONPATH", self._python_path(Path(facts["cwd"]), mode))),
            cwd=facts["cwd"],
            root=facts["root"],
            modules=self._settings.packages or tuple(facts["modules"]),
            digest=digest,
            reused=reused,
            content=facts.get("content", ""),
        )

    def leftovers(self) -> tuple[Leftover, ...]:
        """What an interrupted run left behind."""
        return tuple(leftovers(self._home, self._git))

    def remove(self) -> None:
        """Delete all arms; a worktree is unregistered too."""
        for entry in self._home.glob("*/"):
            discard(entry, self._git)
        shutil.rmtree(self._home, ignore_errors=True)

    def _mode(self) -> str:
        """What the settings say; ``auto`` asks the working copy, so that both sides are made the same way.

        An overlay needs something to build, and tests that pytest does not import through the package.
        """
        if self._settings.mode != "auto":
            return self._settings.mode
        settings = self._settings
        own = dict(settings.builds)
        builds = settings.build or all(p in own or is_buildable(self._rootdir / p) for p in settings.projects)
        apart = not any(inside_package(self._rootdir, path) for path in self._paths)
        return "overlay" if builds and apart else "worktree"

    def _python_path(self, cwd: Path, mode: str) -> str:
        """Of a checkout the folders it is imported from, then the caller's entries outside the repository."""
        own = [str(place) for place in self._places(cwd)] if mode == "worktree" else []
        return os.pathsep.join([*dict.fromkeys(own), *self._outside()])

    def _outside(self) -> list[str]:
        """The caller's entries without those inside the repository, which would win over the arm."""
        given = [entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
        return [entry for entry in given if not Path(entry).resolve().is_relative_to(self._git.top.resolve())]

    def _places(self, inside: Path) -> list[Path]:
        """Folders of a checkout that packages are imported from, the root first."""
        folders = [inside, *(inside / project for project in self._settings.projects)]
        return [place.resolve() for folder in folders for place in (folder, folder / "src") if place.is_dir()]

    def _digest(self, revision: Revision, mode: str) -> str:
        """Whatever makes an arm another one; which tests are measured does only where they lie inside it."""
        laid = [self._git.snapshot().tree, *self._paths] if mode == "worktree" else []
        said = [
            _FORM,
            revision.tree,
            mode,
            sys.version,
            str(Path(sys.prefix).resolve()),
            repr(self._settings),
            toolchain(),
        ]
        said += [str(self._rootdir), *surroundings(self._settings.editable), *laid]
        return hashlib.sha256("\0".join(said).encode("utf-8", "surrogateescape")).hexdigest()[:20]

    def _make(self, folder: Path, revision: Revision, mode: str) -> None:
        """Whatever goes wrong, git holds no worktree afterwards; the log stays."""
        discard(folder, self._git)
        folder.mkdir(parents=True)
        tree = folder / "tree"
        try:
            empty = check_out(self._git, tree, revision)
            facts = self._made(folder, tree, mode, empty)
        except BaseException:
            self._git.remove_worktree(tree)
            shutil.rmtree(folder / "env", ignore_errors=True)
            shutil.rmtree(folder / "build", ignore_errors=True)
            raise
        write_atomically(folder / READY, json.dumps(facts).encode())
        forget_unused(self._home, self._git)

    def _made(self, folder: Path, tree: Path, mode: str, empty: Sequence[str]) -> dict[str, object]:
        try:
            return self._overlay(folder, tree) if mode == "overlay" else self._worktree(folder, tree)
        except PerfgateError as fault:
            if not empty:
                raise
            what = f"{fault.what}\n  submodules that are not initialised here were left empty: {', '.join(empty)}"
            mend = f"git submodule update --init --recursive; if that is not it: {fault.mend}"
            raise PerfgateError(fault.code.name, what, mend=mend, place=fault.place) from fault

    def _overlay(self, folder: Path, tree: Path) -> dict[str, object]:
        python, packages = make_overlay(folder / "env", self._settings.editable)
        build_into(self._site(folder, packages), tree / self._inside, self._settings)
        modules = installed_modules(packages)
        if not modules:
            raise PerfgateError("arm-empty", "its build installed nothing that can be imported", place=_log(folder))
        self._git.remove_worktree(tree)
        return _facts(python, self._rootdir, packages, modules)

    def _worktree(self, folder: Path, tree: Path) -> dict[str, object]:
        """A checkout to run inside, with the working copy's tests laid over it."""
        python, _ = make_overlay(folder / "env", self._settings.editable)
        inside = tree / self._inside
        if self._settings.build or self._settings.builds:
            build_into(self._site(folder, inside), inside, self._settings)
        for path in (*with_conftests(self._paths), *self._settings.tests):
            lay_over(self._rootdir / path, inside / path)
        modules = {name for place in self._places(inside) for name in source_modules(place)}
        if not modules and not self._settings.packages and not only_tests(inside, self._paths):
            raise nothing_in(inside, "nothing in its checkout can be imported from the root or from src")
        return _facts(python, inside, tree, tuple(sorted(modules)))

    def _site(self, folder: Path, packages: Path) -> Site:
        seen = build_environment(os.pathsep.join(self._outside()))
        return Site(packages=packages, scratch=folder / "build", log=Path(_log(folder)), environment=seen)


def _caches(folder: Path) -> tuple[tuple[str, str], ...]:
    return tuple((key, str(folder / "caches" / sub)) for key, sub in _CACHES.items())


def _facts(python: Path, cwd: Path, root: Path, modules: tuple[str, ...]) -> dict[str, object]:
    launch = launch_line(python)
    content = content_of(root)
    facts = {"python": str(python), "launch": launch, "cwd": str(cwd), "root": str(root)}
    return {**facts, "modules": modules, "content": content}


def _log(folder: Path) -> str:
    return str(folder / "build.log")
