"""Git: running it, commits, snapshots of the working copy and detached worktrees."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from pytest_perfgate.adapters.system.files import first_bytes, last_lines
from pytest_perfgate.adapters.system.processes import run_captured
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.values import first_of, value

_SELF = {"GIT_AUTHOR_NAME": "perfgate", "GIT_AUTHOR_EMAIL": "perfgate@localhost", "GIT_COMMITTER_NAME": "perfgate"}
_SELF["GIT_COMMITTER_EMAIL"] = "perfgate@localhost"

_SETTINGS = (
    f"core.hooksPath={os.devnull}", "core.safecrlf=false", "advice.addEmbeddedRepo=false", "submodule.recurse=false",
    "color.ui=false", "color.grep=false", "grep.fullName=false", "diff.relative=false", "log.showSignature=false",
)  # fmt: skip
"""Settings in place of the user's: no hooks, no refusal to convert line ends, and answers in the form that we read."""

_STEERING = {"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_COMMON_DIR"}
"""Variables that git sets for a hook, with which it would use the hook's repository, not the folder's."""

_OURS = {"GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}

ANSWER_S = 30.0

_POINTER = b"version https://git-lfs.github.com/spec/"
"""The first bytes of the pointer that git-lfs leaves in place of a file's content."""

_SHORT = re.compile(r"[0-9a-f]{7,39}(\+dirty)?")
"""A shortened hash, which cannot be fetched from a server."""

_LOOK = "name a revision that is here: git log --oneline --all"

_NO_SOURCE = (":(exclude,top,glob)**/.perfgate/**", ":(exclude,top,glob)**/__pycache__/**")
"""Files that are never part of a snapshot, because every run changes them."""


def run_git(
    folder: Path,
    words: Sequence[str],
    *,
    env: Mapping[str, str] | None = None,
    variables: Mapping[str, str] | None = None,
    stdin: bytes | None = None,
    timeout_s: float | None = ANSWER_S,
) -> subprocess.CompletedProcess[bytes]:
    """Run git in a folder, in English, without prompts, hooks, and the variables of a calling hook."""
    inherited = {name: text for name, text in (os.environ if env is None else env).items() if name not in _STEERING}
    command = ["git", *(part for setting in _SETTINGS for part in ("-c", setting)), *words]
    return run_captured(command, timeout_s, folder=folder, env={**inherited, **_OURS, **(variables or {})}, stdin=stdin)


def ask_git(
    folder: Path, *words: str, env: Mapping[str, str] | None = None, stdin: bytes | None = None
) -> subprocess.CompletedProcess[bytes] | None:
    """Return git's answer in a folder; None if git is missing or does not answer in time."""
    try:
        return run_git(folder, words, env=env, stdin=stdin)
    except (OSError, subprocess.TimeoutExpired):
        return None


@value
class Revision:
    """A commit with its tree; a dirty one is a snapshot of the working copy."""

    commit: str
    tree: str
    dirty: bool = False


class Git:
    """One repository, by its top folder."""

    def __init__(self, inside: Path) -> None:
        self._inside = inside
        self.top = _folder(self.checked("rev-parse", "--show-toplevel"))

    def revision(self, name: str) -> Revision:
        """Return the commit of a name; raise with the command that fetches it if it is missing."""
        commit = self._commit(name)
        if not commit:
            raise self._missing(name)
        return Revision(commit=commit, tree=self.checked("rev-parse", f"{commit}^{{tree}}"))

    def snapshot(self) -> Revision:
        """Return the working copy as a commit without a branch, with staged, unstaged and untracked files."""
        head = self.revision("HEAD")
        with tempfile.TemporaryDirectory() as scratch:
            index = Path(scratch, "index")
            own = self.top / self.checked("rev-parse", "--git-path", "index")
            if own.exists():
                shutil.copy2(own, index)
            variables = {"GIT_INDEX_FILE": str(index)}
            self.checked("add", "--all", "--", ":/", *_NO_SOURCE, variables=variables)
            for path, commit in self._changed_submodules(variables):
                self.checked("update-index", "--cacheinfo", f"160000,{commit},{path}", variables=variables)
            tree = self.checked("write-tree", variables=variables)
        if tree == head.tree:
            return head
        commit = self.checked("commit-tree", tree, "-p", head.commit, "-m", "working copy", variables=_SELF)
        return Revision(commit=commit, tree=tree, dirty=True)

    def remove_worktree(self, folder: Path) -> None:
        """Remove the folder and its registration; the second call removes an unfinished one."""
        self.run("worktree", "remove", "--force", "--force", str(folder))
        if folder.exists():
            shutil.rmtree(folder, ignore_errors=True)
            self.run("worktree", "remove", "--force", "--force", str(folder))

    def lost_worktrees(self) -> tuple[str, ...]:
        """Return the folders of registered worktrees that no longer exist."""
        listed = self.run("worktree", "list", "--porcelain").stdout.split("\n\n")
        folders = (_folder(entry.splitlines()[0].removeprefix("worktree ")) for entry in listed if entry.strip())
        return tuple(str(folder) for folder in folders if not folder.exists())

    def checked(self, *arguments: str, variables: Mapping[str, str] | None = None) -> str:
        """Return git's output; raise with its message if it fails."""
        result = self.run(*arguments, variables=variables)
        if result.returncode:
            raise _refused(arguments[0], result.stderr)
        return result.stdout.rstrip("\n")

    def run(self, *arguments: str, variables: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        """Run git and return the result as text, without a time limit, since a checkout may take long."""
        folder = getattr(self, "top", self._inside)
        try:
            result = run_git(folder, arguments, variables=variables, timeout_s=None)
        except FileNotFoundError as error:
            raise PerfgateError("no-repository", "git is not installed", fix="install git") from error
        out, err = (text.decode("utf-8", "surrogateescape") for text in (result.stdout, result.stderr))
        return subprocess.CompletedProcess(result.args, result.returncode, out, err)

    def _commit(self, name: str) -> str:
        commit = self.run("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
        return "" if commit.returncode else commit.stdout.strip()

    def _changed_submodules(self, variables: Mapping[str, str]) -> Iterator[tuple[str, str]]:
        """Yield submodules whose working copy differs from their commit, each with a snapshot of it."""
        staged = self.checked("ls-files", "--stage", "-z", variables=variables).split("\0")
        paths = [entry.partition("\t")[2] for entry in staged if entry.startswith("160000 ")]
        for path in paths:
            if (self.top / path / ".git").exists():
                snapshot = Git(self.top / path).snapshot()
                if snapshot.dirty:
                    yield path, snapshot.commit

    def _missing(self, name: str) -> PerfgateError:
        """Return the error for a missing revision, with the command that fetches it."""
        if self.run("rev-parse", "--is-shallow-repository").stdout.strip() == "true":
            return PerfgateError("revision-shallow", f"{name!r} is not in this shallow clone")
        if (self.top / name).exists():
            fix = "name the file before the option, or give the option its revision: --perfgate-against=REVISION"
            return PerfgateError("revision-missing", f"{name!r} is a file here, not a revision", fix=fix)
        start = re.split(r"[~^@]", name)[0] or "HEAD"
        if start == "HEAD" and not self._commit("HEAD"):
            return PerfgateError("revision-missing", "this repository has no commit", fix="git commit")
        if start != name and self._commit(start):
            count = self.checked("rev-list", "--count", start)
            what = f"{name!r} is before the first commit: {start} has a history of {count}"
            return PerfgateError("revision-missing", what, fix="name a later revision: git log --oneline")
        remotes = self.run("remote").stdout.split()
        for remote in remotes:
            if self._commit(f"{remote}/{start}"):
                fix = f"name the branch of the remote: {remote}/{name}"
                return PerfgateError("revision-missing", f"{name!r} is not a branch of this clone", fix=fix)
        fix = _fetching(name, remotes) if remotes and not _SHORT.fullmatch(name) else _LOOK
        return PerfgateError("revision-missing", f"{name!r} is not in this clone", fix=fix)


def _folder(output: str) -> Path:
    """Return a path of git's output in this process's encoding, which may be ASCII in the locale C."""
    return Path(os.fsdecode(output.encode("utf-8", "surrogateescape")))


def _fetching(name: str, remotes: list[str]) -> str:
    """Return the command that fetches a remote's branch, or else any name."""
    remote, _, branch = name.partition("/")
    if remote in remotes and branch:
        return f"git fetch {remote} {branch}"
    return f"git fetch {remotes[0]} {name}, then name FETCH_HEAD; a tag: git fetch {remotes[0]} tag {name}"


def _refused(command: str, output: str) -> PerfgateError:
    if "dubious ownership" in output:
        fix = next((line.strip() for line in output.splitlines() if "safe.directory" in line), "")
        return PerfgateError("no-repository", "git does not trust this folder: it belongs to another user", fix=fix)
    absent = "not a git repository" in output or "must be run in a work tree" in output
    code = "arm-no-room" if "No space left on device" in output else "no-repository" if absent else "git-failed"
    lacking = "is not a git command" in output or "usage: git" in output  # we use nothing that a newer one refuses
    fix = "install git 2.30 or newer; git --version shows yours" if lacking else ""
    fix = "make the checkout writable, or copy it" if "Read-only file system" in output else fix
    return PerfgateError(code, f"git {command} failed: {ending(output)}", fix=fix)


def ending(text: str, lines: int = 4) -> str:
    """Return the end of git's output in one line."""
    return " / ".join(last_lines(text.encode("utf-8", "replace").decode("utf-8"), lines))


def check_out(git: Git, folder: Path, revision: Revision) -> tuple[str, ...]:
    """Create a detached worktree, with its submodules as they are in the working copy; return the empty ones."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    # The second --force replaces a worktree that was registered there.
    git.checked("worktree", "add", "--detach", "--force", "--force", str(folder), revision.commit)
    own = git.top / git.checked("rev-parse", "--git-common-dir") / "modules"
    empty = tuple(_submodules(git, folder, git.top, own))
    _refuse_pointers(git, folder)
    return empty


def _submodules(git: Git, folder: Path, top: Path, store: Path) -> Iterator[str]:
    """Clone submodules from this clone; yield those that were never initialised here, which are not fetched."""
    initialised = {name for name, _ in _listed(git, top)}
    for name, path in _listed(git, folder):
        inside = top / path
        source = store / name if (store / name).is_dir() else inside if (inside / ".git").is_dir() else None
        if source is None and name in initialised and not (inside / ".git").exists():
            yield path
            continue
        _update(git, folder, path, ("-c", f"submodule.{name}.url={source}") if source else ())
        yield from (f"{path}/{deep}" for deep in _submodules(git, folder / path, inside, store / name / "modules"))


def _update(git: Git, folder: Path, path: str, options: tuple[str, ...]) -> None:
    update = ("submodule", "update", "--init", "--quiet", "--", path)
    done = git.run("-C", str(folder), "-c", "protocol.file.allow=always", *options, *update)
    if done.returncode:
        raise PerfgateError("submodule-missing", f"the submodule {path!r} cannot be checked out: {ending(done.stderr)}")


def _listed(git: Git, folder: Path) -> list[tuple[str, str]]:
    """Return (name, path) of each submodule; a folder without ``.gitmodules`` has none."""
    file = str(folder / ".gitmodules")
    lines = git.run("config", "--file", file, "--null", "--get-regexp", r"^submodule\..*\.path$").stdout
    pairs = (entry.partition("\n") for entry in lines.split("\0") if entry)
    return [(key[len("submodule.") : -len(".path")], path) for key, _, path in pairs]


def _refuse_pointers(git: Git, folder: Path) -> None:
    """Refuse a worktree that has only pointers of git-lfs where the working copy has the content."""
    listed = git.run("-C", str(folder), "ls-files", "-z", "--", ":(top,attr:filter=lfs)").stdout.split("\0")
    paths = [path for path in listed if path and _is_pointer(folder / path)]
    lost = [path for path in paths if (git.top / path).is_file() and not _is_pointer(git.top / path)]
    if lost:
        what = f"git-lfs left pointers where the working copy has contents: {first_of(lost, 3)}"
        raise PerfgateError("lfs-missing", what)


def _is_pointer(path: Path) -> bool:
    try:
        return first_bytes(path, len(_POINTER)) == _POINTER
    except OSError:
        return False


class NoAnswerError(Exception):
    """Raised when git does not answer."""


def paths_of(result: subprocess.CompletedProcess[bytes] | None, nothing: int = 0) -> list[str]:
    """Return the paths that git lists; ``nothing`` is its exit code for an empty list."""
    if result is None or result.returncode not in {0, nothing}:
        raise NoAnswerError
    return [path for path in result.stdout.decode("utf-8", "surrogateescape").split("\0") if path]


def blobs_of(result: subprocess.CompletedProcess[bytes] | None, paths: Sequence[str]) -> dict[str, str]:
    """Return the texts that ``git cat-file --batch`` printed for these paths, in their order."""
    if result is None or result.returncode:
        raise NoAnswerError
    blobs, rest = {}, result.stdout
    for path in paths:
        head, _, rest = rest.partition(b"\n")
        words = head.rsplit(b" ", 2)
        if words[-2:-1] == [b"blob"]:
            size = int(words[-1])
            blobs[path], rest = rest[:size].decode("utf-8", "replace"), rest[size + 1 :]
    return blobs


def texts_at(
    run: Callable[..., subprocess.CompletedProcess[bytes] | None], revision: str, paths: Sequence[str]
) -> dict[str, str]:
    """Return texts of a revision from one query; paths with a line break are left out."""
    single = [path for path in paths if "\n" not in path]
    stdin = "".join(f"{revision}:./{path}\n" for path in single).encode("utf-8", "surrogateescape")
    return blobs_of(run("cat-file", "--batch", stdin=stdin), single) if single else {}
