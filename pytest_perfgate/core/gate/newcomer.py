"""A test that the revision under comparison does not have, or cannot run."""

from __future__ import annotations

from dataclasses import replace

from pytest_perfgate.core.gate.context import JudgeContext
from pytest_perfgate.model.policy import Choice

NEW = "new here: nothing to compare with"


def newcomer(context: JudgeContext, why: str = NEW) -> JudgeContext:
    """Its slowdown has nothing to be held against, and nobody needs to accept it first."""
    policy = replace(context.policy, missing=Choice.WARN)
    return replace(context, policy=policy, unbaselined=why)
