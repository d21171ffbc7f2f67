"""The result as a page: which bars held, what was found part by part, and what kept a part from being run."""

from __future__ import annotations

from typing import Any

BARS = {
    "long": "calls from 20 us on within 1 % of the device's records, or as far off as the timer says or these differ",
    "short": "shorter ones, from 2 us on, within 3 % by a graph or CUPTI",
    "ncu": "within 5 % of ncu's duration",
    "module": "ncu's report read by the Python module that Nsight Compute brings",
    "host": "a pair of events costs the host no more than in do_bench's loop",
    "escape": "work on another stream is caught",
    "quiet": "torch's attention on one stream is never taken for work on another",
    "seen": "+2 % of a 100 us kernel seen in 95 % of trials, +0 % in one at most (medians 1 % apart: a timer rule)",
    "same": "no shift in a suite of 40 against itself (medians of rounds 3 % apart: a timer rule)",
    "gate": "the example's suite measured, accepted, compared with itself: no verdict fails; rows say how many decide",
    "suite": "that suite of five cases in three rounds takes 30 s at most",
    "costs": "a run that an earlier one announces, and what is left from the second round on, come true within 30 %",
    "builds": "two tiny kernels against the commit before, one 10 % slower: both decided in 60 s",
    "power": "a bf16 product at the power limit judged: +5 % seen in every pair, +0 % within 2 % over all pairs",
    "checks": "checking an output of a gigabyte on the device takes 50 ms at most",
    "brought": "and brings 1 MB at most to the host",
    "share": "checking the output of a call takes 5 % of its sampling at most",
    "roof": "no product above the peak",
    "capped": "two builds of a product at the power limit: 5 % more to do is a regression, and no change passes",
    "suites": "the other suites of examples/ measured",
    "forks": "what 15 pairs of fresh processes and 15 of forks scatter by, shown for each case",
    "repeat": "ten runs of ten unchanged kernels: 95 % of the verdicts decide and none is a regression",
}
"""What the run is there to show, by the name that its rows carry."""
PART_OF = {
    "long": "agreement", "short": "agreement", "ncu": "profiler", "module": "profiler", "host": "machine",
    "escape": "overlap", "quiet": "overlap", "seen": "slowdowns", "suite": "gate", "costs": "gate",
    "brought": "checks", "share": "checks", "roof": "ladder",
}  # fmt: skip
"""The part that shows a bar, where it has another name."""
BY_NAME = frozenset({"capped", "suites", "forks", "repeat"})
"""Parts that take more time than a whole run leaves them."""
OPTIONAL = frozenset({"ncu", "module", "roof"}) | BY_NAME
"""Shown where the machine allows: counters need a permission, a roof a clock, some parts more time."""


def page(result: dict[str, Any]) -> str:
    lines = [f"# GPU check: {result['device'] or 'not run'}", ""]
    lines += [f"- {name}: {text}" for name, text in result["facts"].items()]
    if result["why"]:
        lines += ["", f"Not run: {result['why']}."]
    else:
        lines += ["", summary(result), "", "| bar | held |", "|---|---|"]
        lines += [f"| {BARS[name]} | {state.replace('|', '/')} |" for name, state in bars(result).items()]
    for title, rows in result["parts"].items():
        lines += ["", f"## {title}", "", "| what | found | held |", "|---|---|---|"]
        for row in rows:
            figures = ((name, figure) for name, figure in row.items() if name not in {"what", "held", "bar"})
            good = "invalid" if "invalid" in row else row.get("held", "")
            measured = ", ".join(f"{k} {v:.4g}" if isinstance(v, float) else f"{k} {v}" for k, v in figures if v != "")
            lines.append(f"| {row['what']} | {' '.join(measured.replace('|', '/').split())} | {good} |")
    return "\n".join(lines) + "\n"


def bars(result: dict[str, Any]) -> dict[str, str]:
    """Return the state of each bar: held; missed, and by what; invalid; or which part would show it."""
    rows = [row for part in result["parts"].values() for row in part]
    states = {}
    for name in BARS:
        mine = [row for row in rows if row.get("bar") == name]
        results = [bool(row["held"]) for row in mine if "held" in row]
        spoilt = f", {count} invalid" if (count := sum("invalid" in row for row in mine)) else ""
        lost = ", ".join(str(row["what"]) for row in mine if row.get("held") is False)
        states[name] = f"not shown: --only {PART_OF.get(name, name)}"
        if results:
            states[name] = (
                f"{'missed' if lost else 'held'} ({sum(results)} of {len(results)}{spoilt}){': ' if lost else ''}{lost}"
            )
        elif spoilt:
            states[name] = f"invalid ({count})"
    return states


def conclusion(result: dict[str, Any], out: str, *, whole: bool = True) -> str:
    """Return the last lines of a run: what was missed, failed or not shown, and where to read on."""
    states = bars(result)
    missed = [name for name in BARS if states[name].startswith("missed")]
    open_bars = [name for name in unshown(result) if whole or states[name].startswith("invalid")]
    lines = []
    for title, names in (("missed:", missed), ("not shown, or spoilt by the card:", open_bars)):
        lines += [title, *(f"  {BARS[name]}: {states[name]}" for name in names)] if names else []
    faults = [f"  {title}: {fault(row)}" for title, rows in result["parts"].items() for row in rows if fault(row)]
    lines += ["failed without a bar:", *faults] if faults else []
    later = [name for name in sorted(BY_NAME) if states[name].startswith("not shown")]
    lines += [f"not run yet, by --rest or by name: {', '.join(later)}"] if whole and later else []
    count = sum(state.startswith("held") for state in states.values())
    return "\n".join(
        [*lines, f"{count} of {len(states)} bars held; every row: {out}/gpu-check.md; logs: gpu-check.tar.gz"]
    )


def fault(row: dict[str, Any]) -> str:
    """Return what a row without a bar says that failed, such as a part that crashed; "" for any other row."""
    if row.get("held") is not False or "bar" in row:
        return ""
    why = " ".join(str(row.get("why", "")).split())[-160:]
    return ", ".join(filter(None, (str(row["what"]), str(row.get("refused", "")), why)))


def summary(result: dict[str, Any]) -> str:
    """Return ``12 held, 1 did not: Agreement of timers: copy 256 MB``."""
    rows = [(title, row) for title, part in result["parts"].items() for row in part if "held" in row]
    lost = [f"{title}: {row['what']}" for title, row in rows if not row["held"]]
    counts = f"{len(rows) - len(lost)} held, {len(lost)} did not"
    spoilt = [row for part in result["parts"].values() for row in part if "invalid" in row]
    also = f" {len(spoilt)} invalid." if spoilt else ""
    return f"{counts}{': ' if lost else ''}{'; '.join(lost)}.{also}"


def failed(result: dict[str, Any]) -> bool:
    return any(row.get("held") is False for rows in result["parts"].values() for row in rows)


def unshown(result: dict[str, Any]) -> list[str]:
    """Return the bars that the run was to show and did not."""
    return [
        name
        for name, state in bars(result).items()
        if state.startswith(("not shown", "invalid")) and name not in OPTIONAL
    ]
