"""False alarms over every run whose results were kept in one folder: the bound falls with their number."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ci.rates import upper_bound

COUNTED = ("runs", "cases", "alarms")


def kept(folder: Path, device: str) -> dict[str, int]:
    """What earlier runs on this device counted; nothing where there was none, or none that reads."""
    try:
        found = json.loads((folder / "gpu-check.json").read_text(encoding="utf-8"))
        counts = found["accumulated"] if found["device"] == device else {}
        return {name: int(counts[name]) for name in COUNTED} if counts else dict.fromkeys(COUNTED, 0)
    except (OSError, ValueError, KeyError, TypeError):
        return dict.fromkeys(COUNTED, 0)


def together(before: Mapping[str, int], rows: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """With the suites of this run that were judged."""
    judged = [row for row in rows if row.get("what") == "A/A" and "alarms" in row]
    new = {
        "runs": len(judged),
        "cases": sum(int(row["cases"]) for row in judged),
        "alarms": sum(int(row["alarms"]) for row in judged),
    }
    return {name: before[name] + new[name] for name in COUNTED}


def told(counts: Mapping[str, int]) -> dict[str, Any]:
    """A row of the page: at 95 %, alarms are no more frequent than this."""
    bound = upper_bound(counts["alarms"], counts["cases"])
    return {"what": "A/A in all runs that this folder kept", **counts, "bound_95": round(bound, 4)}
