"""Our own errors, on their way out of pytest as a sentence and not as a trace."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

from pytest_perfgate.core.render.letters import writable
from pytest_perfgate.model.errors import PerfgateError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


def here(text: str) -> str:
    """As this terminal can write it; pytest would escape the ends of lines too."""
    return writable(text, getattr(sys.__stdout__, "encoding", None))


@contextmanager
def usage_errors(told: Iterable[str] = ()) -> Iterator[None]:
    """Our own errors leave pytest as usage errors: the sentence, no trace; none that a test was failed with."""
    try:
        yield
    except PerfgateError as fault:
        if fault.text() in told:
            return
        raise pytest.UsageError(fault.text()) from None


@contextmanager
def readable() -> Iterator[None]:
    """Our own errors fail the test with their sentence, without the trace of our code."""
    try:
        yield
    except PerfgateError as fault:
        raise pytest.fail.Exception(here(fault.text()), pytrace=False) from None


def told_once(fault: PerfgateError, nodeid: str, told: dict[str, str]) -> str:
    """A fault whole for the first test that meets it, such as a file of baselines that does not read."""
    text = fault.text()
    first = told.setdefault(text, nodeid)
    return text if first == nodeid else f"{text.partition(chr(10))[0]}\n  why   {first} says it whole"


_TOLD = pytest.StashKey[str]()


def refuse(item: pytest.Item, text: str) -> NoReturn:
    """Fail a test with what we have to say of it, and no trace of our code."""
    item.stash[_TOLD] = text = here(text)
    pytest.fail(text, pytrace=False)


def headed(item: pytest.Item, call: pytest.CallInfo[Any], report: pytest.TestReport) -> None:
    """What failed it stands above in full; pytest's list at the end, whole in CI, needs the first line of it."""
    crash = getattr(report.longrepr, "reprcrash", None)
    told = item.stash.get(_TOLD, None)
    if crash is not None and told is not None and call.excinfo is not None and str(call.excinfo.value) == told:
        crash.message = crash.message.partition("\n")[0]


def complain(config: pytest.Config, fault: PerfgateError) -> None:
    """At the end of a run: it fails with the sentence, and what pytest has to say of its tests is still said."""
    reporter: Any = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None:
        reporter.write_line("")
        reporter.write_line(f"ERROR: {fault.text()}", red=True)
    fail(config)


def fail(config: pytest.Config) -> None:
    """A run of which something was lost has not passed."""
    session: Any = config.pluginmanager.get_plugin("session")
    if session is not None and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.USAGE_ERROR
