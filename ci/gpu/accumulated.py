"""What a folder keeps from run to run: false alarms over all of them, and parts that a later one does not repeat."""

from __future__ import annotations

import hashlib
import json
import subprocess
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ci.rates import upper_bound

COUNTED = ("runs", "cases", "alarms")


def counts_of_folder(folder: Path, device: str) -> dict[str, int]:
    """Return what earlier runs on this device counted; zeros without a readable one."""
    try:
        result = json.loads((folder / "gpu-check.json").read_text(encoding="utf-8"))
        counts = result["accumulated"] if result["device"] == device else {}
        return {name: int(counts[name]) for name in COUNTED} if counts else dict.fromkeys(COUNTED, 0)
    except (OSError, ValueError, KeyError, TypeError):
        return dict.fromkeys(COUNTED, 0)


def with_suites(before: Mapping[str, int], rows: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Return the counts with the suites of this run that were judged."""
    judged = [row for row in rows if row.get("what") == "A/A" and "alarms" in row]
    new = {
        "runs": len(judged),
        "cases": sum(int(row["cases"]) for row in judged),
        "alarms": sum(int(row["alarms"]) for row in judged),
    }
    return {name: before[name] + new[name] for name in COUNTED}


def bound_row(counts: Mapping[str, int]) -> dict[str, Any]:
    """Return a row of the page with the highest rate of alarms that fits the counts, at 95 %."""
    bound = upper_bound(counts["alarms"], counts["cases"])
    return {"what": "A/A in all runs that this folder kept", **counts, "bound_95": round(bound, 4)}


def code(root: Path) -> str:
    """Return the commit, if git knows it, and a digest of the files that measure: a copied tree has no commit."""
    digest = hashlib.sha256()
    for folder in ("pytest_perfgate", "ci/gpu"):
        for path in sorted((root / folder).rglob("*.py")):
            digest.update(path.relative_to(root).as_posix().encode() + path.read_bytes())
    try:
        words = ["git", "-C", str(root), "rev-parse", "--short=10", "HEAD"]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        commit = done.stdout.strip() if not done.returncode else ""
    except OSError:
        commit = ""
    return f"{commit or 'no commit known'}, files {digest.hexdigest()[:12]}"


def parts_of_folder(folder: Path, device: str, facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parts of an earlier run with the same device, code and clocks; empty without one."""
    try:
        result = json.loads((folder / "gpu-check.json").read_text(encoding="utf-8"))
        alike = result["device"] == device and all(result["facts"].get(n) == facts.get(n) for n in ("code", "clocks"))
        return dict(result["parts"]) if alike and device else {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def unpack(folder: Path, work: Path) -> None:
    """Unpack what the parts of that run wrote, so that it is packed again."""
    packed = folder / "gpu-check.tar.gz"
    if packed.is_file():
        # Early releases of Python 3.10 and 3.11 have no filters.
        safely = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
        with tarfile.open(packed) as file:
            file.extractall(work, **safely)
