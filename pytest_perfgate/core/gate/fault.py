"""Errors in the text of a limit, with a caret under the place."""

from __future__ import annotations

from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.values import value


@value
class Span:
    """A piece of a limit's text."""

    start: int
    end: int


@value
class Written:
    """A limit as it was written, and where."""

    text: str
    place: str = ""

    def fault(self, code: str, what: str, span: Span, mend: str = "") -> PerfgateError:
        """The error to raise: the sentence, the text, and a caret under the place."""
        marks = " " * span.start + "^" * max(1, span.end - span.start)
        shown = "".join(c if c.isprintable() else " " for c in self.text)
        return PerfgateError(code, f"{what}\n    {shown}\n    {marks}", mend=mend, place=self.place)
