"""Errors: what, why, next; near misses ("did you mean"); refusals."""

from __future__ import annotations

import errno
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import PurePath

from pytest_perfgate.model.codes import Code, device, gate, profiles, run, store
from pytest_perfgate.model.values import first_of

_TABLES = (
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

CODES: dict[str, Code] = {code.name: code for table in _TABLES for code in table}
"""Every error code; a test keeps names unique and documented."""


class PerfgateError(Exception):
    """A failure of ours: what happened and where, why it matters, what fixes it."""

    def __init__(self, code: str, what: str, *, why: str = "", fix: str = "", place: str = "") -> None:
        self.code: Code = CODES[code]
        self.what = what
        self.why = why or self.code.why
        self.fix = fix or self.code.fix
        self.place = place
        super().__init__(self.text())

    def place_at(self, place: str) -> None:
        """Where it happened, told by whoever knows that better than who raised it."""
        self.place = place
        self.args = (self.text(),)

    @property
    def exit(self) -> int:
        """The command line's exit code."""
        return self.code.family.exit

    def text(self) -> str:
        """The error as a person reads it."""
        where = f"{self.place}: " if self.place else ""
        first, *rest = self.what.splitlines() or [""]
        lines = [f"{where}{first}  [{self.code.name}]", *rest]
        lines += [f"  why   {self.why}"] if self.why else []
        lines += [f"  next  {self.fix}"] if self.fix else []
        return "".join(c if c.isprintable() or c == "\n" else "\ufffd" for c in "\n".join(lines))

    def __reduce__(self) -> tuple[object, ...]:
        """Crosses the border of a process as what it was made of."""
        return restored, (self.code.name, self.what, self.why, self.fix, self.place)


def restored(code: str, what: str, why: str, fix: str, place: str) -> PerfgateError:
    """The same error in another process."""
    return PerfgateError(code, what, why=why, fix=fix, place=place)


SHOWING = "showing-failed"


def fault_sentence(fault: Exception, doing: str, code: str) -> str:
    """``perfgate failed while it judged this: ZeroDivisionError: division by zero (judge.py:30)  [judging-failed]``."""
    return f"{fault_words(fault, doing)}  [{code}]"


def fault_words(fault: Exception, doing: str) -> str:
    """The same without its code."""
    text = (
        fault.what if isinstance(fault, PerfgateError) else f"{type(fault).__name__}: {_message(fault)}{_place(fault)}"
    )
    return f"perfgate failed while it {doing}: {text}"


def fault_error(fault: Exception, doing: str, place: str = "") -> PerfgateError:
    """What could not be shown as an error of ours."""
    return fault if isinstance(fault, PerfgateError) else PerfgateError(SHOWING, fault_words(fault, doing), place=place)


def _message(fault: Exception) -> str:
    try:
        return str(fault)
    except Exception:  # noqa: BLE001 - a fault that cannot say what it is still has a name and a place
        return "it does not say what"


def _place(fault: Exception) -> str:
    """Where it was raised."""
    trace = fault.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return f" ({PurePath(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno})" if trace is not None else ""


_SHOWN = 12


def nearest(word: str, valid: Iterable[str], count: int = 3) -> tuple[str, ...]:
    """Valid words close to a wrong one, the closest first; only case or blanks wrong comes before all."""
    from difflib import get_close_matches

    words = list(dict.fromkeys(valid))
    same = [w for w in words if w.casefold() == word.casefold()]
    folded = {w.casefold(): w for w in words}
    close = [folded[c] for c in get_close_matches(word.casefold(), folded, n=count, cutoff=0.55)]
    inside = [w for w in words if len(word) > 2 and (word.casefold() in w.casefold())]
    return tuple(dict.fromkeys([*same, *close, *inside]))[:count]


def proposal(word: str, valid: Iterable[str], *, all_of: str = "") -> str:
    """``did you mean 'mfu' or 'mfu_ceiling'?``, or all there are when nothing is near."""
    words = tuple(dict.fromkeys(valid))
    near = nearest(word, words)
    if near:
        return f"did you mean {either(near)}?"
    return f"{all_of}: {some_of(sorted(words))}" if all_of and words else ""


def some_of(words: Sequence[str]) -> str:
    """The first dozen, and how many more there are."""
    return first_of(words, _SHOWN)


def either(words: Iterable[str]) -> str:
    """``'a', 'b' or 'c'``."""
    quoted = [f"'{w}'" for w in words]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} or {quoted[-1]}"


_NAMES: Mapping[str, tuple[str, ...]] = {
    "file-missing": ("ENOENT",),
    "file-kind": ("EISDIR", "ENOTDIR", "EEXIST"),
    "file-full": ("ENOSPC", "EDQUOT", "EFBIG"),
    "file-broken": ("EIO", "ESTALE", "ENXIO"),
}

_CODES = {getattr(errno, name): code for code, names in _NAMES.items() for name in names if hasattr(errno, name)}
"""By number; whatever else there is (permission, a read-only disk) is refused for its own reason."""


def refusal(fault: OSError, place: str = "") -> PerfgateError:
    """The system's error as one of ours, which says what to do about this kind of it."""
    named = place or str(fault.filename or "")
    what = fault.strerror or str(fault) or type(fault).__name__
    return PerfgateError(_CODES.get(fault.errno or 0, "file-refused"), what, place=named)


@contextmanager
def written(place: str) -> Iterator[None]:
    """Writing something: what the system refuses names the place, which a full disk does not."""
    try:
        yield
    except OSError as fault:
        raise refusal(fault, place) from fault


def speaks_of_a_file(fault: OSError) -> bool:
    """Whether an error is of a file; a full or failing disk does not say of which."""
    return fault.filename is not None or _CODES.get(fault.errno or 0) in {"file-full", "file-broken"}
