"""Who locked a device's clocks: one small file a device, so that a lock left behind is found and named."""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pytest_perfgate.adapters.system.files import replace_content
from pytest_perfgate.adapters.system.processes import alive, started
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.values import value

BY_HAND = 0
"""The number of no process: a lock that a person put on."""
ROOT_VARIABLE = "PERFGATE_ROOT_PID"
"""The process that leads the run: its tree is not foreign, and it puts back what its children left."""
NOBODY = -1
"""The number of no process either: of a file that does not read."""


@value
class ClockLock:
    """A lock that a process put on a device's clocks."""

    device: str
    pid: int
    started: str
    sm_hz: float | None
    memory: bool = False
    path: str = ""
    run: str = ""
    """The run that the process was of."""

    @property
    def by_hand(self) -> bool:
        """A person locked them, for longer than one process."""
        return self.pid == BY_HAND

    @property
    def stale(self) -> bool:
        """Its process is gone and did not put the clocks back."""
        return not self.by_hand and self._orphan

    @property
    def _orphan(self) -> bool:
        return self.pid < 0 or not alive(self.pid) or started(self.pid) != self.started

    @property
    def mine(self) -> bool:
        return self.pid == os.getpid()


def lock_folder() -> Path:
    """One folder for all users of the machine: a card has one clock."""
    return Path(os.environ.get("PERFGATE_LOCKS") or Path(tempfile.gettempdir()) / "perfgate-locks")


def lock_path(device: str) -> Path:
    return lock_folder() / f"{re.sub(r'[^A-Za-z0-9-]', '_', device)}.clocks.json"


def read_lock(device: str) -> ClockLock | None:
    """The lock on a device, whoever owns it."""
    return _read(lock_path(device))


def read_locks() -> tuple[ClockLock, ...]:
    """Every lock on this machine."""
    found = (_read(path) for path in sorted(lock_folder().glob("*.clocks.json")))
    return tuple(lock for lock in found if lock)


def write_lock(device: str, sm_hz: float | None, *, memory: bool = False, by_hand: bool = False) -> ClockLock:
    """Written before the clocks are touched: a process killed in between leaves its name."""
    pid = BY_HAND if by_hand else os.getpid()
    lock = ClockLock(
        device=device,
        pid=pid,
        started=started(pid),
        sm_hz=sm_hz,
        memory=memory,
        path=str(lock_path(device)),
        run="" if by_hand else this_run(),
    )
    keep_lock(lock)
    return lock


def this_run() -> str:
    """The process that leads this run, and when it started: its number may be given out again."""
    pid = run_head()
    return f"{pid} {started(pid)}"


def run_head() -> int:
    """The process that leads this run, or this one."""
    said = os.environ.get(ROOT_VARIABLE, "")
    return int(said) if said.isascii() and said.isdecimal() else os.getpid()


def keep_lock(lock: ClockLock) -> None:
    """A lock on file, its file replaced whole."""
    record = {name: getattr(lock, name) for name in ("device", "pid", "started", "sm_hz", "memory", "run")}
    path = lock_path(lock.device)
    make_folder(path.parent)
    with usable(path):
        replace_content(path, json.dumps(record).encode())


def make_folder(folder: Path) -> Path:
    """The folder, there and open to all users of the machine."""
    with usable(folder):
        folder.mkdir(parents=True, exist_ok=True)
    with suppress(OSError):
        folder.chmod(0o1777)
    return folder


@contextmanager
def usable(place: Path) -> Iterator[None]:
    """What the system says of a folder that is full, or a file that is another user's, as an error of ours."""
    try:
        yield
    except OSError as error:
        raise PerfgateError("locks-unusable", f"{place}: {error.strerror or error}") from error


def remove_lock(device: str) -> None:
    path = lock_path(device)
    with usable(path):
        path.unlink(missing_ok=True)


def _read(path: Path) -> ClockLock | None:
    """A file that does not read names nobody, and so a lock that nobody will lift."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError):
        record = {}
    record = record if isinstance(record, dict) else {}
    pid, sm_hz = record.get("pid"), record.get("sm_hz")
    return ClockLock(
        device=str(record.get("device", path.name.partition(".")[0])),
        pid=pid if isinstance(pid, int) else NOBODY,
        started=str(record.get("started", "?")),
        sm_hz=sm_hz if isinstance(sm_hz, (int, float)) else None,
        memory=bool(record.get("memory", False)),
        path=str(path),
        run=str(record.get("run", "")),
    )
