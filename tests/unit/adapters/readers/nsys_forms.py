"""Changes by which one small export becomes what other versions, tools and programs write."""

from __future__ import annotations

K, R, N = "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME", "NVTX_EVENTS"
COPY, SET, GRAPH = "CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_MEMSET", "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"
LATE = 1_732_000_000 * 10**9


def recast(table: str, kind: str) -> list[str]:
    """The same rows in a table that declares its columns as something else, as after an import."""
    return [f"CREATE TABLE aside AS SELECT {'*' if kind == '' else cast(table, kind)} FROM {table}",
            f"DROP TABLE {table}", f"ALTER TABLE aside RENAME TO {table}"]  # fmt: skip


def cast(table: str, kind: str) -> str:
    columns = {K: "start end deviceId streamId correlationId globalPid shortName",
               R: "start end globalTid correlationId nameId", N: "start end eventType globalTid textId"}[table]  # fmt: skip
    also = ", text" if table == N else ""
    return ", ".join(f"CAST({name} AS {kind}) AS {name}" for name in columns.split()) + also


def renamed(table: str, name: str) -> list[str]:
    return [f"ALTER TABLE {table} RENAME TO aside", f"ALTER TABLE aside RENAME TO {name}"]


def shifted(by: int) -> list[str]:
    return [f"UPDATE {table} SET start = start + {by}, end = end + {by}" for table in (K, R, N)]


def moved(machine: int, pid: int) -> list[str]:
    place = machine << 48 | pid << 24
    return [f"UPDATE {K} SET globalPid = {place}", f"UPDATE {R} SET globalTid = {place | 1}",
            f"UPDATE {N} SET globalTid = {place | 1}"]  # fmt: skip


def table(name: str, columns: str, *rows: str) -> list[str]:
    return [f"CREATE TABLE {name}({columns})", *(f"INSERT INTO {name} VALUES ({row})" for row in rows)]


GPU = "vmId INT, id INT, name TEXT, cuDevice INT"
OTHERS = ("OSRT_API", "MPI_P2P_EVENTS", "MPI_COLLECTIVES_EVENTS", "CUBLAS_EVENTS", "CUDNN_EVENTS", "GENERIC_EVENTS",
          "GPU_METRICS", "NET_NIC_METRIC", "CUPTI_ACTIVITY_KIND_OVERHEAD", "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
          "CUDA_UM_CPU_PAGE_FAULT_EVENTS", "PROFILER_OVERHEAD", "DIAGNOSTIC_EVENT", "CUDA_GRAPH_EVENTS")  # fmt: skip
