"""The result as a page: which bars held, what was found part by part, and what kept a part from being run."""

from __future__ import annotations

from typing import Any

BARS = {
    "long": "calls of 20 us and more within 1 % of the device's own records",
    "short": "shorter ones within 3 % by a graph or CUPTI",
    "ncu": "within 5 % of ncu's duration",
    "host": "a pair of events costs the host no more than in do_bench's loop",
    "escape": "work on another stream is caught",
    "seen": "+2 % of a 100 us kernel seen in 95 % of trials, +0 % in one at most (medians 1 % apart: a timer rule)",
    "same": "no shift in a suite of 40 against itself (medians of rounds 3 % apart: a timer rule)",
    "gate": "the example's suite measured, accepted, held against itself (by perfgate's own verdicts)",
    "suite": "that suite of five cases in three rounds takes 30 s at most",
    "builds": "two tiny kernels against the commit before, one 10 % slower: both decided in 60 s",
    "repeat": "ten runs of ten unchanged kernels: 95 % of the verdicts decide and none is a regression",
    "power": "a bf16 product at the power limit judged: +5 % seen in every pair, +0 % within 2 %",
    "checks": "checking an output of a gigabyte on the device takes 50 ms at most",
    "roof": "no product above the peak",
}
"""What the run is there to show, by the name that its rows carry."""
OPTIONAL = frozenset({"ncu", "roof", "repeat"})
"""Shown where the machine allows: counters need a permission, a roof a clock, ten runs more time than one call has."""


def page(result: dict[str, Any]) -> str:
    lines = [f"# GPU check: {result['device'] or 'not run'}", ""]
    lines += [f"- {name}: {text}" for name, text in result["facts"].items()]
    if result["why"]:
        lines += ["", f"Not run: {result['why']}."]
    else:
        lines += ["", summary(result), "", "| bar | held |", "|---|---|"]
        lines += [f"| {BARS[name]} | {said} |" for name, said in bars(result).items()]
    for title, rows in result["parts"].items():
        lines += ["", f"## {title}", "", "| what | found | held |", "|---|---|---|"]
        for row in rows:
            figures = ((name, figure) for name, figure in row.items() if name not in {"what", "held", "bar"})
            good = "invalid" if "invalid" in row else row.get("held", "")
            found = ", ".join(f"{k} {v:.4g}" if isinstance(v, float) else f"{k} {v}" for k, v in figures if v != "")
            lines.append(f"| {row['what']} | {' '.join(found.replace('|', '/').split())} | {good} |")
    return "\n".join(lines) + "\n"


def bars(result: dict[str, Any]) -> dict[str, str]:
    """Each bar: held, missed, invalid where the card spoiled every row of it, or not shown."""
    rows = [row for part in result["parts"].values() for row in part]
    told = {}
    for name in BARS:
        mine = [row for row in rows if row.get("bar") == name]
        held = [bool(row["held"]) for row in mine if "held" in row]
        spoilt = f", {count} invalid" if (count := sum("invalid" in row for row in mine)) else ""
        told[name] = (
            f"{'held' if all(held) else 'missed'} ({sum(held)} of {len(held)}{spoilt})" if held else "not shown"
        )
        if spoilt and not held:
            told[name] = f"invalid ({count})"
    return told


def summary(result: dict[str, Any]) -> str:
    """``12 held, 1 did not: Agreement of timers: copy 256 MB``."""
    rows = [(title, row) for title, part in result["parts"].items() for row in part if "held" in row]
    lost = [f"{title}: {row['what']}" for title, row in rows if not row["held"]]
    said = f"{len(rows) - len(lost)} held, {len(lost)} did not"
    spoilt = [row for part in result["parts"].values() for row in part if "invalid" in row]
    also = f" {len(spoilt)} invalid." if spoilt else ""
    return f"{said}{': ' if lost else ''}{'; '.join(lost)}.{also}"


def failed(result: dict[str, Any]) -> bool:
    return any(row.get("held") is False for rows in result["parts"].values() for row in rows)


def unshown(result: dict[str, Any]) -> list[str]:
    """Bars that the run was to show and did not."""
    return [
        name
        for name, said in bars(result).items()
        if said.startswith(("not shown", "invalid")) and name not in OPTIONAL
    ]
