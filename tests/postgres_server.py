"""A server of PostgreSQL on loopback, in a folder of its own; nothing where none is installed."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.waits import runs, stat, until

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
    program = shutil.which("initdb")
    folders = [Path(program).parent] if program else sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((folder for folder in folders if (folder / "initdb").exists() and (folder / "postgres").exists()), None)


def _unprivileged() -> dict[str, Any]:
    """How a child becomes somebody who may run a server."""
    try:
        entry = pwd.getpwnam(USER)
    except KeyError:
        return {}
    return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}


def _children(pid: int) -> list[int]:
    return [int(place.name) for place in Path("/proc").glob("[0-9]*") if stat(int(place.name))[1:2] == [str(pid)]]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Server:
    """One that can be killed and started again."""

    def __init__(self, home: Path) -> None:
        self.home, self.programs = home, _programs()
        self.who = _unprivileged() if os.geteuid() == 0 else {}
        self.port = _free_port()
        self.running: subprocess.Popen[bytes] | None = None
        self.known = False
        """Whether somebody may know its address."""

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
        if not until(self._answers):
            raise TimeoutError((self.home / "log").read_text()[-2000:])

    def _answers(self) -> bool:
        """Whether it can be asked; one that could not begin is begun again: somebody may have taken its port."""
        if self.running is None or self.running.poll() is not None:
            self.port = self.port if self.known or self.running is None else _free_port()
            self._begin()
        with contextlib.suppress(Exception):
            import psycopg

            psycopg.connect(self.address, connect_timeout=10).close()
            self.known = True
            return True
        return False

    def _begin(self) -> None:
        command = [str(self.programs / "postgres"), "-D", str(self.home / "data"), "-k", str(self.home), "-h",
                   "127.0.0.1", "-p", str(self.port)]  # fmt: skip
        log = (self.home / "log").open("ab")
        self.running = subprocess.Popen(command, stdout=log, stderr=log, cwd="/", start_new_session=True, **self.who)
        log.close()

    def stop(self, *, kill: bool = False) -> None:
        """End it, or let it die at once with all that it started."""
        if self.running is None:
            return
        if kill:
            leader = self.running.pid
            self.running.send_signal(signal.SIGSTOP)
            until(lambda: stat(leader)[:1] in ([], ["T"]))  # begins no more processes
            below = _children(leader)
            for process in (leader, *below):
                os.kill(process, signal.SIGKILL)
            until(lambda: not any(map(runs, below)))  # they have the memory in which a new one begins
        else:
            self.running.send_signal(signal.SIGINT)
        self.running.wait(120)
        self.running = None

    def settle(self) -> None:
        """Until it has done what clients that are gone had asked for."""
        import psycopg

        busy = "select 1 from pg_stat_activity where application_name = 'perfgate' and state <> 'idle'"
        with psycopg.connect(self.address, autocommit=True) as connection:
            assert until(lambda: not connection.execute(busy).fetchall()), "a client that is gone is served"

    def vacuum(self) -> None:
        """Do at once what an idle server does within a minute of many rows: note which pages all readers see."""
        import psycopg

        with psycopg.connect(self.address, autocommit=True) as connection:
            connection.execute("vacuum analyze")

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
