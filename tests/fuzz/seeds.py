"""Small good files of every kind that is read, for the fuzzer to damage; files of a corpus beside them where one is."""

from __future__ import annotations

import gzip
import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from pytest_perfgate.adapters.children.channel import encode_line
from pytest_perfgate.adapters.stores.baselines import Baselines
from pytest_perfgate.adapters.stores.history import SqliteHistory
from pytest_perfgate.adapters.stores.record_files import render_samples
from pytest_perfgate.adapters.stores.records import render_record
from pytest_perfgate.adapters.stores.stored_forms import render_ceilings, render_environment
from pytest_perfgate.adapters.system.processes import started
from pytest_perfgate.model.device import Ceilings
from pytest_perfgate.model.measurement import Environment, HistoryEntry, Samples, Stop
from pytest_perfgate.model.plan import Case, CaseKey, Outcome, Plan
from pytest_perfgate.model.protocol import Bye, ChildJob, Entered, Finished, Go, Hello, Measure, Taken
from pytest_perfgate.model.verdict import RunReport
from tests import reports
from tests.kineto_file import document, host, kernel, launch
from tests.kineto_job import step_events
from tests.kineto_operators import zoo
from tests.ncu_file import ncu_file
from tests.nsys_file import ExportMaker, small_export

ROOT = Path(__file__).resolve().parents[2]
LARGEST = 400_000
"""Bytes of a file of the corpus: a larger one takes seconds a mutant."""


def corpus(*patterns: str) -> dict[str, bytes]:
    """Files of the corpus, unpacked; none where there is no corpus."""
    root = os.environ.get("PERFGATE_CORPUS", "")
    files = sorted(file for pattern in patterns for file in Path(root).glob(pattern)) if root else []
    contents = {file.name: file.read_bytes() for file in files if file.stat().st_size <= LARGEST}
    unpacked = {name: gzip.decompress(data) if name.endswith(".gz") else data for name, data in contents.items()}
    return {name: data for name, data in unpacked.items() if len(data) <= LARGEST}


def _text(tree: object) -> bytes:
    return json.dumps(tree).encode() + b"\n"


