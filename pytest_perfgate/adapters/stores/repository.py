"""What git knows about a project: revisions, files and changes."""

from __future__ import annotations

import os
import posixpath
import re
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache, partial
from hashlib import sha256
from pathlib import Path

from pytest_perfgate.adapters.stores.base_revision import BaseRevision
from pytest_perfgate.adapters.system.git import NoAnswerError, ask_git, paths_of, texts_at
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.plan import Base

_ENDINGS = "py pyx pxd toml c cc cpp cxx h hpp cu cuh cl hip ptx rs go".split()  # noqa: SIM905 - a list of words
_ELSEWHERE = (":(exclude)*site-packages/*", ":(exclude)*.perfgate/*", ":(exclude)*.pyc")

_OTHERS = ("ls-files", "--others", "--exclude-standard", "-z", "--")

_CODE = (*(f"*.{ending}" for ending in _ENDINGS), *_ELSEWHERE)
"""Untracked files that count as changes; stray reports and notes do not affect measurements."""

_SOURCES = tuple(word.replace(":(", ":(top,") if word.startswith(":(") else f":(top){word}" for word in _CODE)

_PAGES = frozenset({".md", ".rst", ".png", ".svg", ".jpg", ".jpeg", ".gif", ".webp"})

_TEXTS = re.compile(
    r"^docs/(?!(.*/)?(cmakelists|requirements|constraints)[^/]*$).*\.txt$"
    r"|(^|/)(readme|licen[sc]e|copying|notice|authors|contributors|changelog|changes|history|news)(\.txt)?$",
    re.IGNORECASE,
)
"""Pages by their names: other ``.txt`` files are data, or settings of a build."""

_DATA = re.compile(r"(^|/)(tests?|data)/(?!(.*/)?readme\.)", re.IGNORECASE)
"""Pages that code may read without their ending, as it lists the folder."""

_LINES = (".yaml", ".json")

_DIFF = ("diff", "--ignore-submodules=none")
"""Git's question for what changed; a setting ``ignore`` of ``.gitmodules`` would hide a submodule's code from it."""

_COMMIT = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")

_DESCRIPTIONS = ("pyproject.toml", "setup.py", "setup.cfg", "MANIFEST.in", "conf.py", ".*", ".*/**")

_NO_CODE = (
    *(f":(top,exclude)*{suffix}" for suffix in sorted(_PAGES)),
    *(f":(top,exclude,glob)**/{name}" for name in _DESCRIPTIONS),
)
"""Files that cannot make code open a page: pages themselves, descriptions of the project or site, hidden files."""


