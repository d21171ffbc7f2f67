"""Limits and policies that outweigh those of every test, and who gave them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pytest_perfgate.model.limit import Effect
from pytest_perfgate.model.verdict import SuiteNote

if TYPE_CHECKING:
    import pytest

    from pytest_perfgate.plugin.docket import Docket

_OPTIONS = {"--perfgate-limit": "perfgate_limit", "--perfgate-policy": "perfgate_policy"}


def commanded_notes(session: Docket) -> tuple[SuiteNote, ...]:
    """One note in CI: who reads the log sees by what the tests were judged, wherever it was said."""
    names = tuple(_given(session.settings.pytest)) if session.court.context.policy.ci else ()
    if not names:
        return ()
    text = "limits and policies of options, in place of those of the tests and the project"
    return (SuiteNote(kind="commanded", effect=Effect.WARN, text=text, names=names),)


def _given(config: pytest.Config) -> Iterator[str]:
    for option, field in _OPTIONS.items():
        for text in getattr(config.option, field, None) or ():
            yield f"{option} {text!r}, by {_author(config, text)}"


def _author(config: pytest.Config, text: str) -> str:
    if any(str(word).endswith(text) for word in config.invocation_params.args):
        return "the command"
    return "PYTEST_ADDOPTS" if text in os.environ.get("PYTEST_ADDOPTS", "") else "addopts or a conftest"