def traces() -> dict[str, bytes]:
    step = [
        host("ProfilerStep#1", 0, 900, cat="user_annotation"),
        *zoo()[:40],
        kernel("ncclDevKernel_AllReduce_Sum_bf16", 20, 300, correlation=90, stream=20),
        launch(10, 90),
    ]
    cards = [{"id": 0, "name": "NVIDIA H100 80GB HBM3", "computeMajor": 9, "computeMinor": 0, "numSms": 132}]
    ranked = {"distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 2}, "deviceProperties": cards}
    made = {
        "step.json": json.dumps(document(step, **ranked)).encode(),
        "spaced.json": json.dumps(document(zoo()[40:60]), indent=1).encode(),
    }
    return made | corpus("torch/*.json.gz", "torch/edge/*.json.gz")


def _rank(number: int) -> bytes:
    events = [event for n in (1, 2) for event in step_events(n, 200 * n, late=3 * number)]
    return _text(document(events, distributedInfo={"rank": number, "world_size": 2, "backend": "nccl"}))


def jobs() -> dict[str, bytes]:
    return {"rank1.json": _rank(1)}


def other_rank() -> bytes:
    return _rank(0)


def exports() -> dict[str, bytes]:
    with tempfile.TemporaryDirectory() as folder:
        pair = small_export(Path(folder) / "pair.sqlite", slow=2, secrets=True).read_bytes()
        maker = ExportMaker(Path(folder) / "plain.sqlite")
        for number in range(20):
            maker.kernel(7, 1000 * number + 300, 1000 * number + 900, f"k{number % 3}", launched=1000 * number)
            maker.copy(7, 1000 * number + 500, 1000 * number + 950)
        maker.range(7, 0, 20_000, "iteration", inline=False)
        plain = maker.done().read_bytes()
    return {"pair.sqlite": pair, "plain.sqlite": plain} | corpus("nsys/pairs/*.sqlite", "nsys/golden*.sqlite")


METRICS: Mapping[str, float | int] = {
    "gpu__time_duration.sum": 5410.0,
    "dram__throughput.avg.pct_of_peak_sustained_elapsed": 61.8,
    "sm__throughput.avg.pct_of_peak_sustained_elapsed": 30.5,
    "sm__warps_active.avg.pct_of_peak_sustained_active": 48.0,
    "launch__registers_per_thread": 64,
    "launch__block_size": 128,
    "launch__grid_size": 64,
    "launch__occupancy_limit_registers": 8,
}


def ncu_reports() -> dict[str, bytes]:
    made = ncu_file([("first(int)", METRICS), ("second<float>", {**METRICS, "gpu__time_duration.sum": 900.0})])
    return {"two.ncu-rep": made} | corpus("ncu/*.ncu-rep")


_WHO = '"{n}","10","app","h","{name}","1","7","(128, 1, 1)","(64, 1, 1)","0","9.0"'
_LONG = (
    '"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device",'
    '"CC","Section Name","Metric Name","Metric Unit","Metric Value"\n'
)
_LINES = (("Duration", "us", "5.41"), ("DRAM Throughput", "%", "61.80"), ("Registers Per Thread", "", "64"))
_WIDE = (
    '"ID","Process ID","Host Name","Kernel Name","CC","gpu__time_duration.sum",'
    '"dram__throughput.avg.pct_of_peak_sustained_elapsed","launch__registers_per_thread"\n"","","","","","us","%",""\n'
    '"0","10","h","k(int)","9.0","12.1","55.5","64"\n"1","10","h","j(int)","9.0","2.1","5.5","32"\n'
)


def ncu_pages() -> dict[str, bytes]:
    rows = "".join(
        f'{_WHO.format(n=n, name=name)},"Speed","{metric}","{unit}","{cell}"\n'
        for n, name in enumerate(("k(int)", "j<float, 4>"))
        for metric, unit, cell in _LINES
    )
    return {"long.csv": (_LONG + rows).encode(), "wide.csv": _WIDE.encode()} | corpus("ncu/*.csv")


_SOURCE = """"Kernel Name","void k<float, 4>(T1 *)"
"#","Address","Source","Warp Stall Sampling (All Samples)","Instructions Executed","# Samples","stall_long_sb","stall_wait"
"1","0x7f0010","      LDG.E.128 R4, [R2.64]","1,300","64","1,300","1200","60"
"2","0x7f0020","@!P0 FFMA R1, R2, R3, R4","20","128","20","0","20"
"3","0x7f0030","      EXIT","0","64","0","0","0"
"""


def source_pages() -> dict[str, bytes]:
    return {"source.csv": _SOURCE.encode()}


def cubins() -> dict[str, bytes]:
    folder = ROOT / "tests" / "artifacts" / "cubins"
    names = ("copy.sm_90.cubin", "reduction.sm_80.cubin", "spilling.sm_100.cubin", "copy.fatbin")
    return {name: (folder / name).read_bytes() for name in names}


_TRACE = (
    '"Kind","Agent_Id","Dispatch_Id","Kernel_Name","Start_Timestamp","End_Timestamp","Workgroup_Size_X",'
    '"Workgroup_Size_Y","Workgroup_Size_Z","Grid_Size_X","Grid_Size_Y","Grid_Size_Z"\n'
    '"KERNEL_DISPATCH","Agent 1",1,"k(int)",100,1100,64,2,1,1024,4,1\n'
    '"KERNEL_DISPATCH","Agent 1",2,"j(int)",1200,1300,64,1,1,1024,1,1\n'
)
_COUNTED = (
    '"Dispatch_Id","Process_Id","Grid_Size","Kernel_Name","Workgroup_Size","VGPR_Count","Counter_Name","Counter_Value",'
    '"Start_Timestamp","End_Timestamp"\n'
    '1,5,1024,"k(int)",64,8,"SQ_WAVES",16,100,1100\n1,5,1024,"k(int)",64,8,"OccupancyPercent",55.5,100,1100\n'
    '2,5,1024,"j(int)",64,16,"SQ_WAVES",32,1200,1300\n2,5,1024,"j(int)",64,16,"OccupancyPercent",25,1200,1300\n'
)


def rocprof() -> dict[str, bytes]:
    made = {"kernel_trace.csv": _TRACE.encode(), "counter_collection.csv": _COUNTED.encode()}
    return made | corpus("rocprof/*.csv")


def benchmarks() -> dict[str, bytes]:
    google = {
        "context": {"date": "2026", "num_cpus": 8},
        "benchmarks": [
            {"name": f"BM/{n}", "run_name": f"BM/{n}", "run_type": "iteration", "real_time": 10.0 * n, "cpu_time": 9,
             "time_unit": "us"} for n in range(1, 5)
        ],
    }  # fmt: skip
    ours = {
        "machine_info": {"node": "n", "python_version": "3", "cpu": {"brand_raw": "Xeon"}},
        "commit_info": {"id": "c0ffee1"},
        "benchmarks": [
            {"name": name, "fullname": f"t.py::{name}", "stats": {"mean": 2e-6, "stddev": 1e-7, "rounds": 9, "median": 1e-6}}
            for name in ("test_a", "test_b[1]")
        ],
        "version": "5.1.0",
    }  # fmt: skip
    asv = {
        "commit_hash": "a" * 40, "env_name": "e", "date": 1767225600000, "params": {"machine": "box"},
        "result_columns": ["result", "params"], "version": 2,
        "results": {"b.T.time_x": [[1e-6], []], "b.time_p": [[1e-6, 2e-6], [["1", "2"]]]},
    }  # fmt: skip
    value = {"name": "value", "type": "float64", "value": "0.002"}
    states = [
        {"name": f"T=F{size}", "device": 0, "is_skipped": False,
         "summaries": [{"tag": "nv/cold/time/gpu/mean", "data": [value]}]} for size in (16, 32)
    ]  # fmt: skip
    nvbench = {
        "meta": {"argv": ["b"], "version": {"json": {"string": "1.0.0"}, "nvbench": {}}},
        "devices": [{"id": 0, "name": "H200", "sm_version": 900}],
        "benchmarks": [{"axes": None, "name": "copy", "states": states}],
    }
    runs = {"mean": 0.2, "stddev": 0.01, "median": 0.2, "user": 0.1, "system": 0.05, "times": [0.2, 0.2]}
    hyperfine = {"results": [{"command": name, **runs, "exit_codes": [0, 0]} for name in ("make a", "make b")]}
    made = {
        "hyperfine.json": hyperfine,
        "google.json": google,
        "ours.json": ours,
        "asv.json": asv,
        "nvbench.json": nvbench,
    }
    texts = {name: json.dumps(body, indent=1).encode() for name, body in made.items()}
    return texts | corpus("nvbench/old*.json", "pytest_benchmark/*.json")


@cache
def report() -> RunReport:
    return reports.run(reports.case("test_a[1]", 2e6, 1e6, Outcome.REGRESSED), reports.case("test_b", 5e5))


def records() -> dict[str, bytes]:
    return {"record.json": render_record(report())}


def samples() -> dict[str, bytes]:
    return {"record.samples": render_samples(report())}


def compared() -> dict[str, bytes]:
    """One file of each kind that is told apart by its text alone."""
    small = ("step.json", "google.json", "nvbench.json", "wide.csv", "kernel_trace.csv", "record.json")
    every = {**traces(), **benchmarks(), **ncu_pages(), **rocprof(), **records()}
    return {name: every[name] for name in small}


def baselines() -> dict[str, bytes]:
    with tempfile.TemporaryDirectory() as folder:
        store = Baselines(Path(folder), ("*",))
        lines = [reports.baseline("test_a[1]", 1.5e6), reports.baseline("test_b", 2e3, why='a "quoted" reason: #1')]
        (path, *_) = store.write(lines)
        return {"baseline.yaml": path.read_bytes()}


REMOVED = frozenset({"test_c"})
"""What theirs took out and ours left as it was."""


@cache
def side(name: str) -> bytes:
    """One of three files that are merged: each side accepts a case anew and brings one."""
    changed = {"ours": {"test_a": 2e6, "test_o": 1e6}, "theirs": {"test_b": 3e6, "test_t": 1e6}}.get(name, {})
    times = {**dict.fromkeys(("test_a", "test_b", "test_c", "test_d[1]"), 1e6), **changed}
    removed = REMOVED if name == "theirs" else ()
    with tempfile.TemporaryDirectory() as folder:
        lines = [reports.baseline(test, time) for test, time in times.items() if test not in removed]
        (path, *_) = Baselines(Path(folder), ("*",)).write(lines)
        return path.read_bytes()


def ours() -> dict[str, bytes]:
    return {"ours.yaml": side("ours")}


def theirs() -> dict[str, bytes]:
    return {"theirs.yaml": side("theirs")}


_SETTINGS = """[project]
name = "mykern"

[tool.perfgate]
limits = ["slowdown <= 5%", "mfu >= 20%"]
devices = ["NVIDIA-H200*", "host-*"]
rounds = 3
budget = "10 min"
timeout = "60 s"
capture = ["cubin"]
communication = ["my_allreduce*"]

[tool.perfgate.policy]
undecided = "warn"

[[tool.perfgate.tests]]
pattern = "tests/bench/*::test_gemm*"
limits = ["mfu >= 55%"]
rounds = 5
"""


def settings() -> dict[str, bytes]:
    return {"pyproject.toml": _SETTINGS.encode()}


def histories() -> dict[str, bytes]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "history.db"
        keys = [CaseKey(nodeid="tests/test_k.py::test_a[1]"), CaseKey(nodeid="tests/test_k.py::test_b", name="bwd")]
        SqliteHistory(path).append(
            [
                HistoryEntry(key=key, device="d", time=1e6 + n, when="2026-06-01", run=f"r{n}", outcome="passed")
                for key in keys
                for n in range(9)
            ]
        )
        return {"history.db": path.read_bytes()}


def _messages() -> Iterator[object]:
    key = CaseKey(nodeid="tests/test_k.py::test_a[1]", name="fwd")
    samples = Samples(durations=(1.0, 2.0, 3.0), timer="host", stop=Stop.SETTLED)
    yield from (Go(), Hello(token="t" * 32), Measure(plan=Plan(budget_ns=2e7)), Entered(key=key, samples=3))
    yield from (Taken(key=key, samples=samples), Bye(modules=(("a.py", "00"),)))
    yield ChildJob(cases=(Case(nodeid=key.nodeid, limits=(reports.LIMIT,), plan=Plan()),), options=(("x", "1"),))
    yield Finished(nodeid=key.nodeid, outcome="passed", raised=((key, "call raised ValueError: odd"),))


def messages() -> dict[str, bytes]:
    return {f"{type(one).__name__}.json": encode_line(one) for one in _messages()}  # type: ignore[arg-type]


def answers() -> dict[str, bytes]:
    """Whole answers of a server, head and body."""
    (body,) = records().values()
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n"
    packed = gzip.compress(body)
    chunked = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (body[:900], body[900:])) + b"0\r\n\r\n"
    return {
        "plain.http": head % len(body) + body,
        "packed.http": (head % len(packed)).replace(b"\r\n\r\n", b"\r\nContent-Encoding: gzip\r\n\r\n") + packed,
        "chunked.http": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked,
        "moved.http": b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:9/x\r\nContent-Length: 0\r\n\r\n",
        "busy.http": b"HTTP/1.1 503 Busy\r\nContent-Length: 4\r\n\r\nbusy",
    }


