"""A fault of perfgate's own, as a sentence: what it was doing, what went wrong, where."""

from __future__ import annotations

from pathlib import PurePath

from pytest_perfgate.model.errors import PerfgateError

SHOWING = "showing-failed"


def fault_sentence(fault: Exception, doing: str, code: str) -> str:
    """``perfgate failed while it judged this: ZeroDivisionError: division by zero (judge.py:30)  [judging-failed]``."""
    return f"{fault_words(fault, doing)}  [{code}]"


def fault_words(fault: Exception, doing: str) -> str:
    """The same without its code."""
    said = fault.what if isinstance(fault, PerfgateError) else f"{type(fault).__name__}: {_said(fault)}{_place(fault)}"
    return f"perfgate failed while it {doing}: {said}"


def fault_error(fault: Exception, doing: str, place: str = "") -> PerfgateError:
    """What could not be shown as an error of ours."""
    return fault if isinstance(fault, PerfgateError) else PerfgateError(SHOWING, fault_words(fault, doing), place=place)


def _said(fault: Exception) -> str:
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
