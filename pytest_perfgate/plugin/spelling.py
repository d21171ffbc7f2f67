"""Names that no file can hold: half a character, such as pytest leaves in ids that it was told not to escape."""

from __future__ import annotations

from pytest_perfgate.model.errors import PerfgateError


def insist_on_whole(text: str, what: str, place: str, *, code: str, mend: str) -> str:
    """The text, as Python's own; raises where a record, a baseline or a report could not name it."""
    if not isinstance(text, str):
        raise PerfgateError(code, f"{what} is a text, and {text!r:.60} is none", mend="str(...)", place=place)
    try:
        text.encode()
    except UnicodeEncodeError as fault:
        half = text[fault.start]
        said = f"{what} holds half a character, {half!a}: no record, baseline or report can name it"
        raise PerfgateError(code, said, mend=mend, place=place) from fault
    return str.__str__(text)