OLD_RANGES = (
    "CREATE TABLE aside(start INT NOT NULL, end INT NOT NULL, eventType INT, text TEXT, globalTid INT, textId INT)",
    f"INSERT INTO aside SELECT start, end, eventType, text, globalTid, 0 FROM {N}",
    f"DROP TABLE {N}",
    f"ALTER TABLE aside RENAME TO {N}",
    "INSERT INTO StringIds VALUES (0, '[Unknown]')",
)
SAME = {
    "as it is": [],
    **{f"{name} as {kind}": recast(name, kind) for name in (K, R, N) for kind in ("TEXT", "REAL", "BLOB")},
    **{f"{name} without types": recast(name, "") for name in (K, R, N)},
    **{f"a second form of {name}": renamed(name, f"{name}_V2") for name in (K, R, N, "StringIds")},
    **{f"{name} in lower case": renamed(name, name.lower()) for name in (K, R, N, "StringIds")},
    "two forms: the one without a number counts": table(f"{K}_V3", "start INT, end INT", "1, 2"),
    "ranges from a text file of NVTX": [f"UPDATE {N} SET eventType = 70 + (text LIKE 'rank%')"],
    "start and end ranges that end on another thread": [
        f"ALTER TABLE {N} ADD COLUMN endGlobalTid INT",
        f"UPDATE {N} SET eventType = 60, endGlobalTid = globalTid + 5",
    ],
    "marks, domains, categories and thread names": [
        f"INSERT INTO {N} SELECT start + 600, NULL, {kind}, 'stage9_f rank=7', globalTid, NULL FROM {N} LIMIT 1"
        for kind in (33, 34, 39, 75, 76)
    ],
    "2020: no column may be empty, so every text has a number": list(OLD_RANGES),
    "2020: a mark ends at zero": [
        *OLD_RANGES,
        f"INSERT INTO {N} SELECT 2500, 0, 34, 'stage9_f', globalTid, 0 FROM {N} LIMIT 1",
    ],
    "2020: an open range ends at zero": [*OLD_RANGES, f"UPDATE {N} SET end = 0 WHERE text LIKE '%stage2_f'"],
    "texts registered in a domain": [
        f"INSERT INTO StringIds SELECT 900 + rowid, text FROM {N}",
        f"ALTER TABLE {N} ADD COLUMN domainId INT",
        f"UPDATE {N} SET textId = 900 + rowid, text = NULL, domainId = 1",
    ],
    "a column of names in the runtime's table": [f"ALTER TABLE {R} ADD COLUMN name TEXT"],
    "another machine": moved(3 << 8 | 2, 10),
    "the greatest process id": moved(1, 4_194_304),
    "a thread in the lower bits of a process": [f"UPDATE {K} SET globalPid = globalPid | 10"],
    "correlations past 32 bits": [f"UPDATE {name} SET correlationId = correlationId + (1 << 33)" for name in (K, R)],
    "the legacy stream": [f"UPDATE {K} SET streamId = 4294967295 WHERE streamId = 20"],
    "one stream number in two contexts": [
        f"ALTER TABLE {K} ADD COLUMN contextId INT",
        f"UPDATE {K} SET contextId = streamId, streamId = 7",
    ],
    "kernels of one graph share their launch": [
        f"ALTER TABLE {K} ADD COLUMN graphNodeId INT",
        f"UPDATE {K} SET correlationId = 2, graphNodeId = rowid",
        "UPDATE StringIds SET value = 'cudaGraphLaunch_v10000' WHERE value LIKE 'cudaLaunch%'",
        *table(GRAPH, "start INT, end INT"),
    ],
    "launches by the driver": ["UPDATE StringIds SET value = 'cuLaunchKernelEx' WHERE value LIKE 'cudaLaunch%'"],
    "tables of everything else": [line for name in OTHERS for line in table(name, "start INT, end INT", "1, 2")],
    "times since 1970": shifted(LATE),
    "shifted below zero": shifted(-(10**9)),
    "no number of CUDA's for a device": table("TARGET_INFO_GPU", GPU, "1, 0, 'A100', NULL"),
    "a device without a name": table("TARGET_INFO_GPU", GPU, "1, 0, NULL, 0"),
    "a device numbered by words": table("TARGET_INFO_GPU", "id TEXT, name TEXT", "'GPU-0', 'A100'"),
    "early 2021": table("TARGET_INFO_CUDA_GPU", "deviceId INT, name TEXT", "0, 'V100'"),
    "no version": table("META_DATA_EXPORT", "k TEXT, v TEXT"),
    "an empty version": table("META_DATA_EXPORT", "name TEXT, value TEXT", "'EXPORT_SCHEMA_VERSION', NULL"),
    "a version to come": table("META_DATA_EXPORT", "name TEXT, value TEXT", "'EXPORT_SCHEMA_VERSION', '99.1.0'"),
}
DOUBTED = {
    **{f"no {K}.{name}": ([f"ALTER TABLE {K} DROP COLUMN {name}"], "nsys-schema")
       for name in ("deviceId", "streamId", "correlationId", "globalPid")},
    **{f"no {R}.{name}": ([f"ALTER TABLE {R} DROP COLUMN {name}"], "nsys-schema")
       for name in ("start", "end", "globalTid", "correlationId", "nameId")},
    **{f"no {N}.{name}": ([f"ALTER TABLE {N} DROP COLUMN {name}"], "nsys-schema")
       for name in ("start", "end", "globalTid")},
    "copies without a process": (table(COPY, "start INT, end INT, deviceId INT, streamId INT", "9000, 9500, 0, 9"),
                                 "nsys-schema"),
    "copies without a start": (table(COPY, "end INT", "9500"), "nsys-schema"),
    "no calls": ([f"DELETE FROM {R}"], "nsys-unlinked"),
    "no names": (["DELETE FROM StringIds"], "nsys-damaged"),
    "names as texts": ([f"UPDATE {K} SET shortName = 'gemm'"], "nsys-damaged"),
    "kernels twice": ([f"INSERT INTO {K} SELECT * FROM {K}"], "nsys-damaged"),
    "everything twice": ([f"INSERT INTO {name} SELECT * FROM {name}" for name in (K, R, N)], "nsys-damaged"),
    "ends before it starts": ([f"UPDATE {K} SET end = start - 5 WHERE streamId = 20"], "nsys-damaged"),
    "a kernel of 292 years": ([f"UPDATE {K} SET end = 9223372036854775807 WHERE streamId = 20"], "nsys-damaged"),
    "one that starts so long ago": ([f"UPDATE {K} SET start = -9223372036854775808 WHERE streamId = 20"],
                                    "nsys-damaged"),
    "a hidden graph": (table(GRAPH, "start INT", "1"), "nsys-graphs"),
}  # fmt: skip
REFUSED = {
    "no strings": (["DROP TABLE StringIds"], "nsys-schema", "no StringIds"),
    "strings without numbers": (renamed("StringIds", "S") + table("StringIds", "value TEXT"), "nsys-schema", "id"),
    "strings without texts": (["ALTER TABLE StringIds RENAME COLUMN value TO t"], "nsys-schema", "column value"),
    "strings past 32 bits": (["UPDATE StringIds SET id = id + (1 << 33)"], "nsys-schema", "past 32 bits"),
    "kernels without a start": ([f"ALTER TABLE {K} DROP COLUMN start"], "nsys-schema", "no column start"),
    "kernels without an end": ([f"ALTER TABLE {K} DROP COLUMN end"], "nsys-schema", "no column end"),
    "a view": ([*renamed(K, "whole"), f"CREATE VIEW {K} AS SELECT * FROM whole"], "nsys-schema", "is a view"),
    "rows without numbers": ([*renamed(K, "o"), f"CREATE TABLE {K}(start INT PRIMARY KEY, end INT) WITHOUT ROWID"],
                             "nsys-schema", "WITHOUT ROWID"),
    "no kernel table": ([f"DROP TABLE {K}"], "nsys-no-kernels", "no kernel table; the file holds NVTX_EVENTS"),
    "an empty kernel table": ([f"DELETE FROM {K}"], "nsys-no-kernels", "an empty kernel table"),
    "an anchor that takes no time": ([f"UPDATE {N} SET end = start WHERE text LIKE 'forward%'"],
                                     "nsys-window", "starts and ends at once"),
    "a window in which nothing runs": ([f"UPDATE {N} SET start = 9000 WHERE text LIKE 'forward%'"],
                                       "nsys-window", "no kernel runs in 9000..21000"),
    **{f"a text for a time in {name}.{column}": ([f"UPDATE {name} SET {column} = 'then' WHERE rowid = 1"],
                                                "nsys-damaged", f"a time is a text in {name}")
       for name in (K, R, N) for column in ("start", "end")},
    "a device below zero": ([f"UPDATE {K} SET deviceId = -1"], "nsys-schema", "device number -1"),
    "one process id on two machines": ([f"UPDATE {K} SET globalPid = globalPid + (1 << 48) WHERE streamId = 20"],
                                       "nsys-ranks", "process 10 occurs on two machines"),
}  # fmt: skip
