"""Leases: one measurement at a time on a device, across processes; children inherit them by token."""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from pytest_perfgate.adapters.devices.clock_locks import lock_folder, make_folder, usable
from pytest_perfgate.adapters.system.files import json_table, try_lock, unlock
from pytest_perfgate.adapters.system.processes import alive, started
from pytest_perfgate.model.errors import PerfgateError

VARIABLE = "PERFGATE_LEASES"
"""``device=token`` pairs that a child inherits."""

PATIENCE_S = 3600.0
"""The longest wait: another run keeps its leases until its last case, which may take most of an hour."""

POLL_S = 0.1

FIRST_POLLS, TELL_S = 10, 60.0
"""A wait is reported after a second, and then every minute."""


class DeviceLeases:
    """One locked file for each device; the kernel releases the lock when its owner dies, so none is left behind."""

    def __init__(
        self,
        folder: Path | None = None,
        patience_s: float = PATIENCE_S,
        sleep: Callable[[float], None] = time.sleep,
        tell: Callable[[str], None] | None = None,
    ) -> None:
        self._folder = folder or lock_folder()
        self._patience = patience_s
        self._sleep = sleep
        self.tell = tell
        """Called with the owner when this process waits."""
        self._in_vain: set[str] = set()
        """Devices whose wait ran out; another request takes the lease or fails at once."""

    @contextmanager
    def hold(self, device: str) -> Iterator[str]:
        """Hold the lease and yield its token; a process that inherited a token has the lease already."""
        inherited = self._parent_token(device)
        if inherited:
            yield inherited
            return
        with self._locked(device) as file:
            token, owner = secrets.token_hex(8), os.getpid()
            self._write_owner(file, device, token)
            before = os.environ.get(VARIABLE, "")
            os.environ[VARIABLE] = f"{before};{device}={token}" if before else f"{device}={token}"
            try:
                yield token
            finally:
                if before:
                    os.environ[VARIABLE] = before
                else:
                    os.environ.pop(VARIABLE, None)
                if os.getpid() == owner:
                    _unlock(file)

    @contextmanager
    def hold_all(self, devices: Sequence[str]) -> Iterator[tuple[str, ...]]:
        """Hold several leases, always in the same order, so that two runs cannot block each other."""
        with ExitStack() as stack:
            tokens = {device: stack.enter_context(self.hold(device)) for device in sorted(set(devices))}
            yield tuple(tokens[device] for device in devices)

    def owner(self, device: str) -> int | None:
        """Return the process that measures on the device now."""
        record = json_table(self._path(device))
        pid: Any = record.get("pid")
        valid = isinstance(pid, int) and pid > 0
        return pid if valid and alive(pid) and started(pid) == record.get("started") else None

    def _parent_token(self, device: str) -> str:
        """Return the inherited token; it counts only while its lease is on file."""
        pairs = dict(pair.partition("=")[::2] for pair in os.environ.get(VARIABLE, "").split(";") if pair)
        token = pairs.get(device, "")
        return token if token and json_table(self._path(device)).get("token") == token else ""

    @contextmanager
    def _locked(self, device: str) -> Iterator[int]:
        file = _open(make_folder(self._folder) / self._path(device).name)
        try:
            with contextlib.suppress(OSError):
                os.fchmod(file, 0o666)
            self._wait(file, device)
            yield file
        finally:
            os.close(file)

    def _wait(self, file: int, device: str) -> None:
        polls, most, often = 0, round(self._patience / POLL_S), round(TELL_S / POLL_S)
        while not _try_lock(file):
            if device in self._in_vain:
                what = f"{self._who_measures(device)}, and this process had waited {self._patience:.0f} s for it"
                raise PerfgateError("lease-held", what)
            if polls >= most:
                self._in_vain.add(device)
                raise PerfgateError("lease-held", f"{self._who_measures(device)}, waited {polls * POLL_S:.0f} s")
            if polls % often == FIRST_POLLS and self.tell:
                self.tell(f"{self._who_measures(device)}; this run waits for it, {self._patience:.0f} s at most")
            self._sleep(POLL_S)
            polls += 1
        self._in_vain.discard(device)

    def _who_measures(self, device: str) -> str:
        owner = self.owner(device)
        return f"process {owner} measures on {device}" if owner else f"{device} is taken"

    def _write_owner(self, file: int, device: str, token: str) -> None:
        pid = os.getpid()
        record = {"device": device, "pid": pid, "started": started(pid), "token": token}
        with usable(self._folder):
            os.ftruncate(file, 0)
            os.pwrite(file, json.dumps(record).encode(), 0)

    def _path(self, device: str) -> Path:
        return self._folder / f"{re.sub(r'[^A-Za-z0-9.-]', '_', device)}.lease"


def _open(path: Path) -> int:
    """Open a lease's file, and create it only if missing: the kernel refuses O_CREAT for another user's in /tmp."""
    with usable(path.parent):
        try:
            return os.open(path, os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)


def _try_lock(file: int) -> bool:
    """Try to take the lock; locks, process groups and signals are those of POSIX in all of this package."""
    if sys.platform == "win32":
        raise PerfgateError("platform-unsupported", "nothing is measured on Windows itself")
    return try_lock(file)


def _unlock(file: int) -> None:
    """Unlock explicitly, because a process that the measured call forked keeps the file open."""
    os.ftruncate(file, 0)
    unlock(file)
