"""Exports made by hand for tests: tables of any schema, with rows as written here."""

from __future__ import annotations

import sqlite3
from pathlib import Path

VM = 1 << 48
SECRET = "hunter2-PLANTED-TOKEN"
_NVTX = "start INTEGER, end INTEGER, eventType INTEGER, text TEXT, globalTid INTEGER, textId INTEGER"
_KERNEL = "start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER, correlationId INTEGER, globalPid INTEGER, shortName INTEGER"
_RUNTIME = "start INTEGER, end INTEGER, globalTid INTEGER, correlationId INTEGER, nameId INTEGER"
_COPY = "start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER, correlationId INTEGER, globalPid INTEGER"


def process(pid: int) -> int:
    return VM | pid << 24


def quicken(db: sqlite3.Connection) -> None:
    """A file of a test need not outlive a loss of power."""
    db.execute("PRAGMA synchronous = OFF")
    db.execute("PRAGMA journal_mode = MEMORY")


class ExportMaker:
    """Rows in, an export out; only tables that were given rows exist."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.db = sqlite3.connect(path)
        quicken(self.db)
        self.db.execute("CREATE TABLE StringIds(id INTEGER PRIMARY KEY, value TEXT)")
        self._names: dict[str, int] = {}
        self._correlation = 0

    def name(self, text: str) -> int:
        if text not in self._names:
            self._names[text] = len(self._names) + 1
            self.db.execute("INSERT INTO StringIds VALUES (?, ?)", (self._names[text], text))
        return self._names[text]

    def range(self, pid: int, start: int, end: int | None, text: str, *, tid: int = 1, inline: bool = True) -> None:
        self.db.execute(f"CREATE TABLE IF NOT EXISTS NVTX_EVENTS({_NVTX})")
        name_id = None if inline else self.name(text)
        row = (start, end, 59, text if inline else None, process(pid) | tid, name_id)
        self.db.execute("INSERT INTO NVTX_EVENTS VALUES (?,?,?,?,?,?)", row)

    def kernel(self, pid: int, start: int, end: int, name: str, *, stream: int = 7, device: int = 0,
               launched: int | None = None, tid: int = 1) -> None:  # fmt: skip
        self._correlation += 1
        self.db.execute(f"CREATE TABLE IF NOT EXISTS CUPTI_ACTIVITY_KIND_KERNEL({_KERNEL})")
        row = (start, end, device, stream, self._correlation, process(pid), self.name(name))
        self.db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?,?,?,?,?,?,?)", row)
        if launched is not None:
            self.call(pid, launched, launched + 2, "cudaLaunchKernel_v7000", tid=tid, correlation=self._correlation)

    def call(self, pid: int, start: int, end: int, name: str, *, tid: int = 1, correlation: int = 0) -> None:
        self.db.execute(f"CREATE TABLE IF NOT EXISTS CUPTI_ACTIVITY_KIND_RUNTIME({_RUNTIME})")
        row = (start, end, process(pid) | tid, correlation, self.name(name))
        self.db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?,?,?,?,?)", row)

    def copy(self, pid: int, start: int, end: int, *, device: int = 0, stream: int = 9) -> None:
        self.db.execute(f"CREATE TABLE IF NOT EXISTS CUPTI_ACTIVITY_KIND_MEMCPY({_COPY})")
        self.db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (?,?,?,?,?,?)",
                        (start, end, device, stream, 0, process(pid)))  # fmt: skip

    def secrets(self) -> None:
        """What nsys embeds of the environment and of the output, with a token in each."""
        self.db.execute(
            "CREATE TABLE TARGET_INFO_SYSTEM_ENV(globalVid INTEGER, devStateName TEXT, name TEXT, nameEnum INTEGER, value TEXT)"
        )
        self.db.execute("INSERT INTO TARGET_INFO_SYSTEM_ENV VALUES (1, 'x', 'API_TOKEN', 0, ?)", (SECRET,))
        self.db.execute("CREATE TABLE META_DATA_CAPTURE(name TEXT, value TEXT)")
        self.db.execute("INSERT INTO META_DATA_CAPTURE VALUES ('PROCESS_ENV', ?)", (f"API_TOKEN={SECRET}",))
        self.db.execute("CREATE TABLE ANALYSIS_FILE(id INTEGER, filename TEXT, content BLOB, globalPid INTEGER)")
        self.db.execute("INSERT INTO ANALYSIS_FILE VALUES (1, 'env.log', ?, 0)", (SECRET.encode(),))
        self.db.execute("CREATE TABLE ProcessStreams(globalPid INTEGER, filenameId INTEGER, contentId INTEGER)")
        self.name(f"_=/usr/bin/python\0API_TOKEN={SECRET}\0HOME=/root")
        row = (process(1), self.name("stdout.log"), self.name(f"login with {SECRET} ok"))
        self.db.execute("INSERT INTO ProcessStreams VALUES (?, ?, ?)", row)

    def done(self) -> Path:
        self.db.commit()
        self.db.close()
        return self.path


def small_export(path: Path, rank: int = 0, pid: int = 10, slow: int = 1, *, secrets: bool = False) -> Path:
    """One rank of a pipeline of two, one step, one communication kernel that compute covers by half."""
    maker = ExportMaker(path)
    maker.range(pid, 0, 100_000, f"rank={rank}; pp={rank}/2 dp=0/1 cp=0/1 ep=0/1; mbs=1 seq=8")
    maker.range(pid, 1_000, 21_000, "forward chunk 0 backward chunk 0")
    maker.range(pid, 2_000, 4_000, "layer00.stage2_f")
    maker.kernel(pid, 5_000, 7_000, "gemm", launched=1_500)
    maker.kernel(pid, 6_000, 6_000 + 2_000 * slow, "ncclDevKernel_SendRecv", stream=20, launched=2_500)
    if secrets:
        maker.secrets()
    return maker.done()
