"""Locks on clocks: their files, their owners, and resetting the clocks."""

from __future__ import annotations

import atexit
import json
import math
import os
import re
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any, Protocol

from pytest_perfgate.adapters.devices.clock_watch import PERIOD_S, LockedClocks, Watched, lock_faults
from pytest_perfgate.adapters.system.files import replace_content
from pytest_perfgate.adapters.system.processes import alive, started
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.values import value

BY_HAND = 0
"""The owner's process number in a lock that a person set."""

ROOT_VARIABLE = "PERFGATE_ROOT_PID"
"""The variable with the run's leading process: it resets what its children left, and its tree is not foreign."""

NOBODY = -1
"""The owner's process number in an unreadable lock file."""


@value
class ClockLock:
    """A process's lock on a device's clocks."""

    device: str
    pid: int
    started: str
    sm_hz: float | None
    memory: bool = False
    path: str = ""
    run: str = ""
    """The run of the process."""

    @property
    def by_hand(self) -> bool:
        """Return whether a person locked the clocks, for longer than one process."""
        return self.pid == BY_HAND

    @property
    def stale(self) -> bool:
        """Return whether its process is gone and did not reset the clocks."""
        return not self.by_hand and self._owner_exited

    @property
    def _owner_exited(self) -> bool:
        return self.pid < 0 or not alive(self.pid) or started(self.pid) != self.started

    @property
    def is_of_this_process(self) -> bool:
        return self.pid == os.getpid()


def lock_folder() -> Path:
    """Return the folder for all users of the machine, since a card has only one clock."""
    return Path(os.environ.get("PERFGATE_LOCKS") or Path(tempfile.gettempdir()) / "perfgate-locks")


def lock_path(device: str) -> Path:
    return lock_folder() / f"{re.sub(r'[^A-Za-z0-9-]', '_', device)}.clocks.json"


def read_lock(device: str) -> ClockLock | None:
    """Return the lock on a device, whoever owns it."""
    return _read(lock_path(device))


def read_locks() -> tuple[ClockLock, ...]:
    """Return every lock on this machine."""
    locks = (_read(path) for path in sorted(lock_folder().glob("*.clocks.json")))
    return tuple(lock for lock in locks if lock)


def write_lock(device: str, sm_hz: float | None, *, memory: bool = False, by_hand: bool = False) -> ClockLock:
    """Write a lock before the clocks are changed, so that a killed process leaves its name."""
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
    """Return the leading process of this run, with its start, since process numbers are reused."""
    pid = run_head()
    return f"{pid} {started(pid)}"


def run_head() -> int:
    """Return the leading process of this run, which may be this one."""
    root_of_run = os.environ.get(ROOT_VARIABLE, "")
    return int(root_of_run) if root_of_run.isascii() and root_of_run.isdecimal() else os.getpid()


def keep_lock(lock: ClockLock) -> None:
    """Write a lock's file atomically."""
    record = {name: getattr(lock, name) for name in ("device", "pid", "started", "sm_hz", "memory", "run")}
    path = lock_path(lock.device)
    make_folder(path.parent)
    with usable(path):
        replace_content(path, json.dumps(record).encode())


def make_folder(folder: Path) -> Path:
    """Create the folder, open to all users of the machine."""
    with usable(folder):
        folder.mkdir(parents=True, exist_ok=True)
    with suppress(OSError):
        folder.chmod(0o1777)
    return folder


@contextmanager
def usable(place: Path) -> Iterator[None]:
    """Turn the system's error on a full folder, or on another user's file, into one of ours."""
    try:
        yield
    except OSError as error:
        raise PerfgateError("locks-unusable", f"{place}: {error.strerror or error}") from error


def remove_lock(device: str) -> None:
    path = lock_path(device)
    with usable(path):
        path.unlink(missing_ok=True)


