"""Errors with what, why and next, proposals of similar names, and refusals of the system."""

from __future__ import annotations

import errno
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import PurePath
from typing import TYPE_CHECKING

from pytest_perfgate.model.values import first_of

if TYPE_CHECKING:
    from pytest_perfgate.model.codes import ErrorCode


@lru_cache(maxsize=1)
def codes() -> Mapping[str, ErrorCode]:
    """Return every error code by name; the tables are read with the first error, since most commands have none."""
    return {code.name: code for table in tables() for code in table}


def tables() -> Sequence[Sequence[ErrorCode]]:
    """Return the tables of codes, one a subject; a test keeps names unique and documented."""
    from pytest_perfgate.model.codes import device, gate, profiles, run, store

    return (
        gate.GATE_CODES,
        run.RUN_CODES,
        store.STORE_CODES,
        device.DEVICE_CODES,
        profiles.TRACE_CODES,
        profiles.NSYS_CODES,
        profiles.KERNEL_CODES,
        gate.VERDICT_CODES,
        gate.ARM_CODES,
        run.ARTIFACT_CODES,
    )


class PerfgateError(Exception):
    """An error of perfgate: what happened and where, why it matters, what fixes it."""

    def __init__(self, code: str, what: str, *, why: str = "", fix: str = "", place: str = "") -> None:
        self.code: ErrorCode = codes()[code]
        self.what = what
        self.why = why or self.code.why
        self.fix = fix or self.code.fix
        self.place = place
        super().__init__(self.text())

    def place_at(self, place: str) -> None:
        """Set the place of the error, for a caller that knows it better than the raising code."""
        self.place = place
        self.args = (self.text(),)

    @property
    def exit(self) -> int:
        """The command line's exit code."""
        return self.code.family.exit

    def text(self) -> str:
        """Return the error as shown to the user."""
        where = f"{self.place}: " if self.place else ""
        first, *rest = self.what.splitlines() or [""]
        lines = [f"{where}{first}  [{self.code.name}]", *rest]
        lines += [f"  why   {self.why}"] if self.why else []
        lines += [f"  next  {self.fix}"] if self.fix else []
        return "".join(c if c.isprintable() or c == "\n" else "\ufffd" for c in "\n".join(lines).expandtabs(4))

    def __reduce__(self) -> tuple[object, ...]:
        """Return the parts from which another process restores the error."""
        return restored, (self.code.name, self.what, self.why, self.fix, self.place)


def restored(code: str, what: str, why: str, fix: str, place: str) -> PerfgateError:
    """Return the same error in another process."""
    return PerfgateError(code, what, why=why, fix=fix, place=place)


SHOWING = "showing-failed"


def fault_sentence(fault: Exception, doing: str, code: str) -> str:
    """Return ``perfgate failed while it judged this: ZeroDivisionError: division by zero (judge.py:30)  [CODE]``."""
    return f"{fault_words(fault, doing)}  [{code}]"


def fault_words(fault: Exception, doing: str) -> str:
    """Return the same without its code."""
    text = (
        fault.what if isinstance(fault, PerfgateError) else f"{type(fault).__name__}: {_message(fault)}{_place(fault)}"
    )
    return f"perfgate failed while it {doing}: {text}"


def fault_error(fault: Exception, doing: str, place: str = "") -> PerfgateError:
    """Return an unexpected exception as an error of ours."""
    return fault if isinstance(fault, PerfgateError) else PerfgateError(SHOWING, fault_words(fault, doing), place=place)


def _message(fault: Exception) -> str:
    try:
        return str(fault)
    except Exception:  # noqa: BLE001 - an exception that cannot be printed still has a name and a place
        return "it does not say what"


def _place(fault: Exception) -> str:
    """Return where it was raised."""
    trace = fault.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return f" ({PurePath(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno})" if trace is not None else ""


_SHOWN = 12

_SIMILAR = 0.55
"""The least share of letters that two similar words have in common."""


def nearest(word: str, valid: Iterable[str], count: int = 3) -> tuple[str, ...]:
    """Return valid words close to a wrong one, the closest first; a difference in case or blanks counts least."""
    from difflib import get_close_matches

    words = list(dict.fromkeys(valid))
    same = [w for w in words if w.casefold() == word.casefold()]
    folded = {w.casefold(): w for w in words}
    similar = get_close_matches(word.casefold(), folded, n=max(1, len(folded)), cutoff=_SIMILAR)
    close = [folded[one] for one in similar if _within_a_third(word.casefold(), one)]
    inside = [w for w in words if len(word) > 2 and (word.casefold() in w.casefold())]
    return tuple(dict.fromkeys([*same, *close, *inside]))[:count]


def having(words: str, texts: Sequence[str]) -> list[int]:
    """Return where the texts are that have all words, or else the rarest; those that begin with one come first."""
    # Words are compared without their endings, in British spelling: ``spilling`` is in ``spilled registers``. There is
    # none where no text has one of the words.
    stems = tuple(map(_stem, _WORD.findall(words.casefold())))
    parts = [_WORD.findall(_british_spelling(text.casefold())) for text in texts]
    places = [{at for at, part in enumerate(parts) if any(one.startswith(stem) for one in part)} for stem in stems]
    best = set.intersection(*places) or min(places, key=len) if places and all(places) else set()
    return sorted(best, key=lambda at: (not parts[at][0].startswith(stems), at))