class GitRepository:
    """The repository of a folder, and the target branch of its changes if known."""

    def __init__(self, root: Path, environment: Mapping[str, str] | None = None, target: str = "") -> None:
        self._root = root
        self._environment = os.environ if environment is None else environment
        self._target = target
        self._text = partial(_text, self._run)
        self._text_once = cache(self._text)

    def present(self) -> bool:
        return self._git("rev-parse", "--is-inside-work-tree") == "true"

    def head(self) -> str:
        """Return the full hash of the current commit; "" without git or before the first commit."""
        return self._git("rev-parse", "--verify", "--quiet", "HEAD") or ""

    def last_release(self) -> str:
        """Return the newest version tag before the current commit; "" if there is none."""
        patterns = ("--match", "v[0-9]*", "--match", "[0-9]*")
        return self._git("describe", "--tags", "--abbrev=0", *patterns, "HEAD") or ""

    def branch(self) -> str:
        """Return the branch's name; "" if none is checked out."""
        return self._git("symbolic-ref", "--quiet", "--short", "HEAD") or ""

    def base(self, target: str = "") -> Base:
        """Return the revision before this change, or the reason why there is none."""
        head = self.head()
        if head:
            return BaseRevision(self._git, self._environment, head).base(target or self._target)
        why, fix = self.trouble() or ("this repository has no commit", "git commit")
        return Base(why=why, fix=fix, unversioned=True)

    def trouble(self) -> tuple[str, str] | None:
        """Return why git cannot answer here, with the fix; None if it can."""
        if (result := self._run("rev-parse", "--is-inside-work-tree")) is None:
            return "git is not installed here, or does not answer", "install git"
        output = result.stderr.decode("utf-8", "replace")
        if "dubious ownership" in output:
            fix = next((line.strip() for line in output.splitlines() if "safe.directory" in line), "")
            return "git does not trust this folder, which belongs to another user", fix
        if result.returncode:
            return "there is no git repository here", "use a clone with its history; in a new project: git init"
        return None

    def show(self, revision: str, path: str) -> str | None:
        """Return a file's text at a revision; ``None`` if it did not exist. Git is asked once for one of a commit."""
        return (self._text_once if _COMMIT.fullmatch(revision) else self._text)(revision, path)

    def files(self, revision: str, folder: str) -> tuple[str, ...]:
        """Return a revision's files below a folder, by their paths from here."""
        return tuple(self._paths("ls-tree", "-r", "-z", "--name-only", revision, "--", f"{folder}/"))

    def below(self) -> str:
        """Return the path of this folder from the top of the repository; "" at the top."""
        return self._git("rev-parse", "--show-prefix") or ""

    def elsewhere(self, revision: str, ending: str) -> Mapping[str, bool]:
        """Return files of a revision with this ending outside this folder, and whether HEAD has them."""
        place = self.below() or "."
        whole = ("ls-tree", "-r", "-z", "--name-only", "--full-tree")
        there, now = self._paths(*whole, revision), frozenset(self._paths(*whole, "HEAD"))
        named = {posixpath.relpath(path, place): path in now for path in there if path.endswith(ending)}
        return {path: at_head for path, at_head in named.items() if place == "." or path.startswith("../")}

    def changed(self, revision: str) -> tuple[str, ...]:
        """Return the tracked files, there or here, that differ from a revision."""
        return tuple(self._paths(*_DIFF, "--name-only", "--no-renames", "--relative", "-z", revision, "--"))

    def touched(self, revision: str, words: Sequence[str]) -> Mapping[str, tuple[str | None, str | None]] | None:
        """Return both texts of each Python file with one of these words that differs from a revision."""
        return touched(self._root, self._run, revision, words)

    def pages_alone(self, revision: str, baselines: str) -> tuple[str, ...] | None:
        """Return the pages and accepted times that differ from a revision; None if other files differ too."""
        return pages_alone(self._root, self._run, revision, self.below(), f"{baselines.strip('/')}/")

    def missing(self, commits: Iterable[str]) -> frozenset[str]:
        """Return those names that are not commits of this clone; none if git does not answer."""
        names = sorted(set(commits))
        requests = "".join(f"{name}^{{commit}}\n" for name in names).encode()
        result = self._run("cat-file", "--batch-check", stdin=requests) if names else None
        if result is None or result.returncode:
            return frozenset()
        answers = result.stdout.decode("utf-8", "replace").splitlines()
        return frozenset(name for name, answer in zip(names, answers, strict=False) if answer.endswith(" missing"))

    def brought(self, commit: str, folder: str, until: str = "HEAD") -> str:
        """Return the first commit up to a revision whose lines in the folder name this commit; "" if unknown.

        The last commit of a shallow clone seems to add everything that existed before it.
        """
        if self._git("rev-parse", "--is-shallow-repository") != "false":
            return ""
        place = f":(glob){folder}/**/*.yaml"
        commits = self._git("log", "--reverse", "--format=%H", f"-S{commit}", until, "--", place)
        return (commits or "").partition("\n")[0]

    def dirty(self) -> bool:
        """Return whether the work tree differs from its commit, by a changed file or untracked code, or may differ."""
        look = ("status", "--porcelain", "--untracked-files=no", "--ignore-submodules=none")
        answers = self._git(*look, "--", *self._but_lines()), self._git(*_OTHERS, *_CODE)
        return any(answers) or (None in answers and self.head() != "")

    def untracked(self, baselines: str) -> tuple[str, ...]:
        """Return files that no commit holds and git does not ignore, but pages and files of perfgate."""
        folder = f"{baselines.strip('/')}/"
        paths = [path for path in self._paths(*_OTHERS, ".", *_ELSEWHERE) if not _ending(path)]
        own = own_files(self._root, self._run, "HEAD", [path for path in paths if path.startswith(folder)], folder)
        return tuple(path for path in paths if path not in own)

    def changes(self) -> str:
        """Return a digest of the work tree's differences from its commit, without its reports; "" if there are none."""
        look = (*_DIFF, "--submodule=diff", "--no-ext-diff", "--binary", "HEAD")
        done = self._run(*look, "--", *self._but_lines())
        difference = done.stdout if done is not None else b""
        return _digest(difference, self._root, self._paths(*_OTHERS, *_CODE, errors="surrogateescape"))

    def _but_lines(self) -> tuple[str, ...]:
        """Return git's names of all files here but edited lines."""
        look = (*_DIFF, "--name-only", "--no-renames", "--relative", "-z", "HEAD", "--", "*baselines/*.yaml")
        lines = own_files(self._root, self._run, "HEAD", self._paths(*look, errors="surrogateescape"))
        return (".", *(f":(exclude,literal){path}" for path in sorted(lines)))

    def author(self) -> str:
        """Return the author of a commit made here; "" if git knows none."""
        return self._environment.get("GIT_AUTHOR_NAME") or self._git("config", "user.name") or ""

    def subject(self, commit: str) -> str:
        """Return the first line of a commit's message; "" if the commit is unknown."""
        return self._git("log", "-1", "--format=%s", commit, "--") or "" if commit else ""

    def _git(self, *words: str) -> str | None:
        done = self._run(*words)
        return None if done is None or done.returncode else done.stdout.decode("utf-8", "replace").rstrip("\n")

    def _paths(self, *words: str, errors: str = "replace") -> list[str]:
        """Return the paths that git lists, fit to be shown; with ``surrogateescape``, fit to be opened."""
        done = self._run(*words)
        paths = b"" if done is None or done.returncode else done.stdout
        return [path for path in paths.decode("utf-8", errors).split("\0") if path]

    def _run(self, *words: str, stdin: bytes | None = None) -> subprocess.CompletedProcess[bytes] | None:
        return ask_git(self._root, *words, env=self._environment, stdin=stdin)