def _read(path: Path) -> ClockLock | None:
    """Return a lock; an unreadable file has no owner, so that nobody resets it unasked."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError):
        record = {}
    record = record if isinstance(record, dict) else {}
    pid, sm_hz = record.get("pid"), record.get("sm_hz")
    return ClockLock(
        device=str(record.get("device", path.name.partition(".")[0])),
        pid=pid if type(pid) is int else NOBODY,
        started=str(record.get("started", "?")),
        sm_hz=sm_hz if isinstance(sm_hz, (int, float)) and sm_hz is not True and 0 < sm_hz < math.inf else None,
        memory=bool(record.get("memory", False)),
        path=str(path),
        run=str(record.get("run", "")),
    )


class Card(Watched, Protocol):
    """A device of a management library."""

    def uuid(self) -> str: ...

    def slowdown_temperature(self) -> float | None: ...

    def lock(self, sm_hz: float | None) -> None: ...

    def lock_memory(self) -> float: ...

    def unlock(self, *, memory: bool = False) -> None: ...


class OwnLock:
    """A lock that this process owns."""

    def __init__(self, sm_hz: float | None, restoration: Restoration, memory: str | float = "by hand") -> None:
        self.sm_hz = sm_hz
        self.restoration = restoration
        self.memory_hz = memory if isinstance(memory, float) else None
        self.memory = f"at {memory / 1e6:.0f} MHz" if isinstance(memory, float) else memory
        """The clock of the memory, or why it is not locked."""


def take_lock(card: Card, sm_hz: float | None) -> OwnLock:
    """Write the owner, lock, and read back; after a failure the card is as before."""
    uuid = card.uuid()
    other = read_lock(uuid)
    if other and other.by_hand:
        return OwnLock(other.sm_hz, Restoration(_no_action))
    if other and not other.stale and not other.is_of_this_process:
        raise PerfgateError("clocks-held", f"process {other.pid} has locked the clocks of {uuid}")
    restoration = Restoration(lambda: put_back(card))
    restoration.arm()
    with restoration.undisturbed():
        try:
            write_lock(uuid, sm_hz)
            card.lock(sm_hz)
        except BaseException as error:
            restoration.cancel()
            _restore_file(uuid, error, other)
            raise
        memory = _memory_locked(card, uuid, sm_hz)
    return OwnLock(sm_hz, restoration, memory)


def _restore_file(uuid: str, error: BaseException, before: ClockLock | None) -> None:
    """Restore the earlier lock file after a failed lock; if the driver may still lock, the owner stays on file."""
    if _may_still_lock(error):
        return
    with suppress(PerfgateError):
        keep_lock(before) if before else remove_lock(uuid)


def _may_still_lock(error: BaseException) -> bool:
    """Return whether the driver may still carry out a request that it did not answer."""
    return isinstance(error, PerfgateError) and error.code.name == "driver-silent"


def _memory_locked(card: Card, uuid: str, sm_hz: float | None, *, by_hand: bool = False) -> str | float:
    """Return the clock at which the memory is locked, or why it is not; the lock of the SMs stays in either case."""
    try:
        write_lock(uuid, sm_hz, memory=True, by_hand=by_hand)
        return card.lock_memory()
    except PerfgateError as error:
        with suppress(PerfgateError):
            write_lock(uuid, sm_hz, memory=_may_still_lock(error), by_hand=by_hand)
        return f"not available: {error.what}"


def _no_action() -> None:
    """Do nothing, since a lock that a person set stays."""


def lock_until_reset(card: Card, sm_hz: float | None) -> None:
    """Lock at a person's request, until a reset."""
    uuid = card.uuid()
    other = read_lock(uuid)
    if other and not other.stale and not other.by_hand:
        raise PerfgateError("clocks-held", f"process {other.pid} has locked the clocks of {uuid}")
    write_lock(uuid, sm_hz, by_hand=True)
    try:
        card.lock(sm_hz)
    except PerfgateError as error:
        _restore_file(uuid, error, other)
        raise
    _memory_locked(card, uuid, sm_hz, by_hand=True)


def put_back(card: Card) -> None:
    """Unlock and remove the owner; a failure is printed and stays on file."""
    uuid = card.uuid()
    lock = read_lock(uuid)
    try:
        card.unlock(memory=bool(lock and lock.memory))
    except PerfgateError as error:
        raise PerfgateError("clocks-not-restored", f"{uuid}: {error.what}") from error
    remove_lock(uuid)


SIGNALS = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP", "SIGINT") if hasattr(signal, name))


class Restoration:
    """Resets the clocks once; earlier signal handlers are restored and called."""

    def __init__(self, restore: Callable[[], None]) -> None:
        self._restore = restore
        self._done = False
        self._owner = os.getpid()
        self._previous: dict[int, Any] = {}
        self._deferring = False
        self._late: list[int] = []
        """Signals that arrived while a card was changed, which are handled afterwards."""

    def arm(self) -> None:
        atexit.register(self.run)
        if threading.current_thread() is threading.main_thread():
            ends = (number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN)
            self._previous = {number: signal.signal(number, self._signalled) for number in ends}

    def run(self) -> None:
        """Reset the clocks; a forked child leaves that to its parent."""
        if self._done or os.getpid() != self._owner:
            return
        self._done = True
        with self.undisturbed():
            try:
                self._restore()
            except Exception as error:
                if self._late:  # signals that would end this process without a message
                    _print_error(error)
                raise
            finally:
                self._disarm()

    def cancel(self) -> None:
        """Forget what would be reset."""
        self._done = True
        self._disarm()

    @contextmanager
    def undisturbed(self) -> Iterator[None]:
        """Delay signals, such as a second Ctrl-C, until a change and its record are complete."""
        before, self._deferring = self._deferring, True
        try:
            yield
        finally:
            self._deferring = before
            late, self._late = self._late, []
            for number in late:
                os.kill(os.getpid(), number)

    def _disarm(self) -> None:
        atexit.unregister(self.run)
        if threading.current_thread() is threading.main_thread():
            for number, handler in self._previous.items():
                signal.signal(number, handler if handler is not None else signal.SIG_DFL)

    def _signalled(self, number: int, frame: FrameType | None) -> None:
        if self._deferring and os.getpid() == self._owner:
            self._late.append(number)
            return
        previous = self._previous.get(number)
        try:
            self.run()
        except Exception as error:  # noqa: BLE001 - the process is ending: print the error and let the signal continue
            _print_error(error)
        if callable(previous):
            previous(number, frame)
        else:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)


def _print_error(error: Exception) -> None:
    sys.stderr.write(f"perfgate: {error}\n")


SETTLING = 20
"""How often a newly locked clock is read."""


def read_back(card: Watched, lock: LockedClocks, sleep: Callable[[float], None]) -> str:
    """Wait at most a second until a lock takes effect: an idle card may show an idle clock until it has work."""
    clock = card.sample().sm_hz
    if lock.sm_hz is None:
        return "at an unknown clock"
    for _ in range(SETTLING):
        if not any(lock_faults("SM", lock.sm_hz, [clock], cap=lock.cap)):
            return f"read back at {clock / 1e6:.0f} MHz"
        sleep(PERIOD_S)
        clock = card.sample().sm_hz
    return f"set to {lock.sm_hz / 1e6:.0f} MHz, read {clock / 1e6:.0f} MHz without load; what counts is read under load"
