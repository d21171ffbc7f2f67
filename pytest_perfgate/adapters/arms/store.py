"""The folder of built revisions: builds one for a tree, finds it again, and removes old ones."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from shlex import quote
from typing import TypedDict

import msgspec

from pytest_perfgate.adapters.arms.build import (
    BuildPlaces,
    build_environment,
    build_into,
    explained,
    installed_modules,
    is_buildable,
    launch_line,
    nothing_in,
    toolchain,
)
from pytest_perfgate.adapters.arms.overlay import (
    content_of,
    inside_package,
    make_overlay,
    only_tests,
    source_modules,
    sources_of,
    surroundings,
    with_conftests,
)
from pytest_perfgate.adapters.system.files import exclusive, hide_from_git, is_locked, write_atomically
from pytest_perfgate.adapters.system.git import Git, Revision, check_out
from pytest_perfgate.clock import HOST_CLOCK
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.verdict import Arm, ArmSettings, Leftover

_FORM = "7"
"""The version of an arm folder's layout; arms of another version are built anew."""

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
        self._rootdir, self._settings = rootdir.resolve(), settings
        self.tell: Callable[[str], None] | None = None
        """Announces each build before it starts, since it may take minutes."""
        self._paths = tuple(dict.fromkeys(paths))  # of test files, which show whether an overlay can work
        self.git = Git(self._rootdir)
        self._inside = self._rootdir.relative_to(self.git.top.resolve())
        """The root's path within a checkout, from which projects are named."""
        self._home = self._rootdir / ".perfgate" / "arms"

    def prepare(self, name: str, revision: str) -> Arm:
        """Return the arm of a commit or the working copy; it is built once for each tree, interpreter and toolchain."""
        wanted = self.git.revision(revision) if revision else self.git.snapshot()
        mode = self._mode()
        digest = self._digest(wanted, mode)
        folder = self._home / digest
        lock, side = self._home / f"{digest}.lock", f"the {name} build ({_revision_text(revision, wanted.commit)})"
        with explained(side, self._home), exclusive(lock):
            hide_from_git(self._home.parent)
            facts = built(folder)
            if reused := facts is not None:
                os.utime(folder / READY)
            else:
                if self.tell is not None:
                    self.tell(f"making {side}")
                facts = self._make(folder, wanted, mode)
        caches = ((key, str(folder / "caches" / sub)) for key, sub in _CACHES.items())
        return Arm(
            name=name,
            revision=wanted.commit,
            tree=wanted.tree,
            dirty=wanted.dirty,
            mode=mode,
            python=facts["python"],
            launch=tuple(facts["launch"]),
            environment=(*caches, *self._search_paths(facts, mode)),
            cwd=facts["cwd"],
            root=facts["root"],
            modules=self._settings.packages or tuple(facts["modules"]),
            digest=digest,
            reused=reused,
            content=facts["content"],
            sources=tuple(facts["sources"].items()),
            missing=self._settings.missing,
        )

    def leftovers(self) -> tuple[Leftover, ...]:
        """Return what an interrupted run left behind."""
        return tuple(leftovers(self._home, self.git))

    def _mode(self) -> str:
        """Return the mode of the settings; ``auto`` decides by the working copy, so that both sides are built alike.

        An overlay needs a project that builds and installs, and tests that pytest does not import through the package.
        """
        if self._settings.mode != "auto":
            return self._settings.mode
        settings, own = self._settings, dict(self._settings.builds)
        builds = settings.build or all(p in own or is_buildable(self._rootdir / p) for p in settings.projects)
        outside_package = not any(inside_package(self._rootdir, path) for path in self._paths)
        commands = [*settings.build, *own.values()]
        installs = not commands or "{site}" in "".join(commands)
        return "overlay" if builds and outside_package and installs else "worktree"

    def _search_paths(self, facts: Built, mode: str) -> Iterator[tuple[str, str]]:
        """Yield where an arm finds modules and programs, in processes that a test starts too, by any interpreter."""
        root, within = facts["root"], mode == "worktree"
        own = [str(place) for place in self._places(Path(facts["cwd"]))] if within else [root]
        yield "PYTHONPATH", os.pathsep.join([*dict.fromkeys(own), *self._outer_entries()])
        if not within:
            yield "PATH", os.pathsep.join(filter(None, [str(Path(root, "bin")), os.environ.get("PATH")]))

    def _outer_entries(self) -> list[str]:
        """Return the caller's entries, without those inside the repository, which would hide the arm."""
        entries = [entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
        return [entry for entry in entries if not Path(entry).resolve().is_relative_to(self.git.top.resolve())]

    def _places(self, inside: Path) -> list[Path]:
        """Return the folders of a checkout that packages are imported from, the root first."""
        folders = [inside, *(inside / name for name in (*self._settings.projects, *self._settings.imported))]
        return [place.resolve() for folder in folders for place in (folder, folder / "src") if place.is_dir()]

    def _digest(self, revision: Revision, mode: str) -> str:
        """Return a digest of all that makes an arm different; the measured tests count only if they lie inside it."""
        laid = [self.git.snapshot().tree, *self._paths] if mode == "worktree" else []
        parts = [_FORM, revision.tree, mode, sys.version, str(Path(sys.prefix).resolve()), repr(self._settings)]
        parts += [toolchain(), str(self._rootdir), *surroundings(self._settings.editable), *laid]
        return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()[:20]

    def _make(self, folder: Path, revision: Revision, mode: str) -> Built:
        """Build an arm; after a failure git has no worktree left, and the log stays."""
        discard(folder, self.git)
        folder.mkdir(parents=True)
        tree = folder / "tree"
        try:
            empty = check_out(self.git, tree, revision)
            facts = self._build(folder, tree, mode, empty)
        except BaseException:
            self.git.remove_worktree(tree)
            shutil.rmtree(folder / "env", ignore_errors=True)
            shutil.rmtree(folder / "build", ignore_errors=True)
            raise
        write_atomically(folder / READY, json.dumps(facts).encode())
        remove_unused(self._home, self.git)
        return facts

    def _build(self, folder: Path, tree: Path, mode: str, empty: Sequence[str]) -> Built:
        try:
            return self._overlay(folder, tree) if mode == "overlay" else self._worktree(folder, tree)
        except PerfgateError as fault:
            if not empty:
                raise
            what = f"{fault.what}\n  submodules that are not initialised here were left empty: {', '.join(empty)}"
            fix = f"git submodule update --init --recursive; if that is not it: {fault.fix}"
            raise PerfgateError(fault.code.name, what, fix=fix, place=fault.place) from fault

    def _overlay(self, folder: Path, tree: Path) -> Built:
        python, packages = make_overlay(folder / "env", self._settings.editable)
        build_into(self._site(folder, packages), tree / self._inside, self._settings)
        modules = installed_modules(packages)
        if not modules and not only_tests(tree / self._inside, self._paths):
            what = "its build installed nothing that can be imported"
            raise PerfgateError("arm-empty", what, place=str(folder / "build.log"))
        for program in (packages / "bin").glob("*"):
            if not (link := python.parent / program.name).exists():
                link.symlink_to(program)
        self.git.remove_worktree(tree)
        return _facts(python, self._rootdir, packages, modules)

    def _worktree(self, folder: Path, tree: Path) -> Built:
        """Create a checkout to run inside, with the working copy's tests on top."""
        python, _ = make_overlay(folder / "env", self._settings.editable)
        inside = tree / self._inside
        if commands := self._settings.build or self._settings.builds:
            build_into(self._site(folder, inside), inside, self._settings)
        for path in (*with_conftests(self._paths), *self._settings.tests):
            replace_in_checkout(self._rootdir / path, inside / path)
        modules = {name for place in self._places(inside) for name in source_modules(place)}
        modules |= {file.stem for file in inside.rglob("*.so") if commands and not modules}  # loaded by their paths
        if not (modules or commands or self._settings.packages) and not only_tests(inside, self._paths):
            raise nothing_in(inside, "nothing in its checkout can be imported from the root, src or pythonpath")
        return _facts(python, inside, tree, tuple(sorted(modules)))

    def _site(self, folder: Path, packages: Path) -> BuildPlaces:
        variables = build_environment(os.pathsep.join(self._outer_entries()))
        return BuildPlaces(packages=packages, scratch=folder / "build", log=folder / "build.log", environment=variables)


def _facts(python: Path, cwd: Path, root: Path, modules: tuple[str, ...]) -> Built:
    return {
        "python": str(python), "launch": list(launch_line(python)), "cwd": str(cwd), "root": str(root),
        "modules": list(modules), "content": content_of(root), "sources": sources_of(root),
    }  # fmt: skip


READY = "ready.json"


class Built(TypedDict):
    """The content of an arm's folder."""

    python: str
    launch: list[str]
    cwd: str
    root: str
    modules: list[str]
    content: str
    sources: dict[str, str]


def built(folder: Path) -> Built | None:
    """Return what was built there; None if the file is empty or incomplete after a crash, so it is built again."""
    try:
        return msgspec.json.decode((folder / READY).read_bytes(), type=Built)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


_KEPT, _UNUSED_S = 10, 86400.0
"""The number of arms that are always kept, apart from those used within a day."""


def replace_in_checkout(source: Path, target: Path) -> None:
    """Replace a file or a folder of a checkout by that of the working copy."""
    if source.is_dir():
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
    elif source.is_file():
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, target)


