"""Effects and exit codes by outcome and policy, as one table; which cases two builds decide, and which builds."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_perfgate.model.errors import PerfgateError, proposal
from pytest_perfgate.model.plan import Choice, Compare, Effect, Mode, Outcome, Policy, Rule
from pytest_perfgate.model.project import POLICIES

if TYPE_CHECKING:
    from pytest_perfgate.model.plan import CaseKey
    from pytest_perfgate.model.verdict import CaseReport, RunReport, SuiteNote, Verdict

KEPT, REGRESSED, UNDECIDED, UNMEASURED = 0, 1, 3, 4
"""Exit codes of the command line; 2 is usage, 10 and up are our own errors."""

RULES: tuple[Rule, ...] = (
    Rule(
        outcome=Outcome.PASSED,
        meaning="the whole interval keeps the limit. For a slowdown: its upper bound is below the limit, or below a "
        "floor that the project set, which the output says. Or nothing was compared, because the base has the same "
        "code; the output says this too",
    ),
    Rule(
        outcome=Outcome.IMPROVED,
        meaning="faster: the lower bound of the speed-up is above the smallest change that counts",
        key="improved",
        exit=REGRESSED,
    ),
    Rule(
        outcome=Outcome.ACCEPTED,
        meaning="slower, or measured differently. This change edits or adds the baseline's line with a reason, and the "
        "measurement agrees with the new value",
    ),
    Rule(outcome=Outcome.NOT_APPLICABLE, meaning="its `on=` names other devices"),
    Rule(
        outcome=Outcome.MOVED,
        meaning="slower or worse than accepted, but not slower or worse than the base, which ran here in turns with "
        "the head. Or a speed-up that is better because its reference got slower",
        key="moved",
        exit=REGRESSED,
    ),
    Rule(
        outcome=Outcome.SUSPECT,
        meaning="slower, and not confirmed: the run was in quick mode, or had no second build to compare with",
        key="suspect",
        exit=UNDECIDED,
    ),
    Rule(
        outcome=Outcome.UNSTABLE,
        meaning="the processes fall into groups that are far apart, so one number cannot stand for them",
        key="undecided",
        exit=UNDECIDED,
    ),
    Rule(
        outcome=Outcome.UNDECIDED,
        meaning="the limit lies inside the interval, so the measurement cannot tell",
        key="undecided",
        exit=UNDECIDED,
    ),
    Rule(
        outcome=Outcome.UNBASELINED,
        meaning="a slowdown limit has no baseline on this device, and base and head cannot decide instead",
        key="missing",
        exit=UNMEASURED,
    ),
    Rule(
        outcome=Outcome.NOT_MEASURED,
        meaning="the test was not measured, or the metric never appeared",
        key="unmeasured",
        exit=UNMEASURED,
    ),
    Rule(outcome=Outcome.INVALID, meaning="the measurement cannot be trusted", effect=Effect.FAIL, exit=UNMEASURED),
    Rule(outcome=Outcome.REGRESSED, meaning="slower, and confirmed", effect=Effect.FAIL, exit=REGRESSED),
    Rule(outcome=Outcome.BROKEN, meaning="a limit is missed by the whole interval", effect=Effect.FAIL, exit=REGRESSED),
)

RULE: Mapping[Outcome, Rule] = {rule.outcome: rule for rule in RULES}

UNJUDGED: Mapping[str, str] = {
    "reference": "a limit such as `speedup(over=NAME)` compares other calls of the test with this one. A limit of its "
    "own would show an outcome here",
    "no limit": "no limit names the call, or only one on a mean of its test does",
}
"""The words that stand in place of an outcome where nothing judged a call."""

LABELS: Mapping[str, str] = {
    "now": "the time of this run, with its processes, the samples of each, the device and its clock",
    "then": "the accepted time, with its commit, day and reason; without a stored baseline the time of the base",
    "why": "a reason for the outcome",
    "also": "other cases with the same outcome for the same reason, or undecided too",
    "seen": "a fact about the kernel, from a capture or from machine code",
    "try": "advice that may make the kernel faster, with the figure that it rests on",
    "next": "a command that helps; the first is the most useful",
    "since accepted": "versions of driver, toolkit, framework and ptxas that changed since the time was accepted",
    "constant inputs": "arrays of the call with one value throughout; a GPU may run faster on them than on real data",
    "not compared": "the base has the same code, so no slowdown was computed",
    "two builds": "base and head, which ran in turns; the figure before these words is their difference",
    "a first guess": "an estimate of the time left that rests on no earlier run of these tests",
}
"""Words at the start of a line of a block, and in the lines and table around it, with what they mean."""

FIELDS: Mapping[str, str] = {
    "scatter": "the relative standard deviation of a time between as many `runs`, or `sittings` in old lines",
    "identity": "how a time was measured: timer, clocks, cache, threads, cores, notes of the test. Times of another "
    "identity are not compared",
    "affinity": "the cores that the measured process may use; part of the identity",
    "environment": "versions and settings of the machine that measured: a file beside the baselines",
    "power": "whether the device ran at its power limit when the time was accepted",
}
"""Fields of a line in a baseline file that no term explains."""

ADVICE: Mapping[Outcome, str] = {
    Outcome.PASSED: "Nothing to do.",
    Outcome.IMPROVED: "Check that the work is still done. If it is, accept the faster time: "
    "perfgate accept --improved. Otherwise a later slowdown back to the old time passes.",
    Outcome.ACCEPTED: "Review the line and its reason in the diff.",
    Outcome.NOT_APPLICABLE: "Nothing to do: the limit names other devices.",
    Outcome.MOVED: "The block names what differs: a package, a driver, clocks, the machine. "
    "Fix it, or accept the new time and name it in the reason.",
    Outcome.SUSPECT: "After a quick run: pytest --perfgate=full. "
    "After a full run, let base and head decide: pytest --perfgate-against REV.",
    Outcome.UNSTABLE: "Look for two states of the kernel or the machine: alignment, clocks, a cache, an autotuner. "
    "More rounds show the groups: --perfgate-rounds=10.",
    Outcome.UNDECIDED: "Compare base and head (--perfgate-against REV), measure in more processes "
    "(--perfgate-rounds=10), or use a quieter machine.",
    Outcome.UNBASELINED: "Accept a first time: perfgate accept --new --reason TEXT. "
    "Where a baseline exists, the block names what differs from it.",
    Outcome.NOT_MEASURED: "Call perfgate(fn) in the test and run the test. A metric of a profile also needs its "
    "capture; the block names it.",
    Outcome.INVALID: "Fix the cause that the block names (clocks, a shared device, the work count), then measure "
    "again.",
    Outcome.REGRESSED: "Fix the code. If the slowdown is intended, accept it with a reason: "
    "perfgate accept CASE --reason TEXT.",
    Outcome.BROKEN: "Fix the code, or change the limit where people review it.",
}
"""The next steps for each outcome."""

CHOICES: Mapping[str, tuple[Choice, ...]] = {key: tuple(map(Choice, values)) for key, values, _ in POLICIES}

LOCAL = Policy()

CI = Policy(ci=True, missing=Choice.FAIL, unused=Choice.FAIL, unmeasured=Choice.FAIL, moved_by_change=Choice.FAIL)

REQUEST = replace(CI, no_base=Choice.FAIL)
"""Defaults in CI for a change that is about to be merged."""

OWN_GATE = "own gate"
"""The kind of the note on a change that edits its own gate."""

_NOTES = {"geomean": REGRESSED, "creep": REGRESSED, OWN_GATE: REGRESSED}
"""Exit codes of suite notes that fail; other notes count as not measured."""


def effect(outcome: Outcome, policy: Policy, mode: Mode = Mode.FULL) -> Effect:
    """Return what an outcome does to the test; a gate that is off locally is only counted."""
    rule = RULE[outcome]
    if mode is Mode.OFF and not policy.ci and outcome is Outcome.NOT_MEASURED:
        return Effect.PASS
    return policy.effect(rule.key) if rule.key else rule.effect


def exit_code(reports: Iterable[CaseReport], notes: Iterable[SuiteNote] = ()) -> int:
    """Return the command's exit code: a regression outranks what was not measured, and that outranks undecided."""
    failing = [v.outcome for report in reports for v in report.verdicts if report.effect_of(v) is Effect.FAIL]
    codes = {RULE[outcome].exit or REGRESSED for outcome in failing}
    codes |= {_NOTES.get(note.kind, UNMEASURED) for note in notes if note.effect is Effect.FAIL}
    return next((code for code in (REGRESSED, UNMEASURED, UNDECIDED) if code in codes), KEPT)


