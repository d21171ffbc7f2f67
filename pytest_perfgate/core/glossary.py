"""The words of the field as perfgate uses them, and what to do about each outcome."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_perfgate.model.plan import Outcome
from pytest_perfgate.model.values import value


@value
class Term:
    """A word, its meaning in one line, and the page that says more."""

    name: str
    meaning: str
    page: str
    also: tuple[str, ...] = ()
    """Other words for it, which `perfgate explain` knows too."""
    linked: bool = True
    """Whether a page links its first use; words of everyday English are left alone."""


def _term(name: str, meaning: str, page: str, *also: str, linked: bool = True) -> Term:
    return Term(name=name, meaning=meaning, page=page, also=also, linked=linked)


TERMS: tuple[Term, ...] = (
    _term("accept", "Write a measured time into the baseline, with a reason.", "accepting", linked=False),
    _term(
        "anchor",
        "What small steps are counted from: the oldest accepted time of ninety days, or that of a fixed revision.",
        "verdicts",
        linked=False,
    ),
    _term(
        "base",
        "The revision that a change is compared with; also its build, one of the two arms that run in turns.",
        "against-a-revision",
        "base revision",
        "arm",
        "arms",
        linked=False,
    ),
    _term(
        "baseline",
        "The accepted time of a case on a device: one line in a file under `baselines/` that people review.",
        "accepting",
        "line",
        "baselines",
    ),
    _term(
        "can detect",
        "The smallest slowdown that a measurement would have shown; below it, it says nothing.",
        "accepting",
        "blind",
        "blind below",
        "resolution",
    ),
    _term(
        "capture", "A profile taken beside the timing: torch, nsys, ncu or cubin.", "captures", "profile", linked=False
    ),
    _term(
        "case",
        "One call of one test with its parameters. It has its own limits, verdict and baseline.",
        "fixture",
        linked=False,
    ),
    _term(
        "ceiling",
        "The highest rate that this machine was measured to reach; below the peak of the data sheet.",
        "devices",
    ),
    _term(
        "confirmed regression",
        "A slowdown that fresh rounds of base and head showed again, beyond chance: REGRESSED.",
        "verdicts",
        "regression",
        "confirmed",
    ),
    _term(
        "floor",
        "The smallest difference in time that counts as slower, whatever the limit says.",
        "outcomes",
        linked=False,
    ),
    _term("head", "The change under test; also its build.", "against-a-revision", linked=False),
    _term(
        "history", "The times of earlier full runs on this machine, `.perfgate/history.db`.", "verdicts", linked=False
    ),
    _term(
        "interval", "The range in which a figure lies with 95 % confidence; a limit is judged by all of it.", "outcomes"
    ),
    _term("limit", "What a case must keep: `METRIC OP VALUE`, such as `slowdown <= 3%`.", "limits", linked=False),
    _term(
        "merge base",
        "The newest commit that a change shares with its target branch. Its baselines judge the change.",
        "nothing-passes-vacuously",
    ),
    _term("metric", "A named figure that a limit can hold, such as `time` or `mfu`.", "limits", linked=False),
    _term("MFU", "Model FLOPs utilisation: operations per second over the peak of the device.", "work", linked=False),
    _term(
        "noise",
        "What the time of unchanged code varies by: within a process, between processes, between runs.",
        "verdicts",
        linked=False,
    ),
    _term("outcome", "What a limit came to: PASSED, REGRESSED and eleven more.", "outcomes", "verdict", linked=False),
    _term(
        "peak",
        "The highest rate that the data sheet of the device allows at the clock it ran at.",
        "devices",
        linked=False,
    ),
    _term("policy", "What an outcome does to its test: pass, warn or fail.", "outcomes", linked=False),
    _term(
        "process",
        "One fresh Python process that measures every case; its median is one number.",
        "verdicts",
        linked=False,
    ),
    _term("record", "The file that a run leaves: every sample, verdict and fact of the machine.", "ci", linked=False),
    _term(
        "round",
        "A pair of fresh processes, base and head, that run in turns on one core; it gives one difference.",
        "verdicts",
        "rounds",
    ),
    _term(
        "run",
        "One execution of the tests. What it measured of a case is one number with an interval.",
        "outcomes",
        "sitting",
        linked=False,
    ),
    _term("sample", "One timed call, or the mean of a batch of calls that are too short to time alone.", "timing"),
    _term(
        "SOL",
        "Speed of light: the rate reached over the rate that memory and arithmetic allow this work.",
        "work",
        "speed-of-light",
        "speed of light",
        "roofline",
        linked=False,
    ),
    _term(
        "suspect", "A case that looks slower than its limit allows and is not confirmed yet.", "outcomes", "suspects"
    ),
    _term(
        "timer",
        "The instrument that turns a call into samples: the host's clock, events, graph, CUPTI.",
        "timing",
        linked=False,
    ),
    _term("work", "What one call does, in operations and bytes; `mfu` and `sol` need it.", "work", linked=False),
)

ADVICE: Mapping[Outcome, str] = {
    Outcome.PASSED: "Nothing.",
    Outcome.IMPROVED: "Look whether the work is still done. If it is, accept the faster time: "
    "perfgate accept --improved. Otherwise a later slowdown back to the old time passes.",
    Outcome.ACCEPTED: "Review the line and its reason in the diff.",
    Outcome.NOT_APPLICABLE: "Nothing: the limit names other devices.",
    Outcome.MOVED: "Look at what the block says differs: a package, a driver, clocks, the machine. "
    "Then accept the new time with that as the reason.",
    Outcome.SUSPECT: "Decide it with paired rounds: pytest --perfgate-against REV. "
    "In quick mode: pytest --perfgate=full.",
    Outcome.UNSTABLE: "Look for two states of the kernel or the machine: alignment, clocks, a cache, an autotuner. "
    "More rounds show the groups: --perfgate-rounds=10.",
    Outcome.UNDECIDED: "Measure with paired rounds (--perfgate-against REV), in more processes "
    "(--perfgate-rounds=10), or on a quieter machine.",
    Outcome.UNBASELINED: "Accept a first time: perfgate accept --new --reason TEXT. "
    "Where a baseline exists, the block names what differs from it.",
    Outcome.NOT_MEASURED: "Call perfgate(fn) in the test, run it, and take the capture that the metric comes from.",
    Outcome.INVALID: "Mend what the block names (clocks, a shared device, the work count) and measure again.",
    Outcome.REGRESSED: "Mend the code. If the slowdown is meant, accept it with a reason: "
    "perfgate accept CASE --reason TEXT.",
    Outcome.BROKEN: "Mend the code, or change the limit where people review it.",
}
"""What to do about an outcome."""


def find_term(word: str) -> Term | None:
    """The term of this name or of another word for it."""
    name = word.casefold()
    return next((term for term in TERMS if name in {n.casefold() for n in (term.name, *term.also)}), None)