def launches() -> dict[str, bytes]:
    """What Triton writes beside its machine code."""
    metadata = {
        "name": "copy",
        "num_warps": 4,
        "shared": 1024,
        "target": {"backend": "cuda", "arch": 90, "warp_size": 32},
    }
    return {"triton.json": _text(metadata), "build.json": b'{"name": "", "num_warps": 8}'}


def forges() -> dict[str, bytes]:
    """Answers of GitHub and GitLab: pages of comments, one of ours among them, what was made, and what stands between."""
    page = [{"id": number, "body": "nice"} for number in range(100)]
    mine = {"id": 7, "body": "<!-- pytest-perfgate k -->\n## before", "html_url": "https://forge/c/7"}
    made = {"status": 201, "body": {"id": 9, "html_url": "https://forge/c/9"}}
    moved = {"status": 302, "headers": {"Location": "http://127.0.0.1:9/x"}, "body": ""}
    waiting = {"status": 429, "headers": {"Retry-After": "7"}, "body": "slow"}
    spent = {"status": 403, "headers": {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "1"}, "body": {}}
    exchanges = {
        "edited": ("github", [{"body": [*page[:3], mine]}, made]),
        "paged": ("gitlab", [{"body": page}, {"body": page[:5]}, made]),
        "check": ("check", [made]),
        "moved": ("github", [moved]),
        "waited": ("gitlab", [waiting, {"body": []}, spent, made]),
        "signed in": ("check", [{"body": "<html>sign in</html>"}]),
    }
    files = {name: {"to": to, "answers": list(every)} for name, (to, every) in exchanges.items()}
    change = {"pull_request": {"number": 7, "head": {"sha": "c0ffee1"}}}
    for name, to in (("of a change", "github"), ("of a commit", "check")):
        files[name] = {"to": to, "event": {**change, "number": 7} if to == "github" else change, "answers": [made]}
    return {name: _text(body) for name, body in files.items()}