def suspects(verdicts: Iterable[Verdict]) -> tuple[Verdict, ...]:
    """Return verdicts that found the case slower than accepted."""
    return _of(verdicts, {Outcome.SUSPECT, Outcome.REGRESSED})


def suspect_figures(verdicts: Iterable[Verdict]) -> tuple[Verdict, ...]:
    """Return verdicts that found a figure worse than accepted, to be confirmed by two builds."""
    return tuple(v for v in verdicts if v.outcome is Outcome.SUSPECT and _open_figure(v))


def verdicts_to_decide(report: CaseReport, *, ci: bool) -> tuple[Verdict, ...]:
    """Return verdicts that two builds decide: all but those that the accepted time cleared by itself."""
    # Outside of CI, a case without a line is left to be accepted by hand.
    open_ = {Outcome.SUSPECT, Outcome.REGRESSED, Outcome.UNDECIDED, Outcome.UNSTABLE, Outcome.IMPROVED}
    lineless = {Outcome.UNBASELINED} if ci and report.baseline is None else set()
    return (*_of(report.verdicts, open_ | lineless), *filter(_open_figure, report.verdicts))


def _open_figure(verdict: Verdict) -> bool:
    """Return whether two builds can decide the change of a figure."""
    changes = verdict.limit.compare is not Compare.FIGURE and verdict.figure is not None
    return changes and verdict.outcome in {Outcome.SUSPECT, Outcome.UNDECIDED}


