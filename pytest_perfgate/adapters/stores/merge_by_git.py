"""What git itself does about a merge: markers in the text, and the driver that it is told to call."""

from __future__ import annotations

from pathlib import Path

from pytest_perfgate.adapters.system.git import ask_git
from pytest_perfgate.model.baseline import Merging

_ERROR = 128
"""From here on ``git merge-file`` did not merge; below, it counts conflicts."""
_SIDES = ("-L", "ours", "-L", "base", "-L", "theirs")


def textual_conflict(base: Path, ours: Path, theirs: Path) -> bytes | None:
    """Our file with markers where the sides differ, or with both whole; ``None`` where a side cannot be read."""
    try:
        mine, other = ours.read_bytes(), theirs.read_bytes()
    except OSError:
        return None
    done = ask_git(ours.parent, "merge-file", "-p", *_SIDES, *(str(path.absolute()) for path in (ours, base, theirs)))
    if done is not None and 0 < done.returncode < _ERROR:
        return done.stdout
    return b"".join([b"<<<<<<< ours\n", _ended(mine), b"=======\n", _ended(other), b">>>>>>> theirs\n"])


def _ended(text: bytes) -> bytes:
    return text if not text or text.endswith(b"\n") else text + b"\n"


def probe_merging(root: Path, folder: str) -> Merging | None:
    """Which driver merges baselines here; ``None`` where git does not say."""
    sample = f"{folder}/device/test.py.yaml"
    attribute = ask_git(root, "check-attr", "-z", "merge", "--", sample)
    if attribute is None or attribute.returncode:
        return None
    driver = ask_git(root, "config", "--get", "merge.perfgate.driver")
    named = attribute.stdout.rstrip(b"\0").split(b"\0")[-1]
    command = driver.stdout.decode("utf-8", "replace").strip() if driver is not None else ""
    return Merging(asked=named == b"perfgate", driver=command)
