"""Lock files, owners, restoring."""

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

from pytest_perfgate.adapters.devices.clock_watch import PERIOD_S, Lock, Watched, left
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
        return not self.by_hand and self._owner_gone

    @property
    def _owner_gone(self) -> bool:
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
    locks = (_read(path) for path in sorted(lock_folder().glob("*.clocks.json")))
    return tuple(lock for lock in locks if lock)


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
    root_of_run = os.environ.get(ROOT_VARIABLE, "")
    return int(root_of_run) if root_of_run.isascii() and root_of_run.isdecimal() else os.getpid()


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
        """Its clock, or why there is none."""


def take_lock(card: Card, sm_hz: float | None) -> OwnLock:
    """Name the owner, lock, read back; whatever fails leaves the card as it was."""
    uuid = card.uuid()
    other = read_lock(uuid)
    if other and other.by_hand:
        return OwnLock(other.sm_hz, Restoration(_nothing))
    if other and not other.stale and not other.mine:
        raise PerfgateError("clocks-held", f"process {other.pid} has locked the clocks of {uuid}")
    restoration = Restoration(lambda: put_back(card))
    restoration.arm()
    with restoration.undisturbed():
        try:
            write_lock(uuid, sm_hz)
            card.lock(sm_hz)
        except BaseException as error:
            restoration.cancel()
            _forget(uuid, error, other)
            raise
        memory = _memory_locked(card, uuid, sm_hz)
    return OwnLock(sm_hz, restoration, memory)


def _forget(uuid: str, error: BaseException, before: ClockLock | None) -> None:
    """Of a lock that was not taken only what was there before stays on file; of one that may be yet, its owner."""
    if _unanswered(error):
        return
    with suppress(PerfgateError):
        keep_lock(before) if before else remove_lock(uuid)


def _unanswered(error: BaseException) -> bool:
    """Whether the driver may do after all what it was asked for: nobody knows."""
    return isinstance(error, PerfgateError) and error.code.name == "driver-silent"


def _memory_locked(card: Card, uuid: str, sm_hz: float | None, *, by_hand: bool = False) -> str | float:
    """The clock at which the memory is held, or why it is not; the lock of the SMs stays either way."""
    try:
        write_lock(uuid, sm_hz, memory=True, by_hand=by_hand)
        return card.lock_memory()
    except PerfgateError as error:
        with suppress(PerfgateError):
            write_lock(uuid, sm_hz, memory=_unanswered(error), by_hand=by_hand)
        return f"not available: {error.what}"


def _nothing() -> None:
    """A lock that a person put on stays."""


def lock_for_good(card: Card, sm_hz: float | None) -> None:
    """Lock until somebody resets: what a person asks for."""
    uuid = card.uuid()
    other = read_lock(uuid)
    if other and not other.stale and not other.by_hand:
        raise PerfgateError("clocks-held", f"process {other.pid} has locked the clocks of {uuid}")
    write_lock(uuid, sm_hz, by_hand=True)
    try:
        card.lock(sm_hz)
    except PerfgateError as error:
        _forget(uuid, error, other)
        raise
    _memory_locked(card, uuid, sm_hz, by_hand=True)


def put_back(card: Card) -> None:
    """Unlock and strike out the owner; a failure is said loudly and stays on file."""
    uuid = card.uuid()
    lock = read_lock(uuid)
    try:
        card.unlock(memory=bool(lock and lock.memory))
    except PerfgateError as error:
        raise PerfgateError("clocks-not-restored", f"{uuid}: {error.what}") from error
    remove_lock(uuid)


SIGNALS = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP", "SIGINT") if hasattr(signal, name))


class Restoration:
    """Runs once, whoever asks first; signals that were there before are put back and served."""

    def __init__(self, restore: Callable[[], None]) -> None:
        self._restore = restore
        self._done = False
        self._owner = os.getpid()
        self._previous: dict[int, Any] = {}
        self._deferring = False
        self._late: list[int] = []
        """Signals that came while a card was being changed: they are heard when it is in order."""

    def arm(self) -> None:
        atexit.register(self.run)
        if threading.current_thread() is threading.main_thread():
            ends = (number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN)
            self._previous = {number: signal.signal(number, self._signalled) for number in ends}

    def run(self) -> None:
        """Restore; a forked child leaves it to its parent."""
        if self._done or os.getpid() != self._owner:
            return
        self._done = True
        with self.undisturbed():
            try:
                self._restore()
            except Exception as error:
                if self._late:  # which end this process before anybody can say it
                    _say(error)
                raise
            finally:
                self._disarm()

    def cancel(self) -> None:
        """There is nothing to put back."""
        self._done = True
        self._disarm()

    @contextmanager
    def undisturbed(self) -> Iterator[None]:
        """An impatient second Ctrl-C, or a signal between a change and its record, waits until this is done."""
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
        except Exception as error:  # noqa: BLE001 - the process is ending: say it and let the signal go on
            _say(error)
        if callable(previous):
            previous(number, frame)
        else:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)


def _say(error: Exception) -> None:
    sys.stderr.write(f"perfgate: {error}\n")


SETTLING = 20
"""Looks at a clock that was just locked."""


def read_back(card: Watched, lock: Lock, sleep: Callable[[float], None]) -> str:
    """Wait for a lock to be seen, for a second at most: an idle card may show an idle clock until it has work."""
    clock = card.sample().sm_hz
    if lock.sm_hz is None:
        return "at an unknown clock"
    for _ in range(SETTLING):
        if not any(left("SM", lock.sm_hz, [clock], cap=lock.cap)):
            return f"read back at {clock / 1e6:.0f} MHz"
        sleep(PERIOD_S)
        clock = card.sample().sm_hz
    return f"set to {lock.sm_hz / 1e6:.0f} MHz, read {clock / 1e6:.0f} MHz without load; what counts is read under load"