def ceilings() -> dict[str, bytes]:
    record = Ceilings(
        device="NVIDIA-H200", compute=(("bf16", 7.1e14), ("fp32", 5.0e13)), bandwidth=4.2e12, cache_bytes=6.3e7,
        clock_hz=1.98e9, method="events", when="2026-06-01", facts=(("library", "torch 2.9"),),
    )  # fmt: skip
    return {"ceilings.json": render_ceilings(record).encode()}


def environments() -> dict[str, bytes]:
    record = Environment(python="3.11", platform="Linux", packages=(("torch", "2.9"),), facts=(("driver", "580.1"),))
    return {"c0ffee.json": render_environment(record).encode()}


def leases() -> dict[str, bytes]:
    """Of a process that lives, and of one that is gone."""
    lease = {"device": "card", "pid": 1, "started": started(1), "token": "7007"}
    return {"held": _text(lease), "left": _text({**lease, "pid": 1 << 22, "token": "1"})}


def locks() -> dict[str, bytes]:
    entry = {"device": "GPU-1", "pid": 1, "started": started(1), "sm_hz": 1.5e9, "memory": True, "run": "1 5"}
    entries = {"held": entry, "left": {**entry, "pid": 1 << 22}, "by hand": {**entry, "pid": 0, "started": ""}}
    return {name: _text(lock) for name, lock in entries.items()}


def costs() -> dict[str, bytes]:
    return {"costs.json": _text({"tests/test_k.py::test_a[1]": 1.25, "starting": 2.0})}


def builds() -> dict[str, bytes]:
    facts = {
        "python": "/env/bin/python", "launch": ["/env/bin/python", "-I"], "cwd": "/project", "root": "/env/site",
        "modules": ["k", "deep"], "content": "c0ffee", "sources": {"k.py": "00ff"},
    }  # fmt: skip
    return {"ready.json": _text(facts)}
