"""What of a text may be shown to anybody: nothing of people, machines, home folders and secrets."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import replace
from functools import lru_cache

from pytest_perfgate.model.values import value


@value
class Names:
    """The people and machines that a file names, and folders that lead to its project."""

    users: frozenset[str] = frozenset()
    hosts: frozenset[str] = frozenset()
    roots: frozenset[str] = frozenset()


_PERSON = r"[^/\\\s:;,'\"<>|()\[\]{}]+"

_STARTS = r"(?:(?<![\w.~/-])|(?<=://)|(?<=_)|(?<=-[A-Z])|(?<=-isystem))"
"""Where an absolute path may start: not inside of another one, but after the flag of a compiler."""

_HOME = (
    rf"{_STARTS}(?:(?:/[\w.+-]+){{0,3}}?/(?:home|Users|homes/\w)/({_PERSON})|/root(?![\w.-])"
    rf"|(?:/(?:data|gpfs|lustre|scratch|nfs|work|projects?|mnt|export|global|net))?/users/({_PERSON})(?=/)|[A-Za-z]:(?:\\+|/)Users(?:\\+|/)({_PERSON}))"
    r"|(?<![\w/.~:)>])~([a-z_][\w.-]*)(?=/)"
)

_INTERPRETER = rf"{_STARTS}(?:/[\w.@+-]+)*/bin/(python)(?:\d+(?:\.\d+)*)?(?![\w/-]|\.\w)"
"""An interpreter by its whole path, wherever it is installed."""

_BEHIND = (
    r"(?:[a-zA-Z\d-]+(?:\.[a-zA-Z\d-]+)*\.(?!(?:so|py|cu|cuh|cc?|cpp|h|hpp|o|a|ptx|cubin|json)\b)[a-z]{2,24}"
    r"|(?=[a-z-]*[\d-])[a-z\d-]*(?:node|host|login|worker|server|dgx|hgx|cluster|compute|build|desktop|laptop)[a-z\d-]*"
    r"|[\w.-]+(?=:[/~]))(?![\w@-])"
)
_SIGNED = rf"(?<![\w@$?.%+-])[A-Za-z][\w.+-]*@{_BEHIND}"
"""``ann@node7``, ``ann@example.org`` and ``ann@box:/srv``, but not ``memcpy@GLIBC_2.14``."""

_HIDDEN = (
    r"(?<![A-Za-z\d])(?:hf_[A-Za-z\d]{16,}|gh[opsur]_[A-Za-z\d]{16,}|github_pat_\w{16,}|glpat-[\w-]{16,}"
    r"|sk-[\w-]{20,}|xox[abprs]-[\w-]{10,}|AKIA[A-Z\d]{16}|eyJ[\w-]{10,}\.[\w-]{10,}(?:\.[\w-]+)?)"
    r"|(?<=://)[^/\s:@\"',]+:[^/\s@\"',]+(?=@)"
    r"|(?i:(?<=password[=:])|(?<=passwd[=:])|(?<=secret[=:])|(?<=api_key[=:])|(?<=access_key[=:]))[^\s,;&\"')\]}]{4,}"
    r"|(?i:(?<=token[=:]))(?=[^\s,;&]*\d)(?=[^\s,;&]*[A-Za-z])[^\s,;&\"')\]}]{16,}"
)
_MARKS = (
    "hf_", "ghp_", "gho_", "ghs_", "ghu_", "ghr_", "github_", "glpat-", "sk-", "xox", "AKIA", "eyJ", "://", "oken=",
    "OKEN=", "oken:", "OKEN:", "assw", "ASSW", "ecret", "ECRET", "_key", "_KEY",
)  # fmt: skip
"""Parts of every secret; searching for them first takes a tenth of the pattern's time."""

_ANYBODY = frozenset(
    ("root", "user", "users", "ubuntu", "runner", "admin", "guest", "nobody", "test", "train", "model", "data", "main",
     "docker", "cuda", "python", "default", "public", "shared", "localhost", "localdomain", "host", "device", "auto",
     "none", "all", "gpu", "cpu", "true", "false")
)  # fmt: skip
"""Accounts and machines that identify nobody, and words that usually mean other things."""


def named_in(texts: Collection[str], names: Names) -> Names:
    """Return the names with people whose home folders occur in texts, and their machines: ``ann@node7``."""
    people = (
        user for text in texts if _is_home_folder(text) for groups in re.findall(_HOME, text) for user in groups if user
    )
    users = names.users.union(people)
    own = _words(users)
    behind = re.compile(rf"{own.pattern}@(\w[\w.-]*)") if own else None
    hosts = (host for text in texts if behind and "@" in text for host in behind.findall(text))
    return replace(names, users=users, hosts=names.hosts.union(hosts))


def _is_home_folder(text: str) -> bool:
    return "/home" in text or "sers" in text or "/root" in text or "~" in text


def shareable(text: str, names: Names) -> str:
    """Return a text without people, machines, home folders and secrets; paths of the project are made relative."""
    # An interpreter is shown by its name alone.
    if "/bin/python" in text:
        text = re.sub(_INTERPRETER, r"\1", text)
    for root in sorted(names.roots, key=len, reverse=True):
        if root in text:
            text = re.sub(rf"(?<![\w./-]){re.escape(root)}/", "", text)
    if _is_home_folder(text):
        text = re.sub(_HOME, "~", text)
    if any(mark in text for mark in _MARKS):
        text = re.sub(_HIDDEN, "[secret]", text)
    if "@" in text:
        text = re.sub(_SIGNED, "[user]@[host]", text)
    for identifiers, word in ((names.hosts, "[host]"), (names.users, "[user]")):
        if pattern := _words(identifiers):
            text = pattern.sub(word, text)
    return text


def masked(text: str, names: Names) -> str:
    """Return a text of the same length with asterisks for people, machines, home folders and secrets."""
    for pattern in (re.compile(_HOME), re.compile(_HIDDEN), _words(names.hosts), _words(names.users)):
        text = pattern.sub(lambda match: "*" * len(match[0]), text) if pattern else text
    return text


@lru_cache(maxsize=64)
def _words(identifiers: frozenset[str]) -> re.Pattern[str] | None:
    names = (name for name in identifiers if len(name) > 2 and not name.isdigit() and name.lower() not in _ANYBODY)
    own = sorted(names, key=len, reverse=True)
    return re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, own))})(?!\w)") if own else None
