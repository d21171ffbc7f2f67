"""The result as a page: what was found, part by part, and what kept a part from being run."""

from __future__ import annotations

from typing import Any


def page(result: dict[str, Any]) -> str:
    lines = [f"# GPU check: {result['device'] or 'not run'}", ""]
    lines += [f"- {name}: {text}" for name, text in result["facts"].items()]
    if result["why"]:
        lines += ["", f"Not run: {result['why']}."]
    else:
        lines += ["", summary(result)]
    for title, rows in result["parts"].items():
        lines += ["", f"## {title}", "", "| what | found | held |", "|---|---|---|"]
        for row in rows:
            figures = ((name, figure) for name, figure in row.items() if name not in {"what", "held"})
            found = ", ".join(f"{k} {v:.4g}" if isinstance(v, float) else f"{k} {v}" for k, v in figures if v != "")
            lines.append(f"| {row['what']} | {' '.join(found.replace('|', '/').split())} | {row.get('held', '')} |")
    return "\n".join(lines) + "\n"


def summary(result: dict[str, Any]) -> str:
    """``12 held, 1 did not: Agreement of timers: copy 256 MB``."""
    judged = [(title, row) for title, rows in result["parts"].items() for row in rows if "held" in row]
    lost = [f"{title}: {row['what']}" for title, row in judged if not row["held"]]
    said = f"{len(judged) - len(lost)} held, {len(lost)} did not"
    return f"{said}{': ' if lost else ''}{'; '.join(lost)}."


def failed(result: dict[str, Any]) -> bool:
    return any(row.get("held") is False for rows in result["parts"].values() for row in rows)