Run = Callable[..., "subprocess.CompletedProcess[bytes] | None"]
"""Runs git with some arguments; ``None`` if it does not answer."""


def _text(run: Run, revision: str, path: str) -> str | None:
    done = run("show", f"{revision}:./{path}")
    if done is not None and not done.returncode:
        return done.stdout.decode("utf-8", "replace")
    entry, commit = (run("rev-parse", "--verify", "--quiet", f"{revision}{of}") for of in (f":./{path}", "^{commit}"))
    if entry is not None and not entry.returncode:  # such as a file that a partial clone cannot fetch
        fix = "let git reach the remote that it was cloned from, or clone without --filter"
        raise PerfgateError("repository-missing", f"git cannot read '{path}' of {revision}", fix=fix)
    if commit is None or commit.returncode:
        depth = run("rev-parse", "--is-shallow-repository")
        fix = "git fetch --unshallow" if depth is not None and depth.stdout == b"true\n" else ""
        raise PerfgateError("repository-missing", f"'{revision}' is not a revision here", fix=fix)
    return None


def touched(
    root: Path, run: Run, revision: str, words: Sequence[str]
) -> Mapping[str, tuple[str | None, str | None]] | None:
    """Return both texts of each file with one of these words, there or here, that differs from a revision.

    None if git does not answer, such as for a blob that a partial clone cannot fetch.
    """
    look = ("grep", "-l", "-z", "-F", *(part for word in words for part in ("-e", word)))
    try:
        differing = {
            *paths_of(run(*_DIFF, "--name-only", "--no-renames", "--relative", "-z", revision, "--", "*.py")),
            *paths_of(run(*_OTHERS, "*.py")),
        }
        if not differing:
            return {}
        there = {path.removeprefix(f"{revision}:") for path in paths_of(run(*look, revision, "--", "*.py"), nothing=1)}
        here = paths_of(run(*look, "--untracked", "--", "*.py"), nothing=1)
        paths = sorted(differing & {*here, *there})
        then = texts_at(run, revision, paths)
    except NoAnswerError:
        return None
    return {path: (then.get(path), _read_text(root / path)) for path in paths}


def pages_alone(root: Path, run: Run, revision: str, below: str, folder: str) -> tuple[str, ...] | None:
    """Return the differing pages and accepted times; None if anything differs that code may load or read."""
    try:
        edited = paths_of(run(*_DIFF, "--name-only", "--no-renames", "-z", revision, "--"))
        if paths_of(run(*_OTHERS, *_SOURCES)):
            return None
        near = [path[len(below) :] for path in edited if path.startswith(below + folder) and path.endswith(_LINES)]
        lines = {below + path for path in own_files(root, run, revision, near, folder)}
        endings = sorted({_ending(path) for path in edited if path not in lines})
        words = [part for word in endings for part in ("-e", word)]
        look = ("grep", "-l", "-z", "-i", "-F", *words, "--", ":(top)", *_NO_CODE)
        if "" in endings or (words and paths_of(run(*look), nothing=1)):
            return None
    except NoAnswerError:
        return None
    return tuple(edited)


def own_files(root: Path, run: Run, revision: str, paths: Sequence[str], folder: str = "") -> frozenset[str]:
    """Return which of these files perfgate writes, there and here; code may read any other file beside the lines."""
    from pytest_perfgate.adapters.stores.stored_forms import is_own

    try:
        then = texts_at(run, revision, paths)
    except NoAnswerError:
        return frozenset()
    texts = ((path, text) for path in paths for text in (then.get(path), _read_text(root / path)) if text is not None)
    others = {path for path, text in texts if "\n" in path or not is_own(path[len(folder) :], text)}
    return frozenset(paths) - others


def _ending(path: str) -> str:
    """Return what code that opens a page names: its ending, or all of its name; empty for a file that is no page."""
    suffix = posixpath.splitext(path)[1].lower()
    page = (suffix in _PAGES and not _DATA.search(path)) or _TEXTS.search(path)
    return (suffix or posixpath.basename(path)) if page else ""


def _read_text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None


def _digest(difference: bytes, root: Path, names: Iterable[str]) -> str:
    """Return a digest of a difference and of untracked files; "" if there is neither."""
    parts = [difference] if difference else []
    for name in names:
        with suppress(OSError):
            parts += [os.fsencode(name), (root / name).read_bytes()]
    return sha256(b"\0".join(parts)).hexdigest()[:12] if parts else ""
