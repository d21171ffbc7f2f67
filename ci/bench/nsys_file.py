"""A generated Nsight Systems export of any size, with a known shape: ranks, chunks, stages."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

VM = 1 << 48
TABLES = """
CREATE TABLE StringIds(id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE META_DATA_EXPORT(name TEXT NOT NULL, value TEXT);
CREATE TABLE NVTX_EVENTS(start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, rangeId INTEGER,
  category INTEGER, color INTEGER, text TEXT, globalTid INTEGER, endGlobalTid INTEGER, textId INTEGER,
  domainId INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,
  contextId INTEGER NOT NULL, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER,
  demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL, gridX INTEGER NOT NULL, gridY INTEGER NOT NULL,
  gridZ INTEGER NOT NULL, blockX INTEGER NOT NULL, blockY INTEGER NOT NULL, blockZ INTEGER NOT NULL,
  staticSharedMemory INTEGER NOT NULL, dynamicSharedMemory INTEGER NOT NULL, registersPerThread INTEGER,
  mangledName INTEGER, launchType INTEGER, cacheConfig INTEGER, localMemoryPerThread INTEGER NOT NULL,
  localMemoryTotal INTEGER NOT NULL, gridId INTEGER NOT NULL, sharedMemoryExecuted INTEGER, graphNodeId INTEGER,
  sharedMemoryLimitConfig INTEGER, greenContextId INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME(start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER NOT NULL,
  globalTid INTEGER, correlationId INTEGER, nameId INTEGER NOT NULL, returnValue INTEGER NOT NULL,
  callchainId INTEGER);
"""
NAMES = ("cudaLaunchKernel_v7000", "cudaEventRecord_v3020", "ncclDevKernel_SendRecv", "ncclDevKernel_AllGather")
KERNELS = tuple(f"gemm_bf16_tile_{n}" for n in range(200))
STAGES = tuple(f"stage{n}_{phase}" for phase in "fb" for n in (1, 2, 3, 4, 5))


def write_export(path: Path, kernels: int, ranks: int = 8) -> None:
    """``kernels`` kernels, twice as many runtime calls, half as many ranges."""
    path.unlink(missing_ok=True)
    connection = sqlite3.connect(path)
    connection.executescript("PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF;" + TABLES)
    strings = [*NAMES, *KERNELS]
    connection.executemany("INSERT INTO StringIds VALUES (?, ?)", enumerate(strings))
    connection.execute("INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_SCHEMA_VERSION', '3.20.1')")
    each = kernels // ranks
    for rank in range(ranks):
        marks = ",".join("?" * 11)
        connection.executemany(f"INSERT INTO NVTX_EVENTS VALUES ({marks})", _ranges(rank, each // 2))
        marks = ",".join("?" * 28)
        connection.executemany(f"INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES ({marks})", _kernels(rank, each))
        connection.executemany("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?,?,?,?,?,?,?,?)", _calls(rank, each))
    connection.commit()
    connection.close()


def _process(rank: int) -> int:
    return VM | (1000 + rank) << 24


def _ranges(rank: int, count: int) -> Iterator[tuple[object, ...]]:
    """A label, then chunks of a hundred stage ranges: each range spans two launches."""
    tid = _process(rank) | 1000 + rank
    span = 4000 * count

    def row(start: int, end: int, text: str) -> tuple[object, ...]:
        return (start, end, 59, None, None, None, text, tid, None, None, 0)

    yield row(0, span, f"rank={rank}; pp={rank // 4}/2 dp=0/1 cp=0/1 ep={rank % 4}/4; mbs=1 seq=2048")
    for number in range(count - 1):
        if number % 100 == 0:
            yield row(4000 * number, 4000 * (number + 99) + 3900, f"forward chunk {number} backward chunk {number}")
        else:
            yield row(4000 * number + 10, 4000 * number + 3900, f"layer{number % 48:02d}.{STAGES[number % 10]}")


def _kernels(rank: int, count: int) -> Iterator[tuple[object, ...]]:
    """Every ninth kernel communicates, on its own stream, and runs on under the next two."""
    process, device = _process(rank), rank
    for number in range(count):
        start = 2000 * number + 300
        talks = number % 9 == 0
        name, stream = (2 + number % 2, 20) if talks else (4 + number % 200, 7)
        length = 5000 if talks else 1300
        yield (start, start + length, device, 1, stream, number, process, name, name,
               64, 1, 1, 256, 1, 1, 0, 49152, 128, name,
               1, 0, 0, 110_000_000, number, 102_400, None, 0, None)  # fmt: skip


def _calls(rank: int, count: int) -> Iterator[tuple[object, ...]]:
    tid = _process(rank) | 1000 + rank
    for number in range(count):
        start = 2000 * number + 50
        yield (start, start + 40, 0, tid, number, 0, 0, None)
        yield (start + 60, start + 70, 0, tid, count + number, 1, 0, None)