def _of(verdicts: Iterable[Verdict], outcomes: set[Outcome]) -> tuple[Verdict, ...]:
    """Return verdicts on a slowdown; a limit that demands an improvement is judged by the accepted time only."""
    return tuple(v for v in verdicts if v.outcome in outcomes and v.limit.metric == "slowdown" and v.limit.bound >= 0)


def by_commit(
    reports: Mapping[CaseKey, CaseReport], means: Collection[CaseKey] = (), *, ci: bool, base: str
) -> Mapping[str, list[CaseKey]]:
    """Group undecided cases, and those of undecided means, by the commit to compare with; the largest excess first."""
    # The base of the change serves all by default. A case that is slower than its line's accepted time, or has a figure
    # worse than accepted, is compared with the commit of that line: the changes since then are what it has to answer
    # for. A line without a run came with the change, and so did its commit.
    from pytest_perfgate.model.measurement import DIRTY

    open_: dict[str, list[CaseKey]] = {}
    for key, report in sorted(reports.items(), key=lambda pair: -_excess(pair[1])):
        line = report.baseline
        if not (verdicts_to_decide(report, ci=ci) or key in means) or not (base or line):
            continue
        named = line.commit if line is not None and not line.commit.endswith(DIRTY) else ""
        slower = line is not None and line.runs > 1 and suspects(report.verdicts)
        since_accepted = slower or (line is not None and line.runs and suspect_figures(report.verdicts))
        commit = (named or base) if since_accepted else (base or named)
        open_.setdefault(commit, []).append(key)
    return open_


def with_base(
    open_: Mapping[str, list[CaseKey]], base: str, alike: Callable[[str, str], bool]
) -> Mapping[str, list[CaseKey]]:
    """Merge the cases of commits whose code equals the base's into those of the base: one build, one set of rounds."""
    groups: dict[str, list[CaseKey]] = {}
    for commit, keys in open_.items():
        equal = base in open_ and commit != base and alike(commit, base)
        groups.setdefault(base if equal else commit, []).extend(keys)
    return groups


def _excess(report: CaseReport) -> float:
    """Return how far the slowest verdict of a suspect exceeds its limit."""
    return max((v.metric.value - v.limit.bound for v in suspects(report.verdicts) if v.metric is not None), default=0.0)


FROM_PYTEST: Mapping[int, int] = {0: KEPT, 1: REGRESSED, 2: 130, 3: 14, 4: 2, 5: UNMEASURED}
"""Exit codes by pytest's status: failed tests, Ctrl-C, an internal error, usage, nothing collected."""


def run_code(report: RunReport, status: int) -> int:
    """Return the exit code of a run by its verdicts; a test that failed for another reason fails it too."""
    code, of_pytest = exit_code(report.cases, report.notes), FROM_PYTEST.get(status, REGRESSED)
    if of_pytest == UNMEASURED:  # another shard may have measured
        return REGRESSED if code == REGRESSED else UNMEASURED
    return code or of_pytest if status in {0, 1} else of_pytest


Pairs = Iterable[str] | Mapping[str, str]


def parse_policy(pairs: Pairs, ci: bool, place: str = "", *, request: bool = False) -> Policy:
    """Return the defaults of CI or of a laptop, overridden by ``KEY=VALUE``; the last value of a key wins."""
    # In a merge request the base's lines are needed, so a run without any fails there by default.
    items = pairs.items() if isinstance(pairs, Mapping) else (_pair(text, place) for text in pairs)
    chosen = {key: _choice(key, choice, place) for key, choice in items}
    base = LOCAL
    if ci:
        base = REQUEST if request else CI
    choices = {key: chosen.get(key, getattr(base, key)) for key in CHOICES}
    return Policy(ci=ci, **choices)


def _pair(text: str, place: str) -> tuple[str, str]:
    key, sign, choice = (part.strip() for part in text.partition("="))
    if not sign:
        raise PerfgateError(
            "policy-unknown", f"'{text}' is not of the form KEY=VALUE", fix="such as missing=warn", place=place
        )
    return key, choice


_RENAMED = {"baseless": "no_base"}
"""Former names of policies, with the present ones."""


def _choice(key: str, choice: str, place: str) -> Choice:
    if key in _RENAMED:
        what = f"the policy '{key}' is now '{_RENAMED[key]}'"
        raise PerfgateError("policy-unknown", what, fix=f"{_RENAMED[key]}={choice}", place=place)
    if key not in CHOICES:
        fix = proposal(key, CHOICES, all_of="the keys")
        raise PerfgateError("policy-unknown", f"there is no policy '{key}'", fix=fix, place=place)
    allowed = {c.value: c for c in CHOICES[key]}
    if choice not in allowed:
        fix = f"choose {', '.join(allowed)}"
        raise PerfgateError("policy-unknown", f"'{key}' cannot be '{choice}'", fix=fix, place=place)
    return allowed[choice]
