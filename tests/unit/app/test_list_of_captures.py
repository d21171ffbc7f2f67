"""Every name of the one list of captures has its folder and its files, whatever the instrument leaves."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_perfgate.adapters.profilers.event import TIMES
from pytest_perfgate.app.profile import profile
from pytest_perfgate.core.gate.grammar import parse_limit
from pytest_perfgate.core.metrics.registry import by_name
from pytest_perfgate.model.children import Capture
from pytest_perfgate.model.device import Availability, Device
from pytest_perfgate.model.measurement import Artifact, Identity
from pytest_perfgate.model.plan import Case, CaseKey, Plan
from pytest_perfgate.model.profiling import CAPTURES
from pytest_perfgate.model.samples import Samples, Stop
from pytest_perfgate.plugin.captures import asking
from pytest_perfgate.wiring.profiling import profile_tools, write_times
from tests.kernels import CUBINS
from tests.nsys_file import small_export
from tests.tools import has_tools

KEY = CaseKey(nodeid="t.py::test_gemm[4096-bf16]")
PAGE = '"ID","Kernel Name","CC","gpu__time_duration.sum"\n"","","","us"\n"0","stage1(float*)","9.0","412.3"\n'
SOURCE = '"Kernel Name","stage1(float*)"\n"#","Address","Source","# Samples","Instructions Executed"\n"1","0x10","LDG.E R2, [R4]","5","8"\n'
TRACE = {
    "schemaVersion": 1,
    "deviceProperties": [{"id": 0, "name": "NVIDIA H200"}],
    "traceEvents": [
        {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 0.0, "dur": 50.0, "args": {"External id": 1}},
        {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 5.0, "dur": 5.0,
         "args": {"correlation": 3, "External id": 1}},
        {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 20.0, "dur": 25.0,
         "args": {"device": 0, "stream": 7, "correlation": 3, "External id": 1}},
    ],
}  # fmt: skip
Leave = Callable[[Path], str]
"""What an instrument leaves in the folder: writes it, and says under which kind it is known."""


def event(folder: Path) -> str:
    samples = Samples(durations=(5e3, 6e3), timer="events", stop=Stop.BUDGET)
    device = Device(key="h200", name="NVIDIA H200", kind="gpu")
    write_times(folder, Capture(key=KEY, samples=(samples,), device=device, identity=Identity(device="h200")))
    return "record"


def written(name: str, text: str, kind: str) -> Leave:
    def leave(folder: Path) -> str:
        (folder / name).write_text(text)
        return kind

    return leave


def timeline(folder: Path) -> str:
    small_export(folder / "capture.sqlite")
    return "nsys"


def code(folder: Path) -> str:
    shutil.copy(CUBINS / "copy.sm_86.cubin", folder / "copy.cubin")
    return "cubin"


ALWAYS = {"params.json", "report.md", "metrics.json", "report.html", "profiler.log", "tiling/stage1.json"}
LEFT: dict[str, tuple[Leave, str, set[str]]] = {
    "event": (event, TIMES, set()),
    "annotation": (written("kernels.csv", PAGE, "ncu"), "kernels.csv", {"report-verbose.md", "contract.json"}),
    "ncu": (
        written("kernels.csv", SOURCE, "ncu"), "kernels.csv", {"report-verbose.md", "contract.json", "sass/stage1.tsv"},
    ),
    "nsys": (timeline, "capture.sqlite", {"report-verbose.md", "tables/*.csv", "*.svg"}),
    "torch": (written("trace0.json", json.dumps(TRACE), "kineto"), "trace0.json", {"report-verbose.md", "tables/*.csv"}),
    "cupti": (written("trace0.json", json.dumps(TRACE), "kineto"), "trace0.json", {"report-verbose.md", "tables/*.csv"}),
    "cubin": (code, "copy.cubin", {"report-verbose.md", "tables/*.csv"}),
}  # fmt: skip
"""By name: what the instrument leaves, its raw file, and what the profile adds to the files that each has."""


class Leaves:
    """An instrument of that name, as far as a folder can see."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._leave, self._raw, _ = LEFT[name]
        self.kind = ""

    def availability(self) -> Availability:
        return Availability(name=self.name, usable=True, version="1.2.3")

    def command(self, argv: Sequence[str], out: Path, plan: Plan) -> list[str]:
        del plan
        self.kind = self._leave(out)
        return list(argv)

    def region(self, out: Path) -> nullcontext[None]:
        del out
        return nullcontext()

    def artifacts(self, out: Path) -> tuple[Artifact, ...]:
        return (Artifact(kind=self.kind, path=str(out / self._raw)),)


def execute(argv: Sequence[str], log: Path, **given: object) -> int:
    """The child prints, attaches a file, and says with what it was run."""
    del argv, given
    log.write_text("1 passed\n")
    (log.parent / "tiling").mkdir()
    (log.parent / "tiling" / "stage1.json").write_text("[]")
    facts = [["dtype", "bf16"], ["device", "NVIDIA H200"]]
    (log.parent / "child.json").write_text(json.dumps({"outcome": "passed", "entered": 1, "facts": facts}))
    return 0


def test_the_list_is_the_one_of_the_specification() -> None:
    assert tuple(LEFT) == CAPTURES == ("event", "annotation", "ncu", "nsys", "torch", "cupti", "cubin")


@pytest.mark.parametrize("mode", CAPTURES)
def test_each_capture_has_its_folder_and_its_files(tmp_path: Path, mode: str) -> None:
    if mode == "cubin" and not has_tools("nvdisasm", "cuobjdump"):
        pytest.skip("nvdisasm and cuobjdump are not installed (extra: ncu)")
    tools = replace(profile_tools(tmp_path), profilers=(Leaves(mode),), execute=execute)
    done = profile(KEY, mode, Plan(), tools)
    assert done.folder.relative_to(tmp_path).parts[:-1] == (
        ".perfgate", "profiles", mode, "t.py-test_gemm", "4096-bf16",
    )  # fmt: skip
    for pattern in sorted({*ALWAYS, LEFT[mode][1], *LEFT[mode][2]}):
        found = list(done.folder.glob(pattern))
        assert found, f"no {pattern} among {sorted(str(p.relative_to(done.folder)) for p in done.folder.rglob('*'))}"
        assert all(path.stat().st_size for path in found)
    told = json.loads((done.folder / "params.json").read_text())
    assert (told["mode"], told["profiler"], told["parameters"], told["dtype"], told["device"]) == (
        mode, "1.2.3", "4096-bf16", "bf16", "NVIDIA H200",
    )  # fmt: skip
    assert "policy" in told["clocks"]
    assert json.loads((done.folder / "metrics.json").read_text())["metrics"]


def test_what_a_limit_asks_for_reaches_the_inspector_of_a_capture(tmp_path: Path) -> None:
    limit = parse_limit("executed(LDG.E, kernel=stage1) >= 1", kinds=by_name())
    case = Case(nodeid=KEY.nodeid, limits=(limit,), plan=Plan(), path="t.py")
    tools = replace(profile_tools(tmp_path), profilers=(Leaves("ncu"),), execute=execute)
    done = profile(KEY, "ncu", Plan(), asking(tools, case))
    assert [m.value for m in done.analysis.metrics.find(limit.metric, limit.labels)] == [8.0]
