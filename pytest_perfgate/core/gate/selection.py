"""Which cases a person means: node ids and their beginnings, and ``-k`` expressions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.plan import CaseKey

Selects = Callable[[CaseKey], bool]
_TOKEN = re.compile(r"\s*(?:([()])|([^\s()]+))")


def named(names: Iterable[str]) -> Selects:
    """Cases that one of these names: a node id whole, without parameters, a test's own name, a file, a folder."""
    wanted = [name.strip().replace("\\", "/") if "::" not in name else name.strip() for name in names]
    return lambda key: any(_is_spelled(key, name) or _lies_in(key, name) for name in wanted)


def spelled(names: Iterable[str]) -> Selects:
    """Cases that one of these names means itself, and not by the file or the folder that holds it."""
    wanted = [name.strip() for name in names]
    return lambda key: any(_is_spelled(key, name) for name in wanted)


def _lies_in(key: CaseKey, name: str) -> bool:
    return key.path == name or key.path.startswith(name.rstrip("/") + "/")


def _is_spelled(key: CaseKey, name: str) -> bool:
    whole, test = str(key), key.test
    forms = (
        whole,
        key.nodeid,
        test,
        key.nodeid.partition("::")[2],
        _bare(key.nodeid),
        _bare(key.nodeid).partition("::")[2],
        f"{key.nodeid}#{key.name}",
    )
    return name in forms or _as_written(name) in forms


def _as_written(name: str) -> str:
    """As a key says it: in parameters, and only there, pytest escapes what is no ASCII."""
    head, bracket, rest = name.partition("[")
    parameters, closed, tail = rest.rpartition("]")
    escaped = "".join(sign if sign.isascii() else sign.encode("unicode_escape").decode() for sign in parameters)
    return f"{head}{bracket}{escaped}{closed}{tail}"


def _bare(nodeid: str) -> str:
    """The node id without parameters."""
    path, _, test = nodeid.partition("::")
    return f"{path}::{test.partition('[')[0]}"


def matching(expression: str) -> Selects:
    """Cases that a ``-k`` expression selects: words are parts of the name, with and, or, not, brackets."""
    tokens = list(_tokens(expression))
    tree, rest = _either(tokens, 0, expression)
    if rest != len(tokens):
        raise _fault(expression, f"'{tokens[rest]}' is not expected")
    return lambda key: tree(str(key).lower())


def _tokens(expression: str) -> Iterator[str]:
    for bracket, word in _TOKEN.findall(expression):
        yield bracket or word


Holds = Callable[[str], bool]


def _either(tokens: list[str], at: int, expression: str) -> tuple[Holds, int]:
    left, at = _both(tokens, at, expression)
    parts = [left]
    while at < len(tokens) and tokens[at] == "or":
        right, at = _both(tokens, at + 1, expression)
        parts.append(right)
    return lambda name: any(part(name) for part in parts), at


def _both(tokens: list[str], at: int, expression: str) -> tuple[Holds, int]:
    left, at = _single(tokens, at, expression)
    parts = [left]
    while at < len(tokens) and tokens[at] == "and":
        right, at = _single(tokens, at + 1, expression)
        parts.append(right)
    return lambda name: all(part(name) for part in parts), at


def _single(tokens: list[str], at: int, expression: str) -> tuple[Holds, int]:
    if at >= len(tokens):
        raise _fault(expression, "it ends where a name is expected")
    word = tokens[at]
    if word == "not":
        inner, after = _single(tokens, at + 1, expression)
        return lambda name: not inner(name), after
    if word == "(":
        inner, after = _either(tokens, at + 1, expression)
        if tokens[after : after + 1] != [")"]:
            raise _fault(expression, "a bracket is not closed")
        return inner, after + 1
    if word in {")", "and", "or"}:
        raise _fault(expression, f"'{word}' is not expected")
    return lambda name: word.lower() in name, at + 1


def _fault(expression: str, what: str) -> PerfgateError:
    mend = "write, for one, -k 'gemm and not fp16'"
    return PerfgateError("command-usage", f"-k '{expression}': {what}", mend=mend)
