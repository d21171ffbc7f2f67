"""A revision in a folder of its own, whole: with its submodules and what git-lfs keeps."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pytest_perfgate.adapters.arms.git import Git, Revision, tail
from pytest_perfgate.model.errors import PerfgateError

_POINTER = b"version https://git-lfs.github.com/spec/"
_SHOWN = 3


def check_out(git: Git, folder: Path, revision: Revision) -> tuple[str, ...]:
    """A detached worktree; the submodules that were left empty in it, as they are in the working copy."""
    git.add_worktree(folder, revision)
    own = git.top / git.checked("rev-parse", "--git-common-dir") / "modules"
    empty = tuple(_submodules(git, folder, git.top, own))
    _refuse_pointers(git, folder)
    return empty


def _submodules(git: Git, folder: Path, here: Path, store: Path) -> Iterator[str]:
    """Clone them from this clone; one that was never initialised here is not fetched behind anybody's back."""
    known = {name for name, _ in _listed(git, here)}
    for name, path in _listed(git, folder):
        inside = here / path
        source = store / name if (store / name).is_dir() else inside if (inside / ".git").is_dir() else None
        if source is None and name in known and not (inside / ".git").exists():
            yield path
            continue
        _update(git, folder, path, ("-c", f"submodule.{name}.url={source}") if source else ())
        yield from (f"{path}/{deep}" for deep in _submodules(git, folder / path, inside, store / name / "modules"))


def _update(git: Git, folder: Path, path: str, options: tuple[str, ...]) -> None:
    update = ("submodule", "update", "--init", "--quiet", "--", path)
    done = git.run("-C", str(folder), "-c", "protocol.file.allow=always", *options, *update)
    if done.returncode:
        raise PerfgateError("submodule-missing", f"the submodule {path!r} cannot be checked out: {tail(done.stderr)}")


def _listed(git: Git, folder: Path) -> list[tuple[str, str]]:
    """(name, path) of each submodule."""
    file = folder / ".gitmodules"
    if not file.is_file():
        return []
    said = git.run("config", "--file", str(file), "--null", "--get-regexp", r"^submodule\..*\.path$").stdout
    pairs = (entry.partition("\n") for entry in said.split("\0") if entry)
    return [(key[len("submodule.") : -len(".path")], path) for key, _, path in pairs]


def _refuse_pointers(git: Git, folder: Path) -> None:
    """Where the working copy has what git-lfs keeps, an arm that has only pointers is not that revision."""
    listed = git.run("-C", str(folder), "ls-files", "-z", "--", ":(top,attr:filter=lfs)").stdout.split("\0")
    paths = [path for path in listed if path and _is_pointer(folder / path)]
    lost = [path for path in paths if (git.top / path).is_file() and not _is_pointer(git.top / path)]
    if lost:
        names = ", ".join(lost[:_SHOWN]) + (f" and {len(lost) - _SHOWN} more" if len(lost) > _SHOWN else "")
        raise PerfgateError("lfs-missing", f"git-lfs left pointers where the working copy has contents: {names}")


def _is_pointer(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(_POINTER)) == _POINTER
    except OSError:
        return False
