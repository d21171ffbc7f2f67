"""A server of PostgreSQL on loopback, in a folder of its own; nothing where none is installed."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

USER = "postgres"


def missing() -> str:
    """Why there is no server to be had here; empty where there is one."""
    try:
        import psycopg  # noqa: F401
    except ImportError:
        return "psycopg is not installed: pip install 'psycopg[binary]'"
    if not _programs():
        return "no server of PostgreSQL is installed: apt-get install postgresql"
    if os.geteuid() == 0 and not _unprivileged():
        return "a server of PostgreSQL does not run as root, and there is no user postgres"
    return ""


def _programs() -> Path | None:
    """The folder of initdb and postgres."""
    found = shutil.which("initdb")
    folders = [Path(found).parent] if found else sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((folder for folder in folders if (folder / "initdb").exists() and (folder / "postgres").exists()), None)


def _unprivileged() -> dict[str, Any]:
    """How a child becomes somebody who may run a server."""
    try:
        entry = pwd.getpwnam(USER)
    except KeyError:
        return {}
    return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}


class Server:
    """One that can be killed and started again."""

    def __init__(self, home: Path) -> None:
        self.home, self.programs = home, _programs()
        self.who = _unprivileged() if os.geteuid() == 0 else {}
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.running: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        return f"postgresql://{USER}@127.0.0.1:{self.port}/postgres"

    def create(self) -> None:
        if self.who:
            os.chown(self.home, self.who["user"], self.who["group"])
        command = [
            str(self.programs / "initdb"),
            "-D",
            str(self.home / "data"),
            "-U",
            USER,
            "-A",
            "trust",
            "-E",
            "UTF8",
        ]
        subprocess.run(command, check=True, capture_output=True, cwd="/", **self.who)

    def start(self) -> None:
        command = [str(self.programs / "postgres"), "-D", str(self.home / "data"), "-k", str(self.home), "-h",
                   "127.0.0.1", "-p", str(self.port)]  # fmt: skip
        log = (self.home / "log").open("ab")
        self.running = subprocess.Popen(command, stdout=log, stderr=log, cwd="/", start_new_session=True, **self.who)
        log.close()
        until = time.monotonic() + 60
        while time.monotonic() < until:
            with contextlib.suppress(Exception):
                import psycopg

                psycopg.connect(self.address, connect_timeout=2).close()
                return
            time.sleep(0.05)
        raise TimeoutError((self.home / "log").read_text()[-2000:])

    def stop(self, *, kill: bool = False) -> None:
        """End it, or let it die at once with all that it started."""
        if self.running is None:
            return
        if kill:
            os.killpg(self.running.pid, 9)
        else:
            self.running.send_signal(2)
        self.running.wait(60)
        self.running = None

    def emptied(self) -> str:
        """Its address, with nothing in it."""
        import psycopg

        with psycopg.connect(self.address, autocommit=True) as connection:
            connection.execute("drop schema if exists perfgate cascade")
        return self.address


@contextlib.contextmanager
def served() -> Iterator[Server]:
    home = Path(tempfile.mkdtemp(prefix="perfgate-postgres-"))
    home.chmod(0o700)
    server = Server(home)
    try:
        server.create()
        server.start()
        yield server
    finally:
        server.stop()
        shutil.rmtree(home, ignore_errors=True)
