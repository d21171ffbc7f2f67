"""Hold limits against artifacts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from pytest_perfgate.app.inspect import Peek, choose
from pytest_perfgate.core.gate.artifact import judge_artifact
from pytest_perfgate.core.gate.grammar import Kinds, parse_limit
from pytest_perfgate.core.gate.policy import CI, exit_code, parse_policy
from pytest_perfgate.model.analysis import Analysis
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.limit import Limit
from pytest_perfgate.model.plan import CaseKey
from pytest_perfgate.model.policy import Policy
from pytest_perfgate.model.ports import Inspector
from pytest_perfgate.model.values import value
from pytest_perfgate.model.verdict import CaseReport, Verdict


@value
class Look:
    """What a command needs to look into files."""

    inspectors: tuple[Inspector, ...]
    peek: Peek
    kinds: Kinds
    options: Mapping[str, str]
    policy: Policy = CI


def parse_limits(texts: Sequence[str], kinds: Kinds) -> tuple[Limit, ...]:
    """The limits of a command line; none at all would pass in silence."""
    if not texts:
        raise PerfgateError("limit-missing", "no limit was given")
    return tuple(parse_limit(text, kinds=kinds, source="command line") for text in texts)


def parse_strict_policy(pairs: Sequence[str]) -> Policy:
    """What ``--policy`` says, over the choices of CI: who holds limits against a file asks for an answer."""
    return parse_policy(pairs, ci=True, place="--policy")


def check(paths: Sequence[Path], texts: Sequence[str], look: Look) -> tuple[Analysis, tuple[Verdict, ...]]:
    """The analysis of one job and a verdict for each limit."""
    limits = parse_limits(texts, look.kinds)
    inspector = choose(paths, look.options, inspectors=look.inspectors, peek=look.peek)
    analysis = inspector.inspect(paths, _asked(inspector, look, texts))
    return analysis, judge_artifact(analysis, limits, look.policy)


def compare(
    before: Sequence[Path], after: Sequence[Path], texts: Sequence[str], look: Look
) -> tuple[Analysis, tuple[Verdict, ...]]:
    """Two jobs of one kind, the first being the reference; limits are optional."""
    limits = parse_limits(texts, look.kinds) if texts else ()
    inspector = choose([*before, *after], look.options, inspectors=look.inspectors, peek=look.peek)
    analysis = inspector.compare(before, after, _asked(inspector, look, texts))
    return analysis, judge_artifact(analysis, limits, look.policy)


def _asked(inspector: Inspector, look: Look, texts: Sequence[str]) -> Mapping[str, str]:
    """The options, with the limits' texts for an inspector whose figures depend on what is asked."""
    wants = any(name == "limits" for name, _ in inspector.options)
    return {**look.options, "limits": "\n".join(texts)} if wants else look.options


def exit_of(verdicts: Sequence[Verdict]) -> int:
    """The command line's exit code: a broken limit outweighs one that could not be judged."""
    return exit_code([CaseReport(key=CaseKey(nodeid=""), verdicts=tuple(verdicts))])
