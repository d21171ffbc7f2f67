"""Locks, room on the disk, and arms that nobody asks for any more."""

from __future__ import annotations

import errno
import os
import subprocess
from pathlib import Path

import pytest

from pytest_perfgate.adapters.arms.keeping import READY, forget_unused
from pytest_perfgate.adapters.arms.room import explained
from pytest_perfgate.adapters.system.git import Git
from pytest_perfgate.adapters.system.locks import exclusive
from pytest_perfgate.model.errors import PerfgateError


def dead() -> str:
    process = subprocess.Popen(["true"])
    process.wait()
    return str(process.pid)


def test_arms_that_nobody_used_for_a_day_are_removed_beyond_ten(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    home = tmp_path / ".perfgate" / "arms"
    for number in range(14):
        (home / f"arm{number:02}").mkdir(parents=True)
        (home / f"arm{number:02}" / READY).write_text("{}")
        os.utime(home / f"arm{number:02}" / READY, (1e9 + number, 1e9 + number))
    os.utime(home / "arm01" / READY)
    for name, used in (("killed", 1e9), ("failed", None)):
        (home / name).mkdir()
        os.utime(home / name, None if used is None else (used, used))
    (home / "killed.lock").write_text(dead())
    with exclusive(home / "arm02.lock"):
        forget_unused(home, Git(tmp_path))
    left = {path.name for path in home.iterdir()}
    assert {f"arm{number:02}" for number in range(14)} - left == {"arm00", "arm03", "arm04"}
    assert left - {f"arm{number:02}" for number in range(14)} == {"failed"}


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        (OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), "arm-no-room"),
        (
            PerfgateError("arm-build-failed", "pip: exit 1\n    OSError: [Errno 28] No space left on device"),
            "arm-no-room",
        ),
        (PerfgateError("arm-build-failed", "pip: exit 1"), "arm-build-failed"),
        (PermissionError(errno.EACCES, "no"), "arm-not-made"),
    ],
)
def test_a_full_disk_is_said_to_be_one(tmp_path: Path, fault: Exception, code: str) -> None:
    with pytest.raises(PerfgateError) as caught, explained("the base arm", tmp_path / "not yet" / "made"):
        raise fault
    assert caught.value.code.name == code
    assert caught.value.what.startswith("the base arm: ")
    assert ("left free" in caught.value.what) == (code == "arm-no-room")
