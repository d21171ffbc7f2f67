"""Arms by tree: made once, kept under ``.perfgate/arms``, found again by the next run."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from pytest_perfgate.adapters.arms.build import build_into, installed_modules, is_buildable, toolchain
from pytest_perfgate.adapters.arms.git import Git, Revision
from pytest_perfgate.adapters.arms.layout import inside_package, lay_over, source_modules, with_conftests
from pytest_perfgate.adapters.arms.overlay import launch_line, make_overlay
from pytest_perfgate.adapters.arms.proof import content_of
from pytest_perfgate.model.arm import Arm, ArmSettings, Leftover
from pytest_perfgate.model.errors import PerfgateError

_READY = "ready.json"
_CACHES = {
    "TORCH_EXTENSIONS_DIR": "torch-extensions",
    "TRITON_CACHE_DIR": "triton",
    "TORCHINDUCTOR_CACHE_DIR": "inductor",
    "NUMBA_CACHE_DIR": "numba",
    "CUPY_CACHE_DIR": "cupy",
    "CUDA_CACHE_PATH": "cuda",
    "PYTHONPYCACHEPREFIX": "pycache",
}


_NO_ARMS = "without both arms nothing is measured beside its own base"


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
        try:
            return self._prepared(name, revision)
        except OSError as fault:
            what = f"the {name} arm cannot be made: {fault.strerror or fault}"
            mend = "make the folder writable, or free its disk"
            raise PerfgateError("file-unwritable", what, why=_NO_ARMS, mend=mend, place=str(self._home)) from fault

    def _prepared(self, name: str, revision: str) -> Arm:
        wanted = self._git.revision(revision) if revision else self._git.snapshot()
        mode = self._mode()
        digest = self._digest(wanted, mode)
        folder = self._home / digest
        with _held(self._home / f"{digest}.lock"):
            reused = (folder / _READY).is_file()
            if not reused:
                self._make(folder, wanted, mode)
        facts = json.loads((folder / _READY).read_text(encoding="utf-8"))
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
        """Arms that were never finished, locks whose owner is gone, rounds that wait, worktrees that are lost."""
        return (*self._unfinished(), *self._waiting(), *self._lost())

    def _unfinished(self) -> Iterator[Leftover]:
        for entry in sorted(self._home.iterdir()) if self._home.is_dir() else ():
            if entry.is_dir() and not (entry / _READY).is_file() and not _alive(self._home / f"{entry.name}.lock"):
                yield Leftover(path=str(entry), what="an arm that was never finished", mend=f"rm -r '{entry}'")
            if entry.suffix == ".lock" and not _alive(entry):
                yield Leftover(path=str(entry), what="a lock whose owner is gone", mend=f"rm '{entry}'")

    def _waiting(self) -> Iterator[Leftover]:
        for entry in sorted((self._home.parent / "rounds").glob("*.bin")):
            what = "finished rounds of a run that was cut short: the next run of the same trees takes them up"
            yield Leftover(path=str(entry), what=what, mend=f"rm '{entry}'")

    def _lost(self) -> Iterator[Leftover]:
        for folder in self._git.lost_worktrees():
            if Path(folder).is_relative_to(self._home):
                yield Leftover(path=folder, what="a worktree that git holds and nobody has", mend="git worktree prune")

    def remove(self) -> None:
        """Delete all arms; a worktree is unregistered too."""
        for tree in self._home.glob("*/tree"):
            self._git.remove_worktree(tree)
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
        """The caller's entries without those inside the repository, which would win over the arm."""
        given = [entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
        kept = [entry for entry in given if not Path(entry).resolve().is_relative_to(self._git.top)]
        own = [str(place) for place in self._places(cwd)] if mode == "worktree" else []
        return os.pathsep.join([*dict.fromkeys(own), *kept])

    def _places(self, inside: Path) -> list[Path]:
        """Folders of a checkout that packages are imported from, the root first."""
        folders = [inside, *(inside / project for project in self._settings.projects)]
        return [place.resolve() for folder in folders for place in (folder, folder / "src") if place.is_dir()]

    def _digest(self, revision: Revision, mode: str) -> str:
        laid = self._git.snapshot().tree if mode == "worktree" else ""
        said = [revision.tree, laid, mode, sys.version, sys.prefix, repr(self._settings), toolchain()]
        said += [str(self._rootdir), *self._paths]
        return hashlib.sha256("\0".join(said).encode()).hexdigest()[:20]

    def _make(self, folder: Path, revision: Revision, mode: str) -> None:
        if folder.exists():
            self._git.remove_worktree(folder / "tree")
            shutil.rmtree(folder)
        folder.mkdir(parents=True)
        tree = folder / "tree"
        self._git.add_worktree(tree, revision)
        try:
            facts = self._overlay(folder, tree) if mode == "overlay" else self._worktree(folder, tree)
        except PerfgateError:
            self._git.remove_worktree(tree)
            raise
        scratch = folder / "ready.part"
        scratch.write_text(json.dumps(facts), encoding="utf-8")
        scratch.replace(folder / _READY)

    def _overlay(self, folder: Path, tree: Path) -> dict[str, object]:
        python, packages = make_overlay(folder / "env", self._settings.editable)
        build_into(packages, tree / self._inside, self._settings, folder / "build.log")
        modules = installed_modules(packages)
        if not modules:
            raise PerfgateError("arm-empty", f"the build of {tree.parent.name} installed nothing")
        self._git.remove_worktree(tree)
        return _facts(python, self._rootdir, packages, modules)

    def _worktree(self, folder: Path, tree: Path) -> dict[str, object]:
        """A checkout to run inside, with the working copy's tests laid over it."""
        python, _ = make_overlay(folder / "env", self._settings.editable)
        inside = tree / self._inside
        if self._settings.build or self._settings.builds:
            build_into(inside, inside, self._settings, folder / "build.log")
        for path in (*with_conftests(self._paths), *self._settings.tests):
            lay_over(self._rootdir / path, inside / path)
        modules = {name for place in self._places(inside) for name in source_modules(place)}
        return _facts(python, inside, tree, tuple(sorted(modules)))


def _caches(folder: Path) -> tuple[tuple[str, str], ...]:
    return tuple((key, str(folder / "caches" / sub)) for key, sub in _CACHES.items())


def _facts(python: Path, cwd: Path, root: Path, modules: tuple[str, ...]) -> dict[str, object]:
    launch = launch_line(python)
    content = content_of(root)
    facts = {"python": str(python), "launch": launch, "cwd": str(cwd), "root": str(root)}
    return {**facts, "modules": modules, "content": content}


@contextmanager
def _held(lock: Path, patience_s: float = 1800.0) -> Iterator[None]:
    """One maker per arm; a lock whose owner died is taken over."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    until = time.monotonic() + patience_s
    while True:
        try:
            handle = os.open(lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
            break
        except FileExistsError:
            if not _alive(lock) or time.monotonic() > until:
                lock.unlink(missing_ok=True)
            time.sleep(0.05)
    try:
        os.write(handle, str(os.getpid()).encode())
        os.close(handle)
        yield
    finally:
        lock.unlink(missing_ok=True)


def _alive(lock: Path) -> bool:
    """Whether the process that a lock names still runs; a lock being written counts as alive for a moment."""
    try:
        text = lock.read_text(encoding="utf-8")
        if not text:
            return time.time() - lock.stat().st_mtime < 5.0
        os.kill(int(text), 0)
    except (FileNotFoundError, ProcessLookupError, ValueError):
        return False
    except PermissionError:
        return True
    return True