_WORD = re.compile(r"[^\W_]{2,}")


def _stem(word: str) -> str:
    short = re.sub(r"(ing|ers?|ed|es|s|y)$", "", _british_spelling(word))
    return short if len(short) > 3 else _british_spelling(word)


def _british_spelling(text: str) -> str:
    return re.sub("iz(?=[ae])", "is", text)


def _within_a_third(word: str, other: str) -> bool:
    """Return whether one contains the other, or edits of a third of the letters make them equal."""
    # Letters in common are not enough: all but one of ``pytest`` stand in ``op_bytes``.
    if word in other or other in word:
        return True
    edges = list(range(len(other) + 1))
    before: list[int] = []
    for at, letter in enumerate(word):
        row = [at + 1]
        for to, its in enumerate(other):
            row.append(min(row[to] + 1, edges[to + 1] + 1, edges[to] + (letter != its)))
            if at and to and (letter, word[at - 1]) == (other[to - 1], its):
                row[-1] = min(row[-1], before[to - 1] + 1)
        before, edges = edges, row
    return edges[-1] <= max(len(word), len(other)) / 3


def proposal(word: str, valid: Iterable[str], *, all_of: str = "") -> str:
    """Return ``did you mean 'mfu' or 'mfu_ceiling'?``, or all valid words if none is near."""
    words = tuple(dict.fromkeys(valid))
    near = nearest(word, words)
    if near:
        return f"did you mean {either(near)}?"
    return f"{all_of}: {some_of(sorted(words))}" if all_of and words else ""


def some_of(words: Sequence[str]) -> str:
    """Return the first dozen, and how many more there are."""
    return first_of(words, _SHOWN)


def either(words: Iterable[str]) -> str:
    """Return ``'a', 'b' or 'c'``."""
    quoted = [f"'{w}'" for w in words]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} or {quoted[-1]}"


_NAMES: Mapping[str, tuple[str, ...]] = {
    "file-missing": ("ENOENT",),
    "file-kind": ("EISDIR", "ENOTDIR", "EEXIST"),
    "file-full": ("ENOSPC", "EDQUOT", "EFBIG"),
    "file-broken": ("EIO", "ESTALE", "ENXIO"),
}

_CODES = {getattr(errno, name): code for code, names in _NAMES.items() for name in names if hasattr(errno, name)}
"""Codes by error number; others (permission, a read-only disk) keep the system's reason."""


def refusal(fault: OSError, place: str = "") -> PerfgateError:
    """Return the system's error as one of ours, with what to do about its kind."""
    named = place or str(fault.filename or "")
    what = fault.strerror or str(fault) or type(fault).__name__
    return PerfgateError(_CODES.get(fault.errno or 0, "file-refused"), what, place=named)


@contextmanager
def written(place: str) -> Iterator[None]:
    """Add the place to errors of the system while something is written; a full disk names none."""
    try:
        yield
    except OSError as fault:
        raise refusal(fault, place) from fault


@contextmanager
def within_memory(paths: Sequence[object]) -> Iterator[None]:
    """Turn a full memory into an error that names the files, while they are read or shown."""
    try:
        yield
    except MemoryError as full:
        raise PerfgateError("trace-memory", "the memory is full", place=", ".join(map(str, paths[:2]))) from full


def speaks_of_a_file(fault: OSError) -> bool:
    """Return whether an error names a file; that of a full or failing disk does not."""
    return fault.filename is not None or _CODES.get(fault.errno or 0) in {"file-full", "file-broken"}


_OF_PIP = ("subprocess-exited-with-error", "metadata-generation-failed", "failed-wheel-build", "from a subprocess")
"""Phrases of pip about errors of other programs."""


_UNQUOTED_PASSWORD = re.compile(r"//[^/?#@:\[]*:(?![0-9]*(?:[/?#,]|$)).*@")
"""A user and a password with a character that ends the host of an address; a port has digits alone."""


def without_secrets(url: str) -> str:
    """Return the address without user, password and query, fit for a log."""
    from urllib.parse import urlsplit, urlunsplit

    url = _UNQUOTED_PASSWORD.sub("//", url)
    try:
        parts = urlsplit(url)
    except ValueError:
        return re.sub(r"//[^/]*@", "//", re.split("[?#]", url)[0])
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def error_summary(fault: PerfgateError) -> str:
    """Return the first line, the first error after it or else the last line, and where the full text is."""
    first, *rest = (line.strip() for line in fault.what.strip().splitlines())
    errors = [line for line in rest if "error:" in line.lower() and not any(words in line for words in _OF_PIP)]
    lines = [errors[0]] if errors else rest[-1:]
    return "\n".join([first, *lines, *([f"all of it: {fault.place}"] if rest and fault.place else [])])
