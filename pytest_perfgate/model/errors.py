"""Errors that say what, why and next, each with a code and a page."""

from __future__ import annotations

from pytest_perfgate.model.codes import CODES, Code


class PerfgateError(Exception):
    """A failure of ours: what happened and where, why it matters, what mends it."""

    def __init__(self, code: str, what: str, *, why: str = "", mend: str = "", place: str = "") -> None:
        self.code: Code = CODES[code]
        self.what = what
        self.why = why or self.code.why
        self.mend = mend or self.code.mend
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
        lines += [f"  next  {self.mend}"] if self.mend else []
        return "".join(c if c.isprintable() or c == "\n" else "\ufffd" for c in "\n".join(lines))

    def __reduce__(self) -> tuple[object, ...]:
        """Crosses the border of a process as what it was made of."""
        return restored, (self.code.name, self.what, self.why, self.mend, self.place)


def restored(code: str, what: str, why: str, mend: str, place: str) -> PerfgateError:
    """The same error in another process."""
    return PerfgateError(code, what, why=why, mend=mend, place=place)
