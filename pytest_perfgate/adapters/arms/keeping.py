"""What lies under ``.perfgate/arms``: what a killed run left there, and arms that nobody asks for any more."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from pytest_perfgate.adapters.system.git import Git
from pytest_perfgate.adapters.system.locks import is_locked
from pytest_perfgate.clock import HOST_CLOCK
from pytest_perfgate.model.arm import Leftover

READY = "ready.json"
_KEPT, _UNUSED_S = 10, 86400.0
"""So many arms are always kept, and any that was used within a day."""


def hide_from_git(folder: Path) -> None:
    """A run that is cut short may leave nothing but arms and rounds: git need not be told of them by hand."""
    with suppress(OSError):  # what cannot be written says so when the arm is made
        folder.mkdir(exist_ok=True)
        with (folder / ".gitignore").open("x", encoding="utf-8") as note:
            note.write("# made by perfgate\n*\n")


def leftovers(home: Path, git: Git) -> Iterator[Leftover]:
    """Arms that were never finished, locks whose owner is gone, rounds that wait, worktrees that are lost."""
    yield from _unfinished(home)
    for entry in sorted((home.parent / "rounds").glob("*.bin")):
        what = "finished rounds of a run that was cut short: the next run of the same trees takes them up"
        yield Leftover(path=str(entry), what=what, mend=f"rm '{entry}'")
    for folder in git.lost_worktrees():
        if Path(folder).is_relative_to(home):
            mend = f"git worktree remove --force --force '{folder}'"
            yield Leftover(path=folder, what="a worktree that git holds and nobody has", mend=mend)


def _unfinished(home: Path) -> Iterator[Leftover]:
    for entry in sorted(home.iterdir()) if home.is_dir() else ():
        if entry.is_dir() and not (entry / READY).is_file() and not is_locked(home / f"{entry.name}.lock"):
            tree = entry / "tree"
            mend = f"git worktree remove --force --force '{tree}'; " if tree.exists() else ""
            yield Leftover(path=str(entry), what="an arm that was never finished", mend=f"{mend}rm -r '{entry}'")
        if entry.is_file() and not is_locked(entry):
            yield Leftover(path=str(entry), what="a lock whose owner is gone", mend=f"rm '{entry}'")


def forget_unused(home: Path, git: Git) -> None:
    """Every edit of the working copy makes an arm; those that were not asked for lately are removed."""
    for folder in (path for path in home.glob("*/") if not (path / READY).is_file()):
        _forget(folder, folder.stat().st_mtime, git)
    used = {folder.parent: folder.stat().st_mtime for folder in home.glob(f"*/{READY}")}
    oldest_first = sorted(used, key=lambda folder: used[folder])
    for folder in oldest_first[: max(0, len(used) - _KEPT)]:
        _forget(folder, used[folder], git)


def _forget(folder: Path, used: float, git: Git) -> None:
    lock = folder.parent / f"{folder.name}.lock"
    if HOST_CLOCK.date() - used > _UNUSED_S and not is_locked(lock):
        discard(folder, git)
        lock.unlink(missing_ok=True)


def discard(folder: Path, git: Git) -> None:
    """An arm's folder; a worktree in it is unregistered too."""
    git.remove_worktree(folder / "tree")
    shutil.rmtree(folder, ignore_errors=True)