def leftovers(home: Path, git: Git) -> Iterator[Leftover]:
    """Yield unfinished arms, locks of dead owners, stored rounds and lost worktrees."""
    yield from _unfinished(home)
    for entry in sorted((home.parent / "rounds").glob("*.bin")):
        what = "finished rounds of a run that was cut short: the next run of the same trees takes them up"
        yield Leftover(path=str(entry), what=what, fix=f"rm {quote(str(entry))}")
    for folder in git.lost_worktrees():
        if Path(folder).is_relative_to(home):
            fix = f"git worktree remove --force --force {quote(folder)}"
            yield Leftover(path=folder, what="a worktree without an owner", fix=fix)


def _unfinished(home: Path) -> Iterator[Leftover]:
    for entry in sorted(home.iterdir()) if home.is_dir() else ():
        if entry.is_dir() and not (entry / READY).is_file() and not is_locked(home / f"{entry.name}.lock"):
            tree = entry / "tree"
            fix = f"git worktree remove --force --force {quote(str(tree))}; " if tree.exists() else ""
            yield Leftover(path=str(entry), what="an unfinished build", fix=f"{fix}rm -r {quote(str(entry))}")
        if entry.is_file() and not is_locked(entry):
            yield Leftover(path=str(entry), what="a lock whose owner is gone", fix=f"rm {quote(str(entry))}")


def remove_unused(home: Path, git: Git) -> None:
    """Remove arms that were not used recently, since every edit of the working copy creates one."""
    unfinished = [(path.stat().st_mtime, path) for path in home.glob("*/") if not (path / READY).is_file()]
    oldest_first = sorted((path.stat().st_mtime, path.parent) for path in home.glob(f"*/{READY}"))
    for used, folder in (*unfinished, *oldest_first[:-_KEPT]):
        lock = home / f"{folder.name}.lock"
        if HOST_CLOCK.date() - used > _UNUSED_S and not is_locked(lock):
            discard(folder, git)
            lock.unlink(missing_ok=True)


def discard(folder: Path, git: Git) -> None:
    """Remove an arm's folder, and unregister a worktree in it."""
    git.remove_worktree(folder / "tree")
    shutil.rmtree(folder, ignore_errors=True)


def _revision_text(revision: str, commit: str) -> str:
    """Return ``HEAD~1, 1304fd37d5``; a revision that is the commit itself is named once."""
    name = revision or "the working copy"
    return commit[:10] if commit.startswith(name) else f"{name}, {commit[:10]}"
