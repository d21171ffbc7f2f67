"""Python files that a change touches, as a revision has them and as they lie here."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

Run = Callable[..., "subprocess.CompletedProcess[bytes] | None"]
"""Runs git with some words; ``None`` where it does not answer."""


class _SilentError(Exception):
    """Git did not answer."""


def touched(
    root: Path, run: Run, revision: str, words: Sequence[str]
) -> Mapping[str, tuple[str | None, str | None]] | None:
    """Both texts of each file with one of these words, there or here, that is other than in a revision.

    Nothing where git does not answer, such as for a blob that a partial clone cannot fetch.
    """
    look = ("-c", "grep.fullName=false", "grep", "-l", "-z", "-F", *(part for word in words for part in ("-e", word)))
    try:
        apart = {
            *_paths(run("diff", "--name-only", "--no-renames", "--relative", "-z", revision, "--", "*.py")),
            *_paths(run("ls-files", "--others", "--exclude-standard", "-z", "--", "*.py")),
        }
        if not apart:
            return {}
        there = {path.removeprefix(f"{revision}:") for path in _paths(run(*look, revision, "--", "*.py"), nothing=1)}
        here = _paths(run(*look, "--untracked", "--", "*.py"), nothing=1)
        paths = sorted(apart & {*here, *there})
        then = _blobs(run, revision, paths)
    except _SilentError:
        return None
    return {path: (then.get(path), _here(root / path)) for path in paths}


def _paths(done: subprocess.CompletedProcess[bytes] | None, nothing: int = 0) -> list[str]:
    """What git lists; ``nothing`` is the exit code by which it says that there is nothing to list."""
    if done is None or done.returncode not in {0, nothing}:
        raise _SilentError
    return [path for path in done.stdout.decode("utf-8", "surrogateescape").split("\0") if path]


def _blobs(run: Run, revision: str, paths: Sequence[str]) -> dict[str, str]:
    """Texts of a revision, asked for at once; a path that would end the line it is asked in has none."""
    asked = [path for path in paths if "\n" not in path]
    stdin = "".join(f"{revision}:./{path}\n" for path in asked).encode("utf-8", "surrogateescape")
    done = run("cat-file", "--batch", stdin=stdin) if asked else None
    if asked and (done is None or done.returncode):
        raise _SilentError
    found, rest = {}, done.stdout if done is not None else b""
    for path in asked:
        head, _, rest = rest.partition(b"\n")
        words = head.rsplit(b" ", 2)
        if words[-2:-1] == [b"blob"]:
            size = int(words[-1])
            found[path], rest = rest[:size].decode("utf-8", "replace"), rest[size + 1 :]
    return found


def _here(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
