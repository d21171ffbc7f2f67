"""Tests of app/profile."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_perfgate.adapters.profilers.in_process import TIMES
from pytest_perfgate.adapters.stores.profiles import ProfileFolders
from pytest_perfgate.app.profile import ProfileTools, profile
from pytest_perfgate.core.limits.grammar import parse_limit
from pytest_perfgate.core.metric_kinds import by_name
from pytest_perfgate.model.device import Availability, Device
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.measurement import Artifact, Identity, Samples, Stop
from pytest_perfgate.model.metric import Analysis, Document, MetricSet, Paragraph
from pytest_perfgate.model.plan import Case, CaseKey, Plan
from pytest_perfgate.model.protocol import CAPTURES, Capture, parse_assignment
from pytest_perfgate.plugin.captures import with_limits
from pytest_perfgate.wiring.profiling import profile_tools, write_times
from tests.kernels import CUBINS
from tests.nsys_file import small_export
from tests.tools import has_tools


class FakeProfiler:
    name = "fake"

    def __init__(self, usable: bool = True, code: str = "") -> None:
        self.usable, self.code = usable, code

    def availability(self) -> Availability:
        return Availability(name=self.name, usable=self.usable, why="it is not installed", fix="install it")

    def command(self, argv: Sequence[str], out: Path, plan: Plan) -> list[str]:
        return ["fake", *argv]

    def region(self, out: Path) -> nullcontext[None]:
        return nullcontext()

    def artifacts(self, out: Path) -> tuple[Artifact, ...]:
        if self.code:
            raise PerfgateError(self.code, "said so")
        return (Artifact(kind="fake", path=str(out / "a")),)


def tools(
    root: Path,
    profiler: FakeProfiler,
    codes: list[int],
    commands: list[list[str]],
    child: dict[str, object] | None = None,
) -> ProfileTools:
    def execute(argv, log, *, extra, cwd, timeout_s) -> int:  # type: ignore[no-untyped-def]
        assigned = parse_assignment(extra["PERFGATE_PROFILE"])
        commands.append([*argv, assigned.mode, str(assigned.call)])
        log.write_text("collected 1 item\nCUDA out of memory\n")
        if child is not None:
            (log.parent / "child.json").write_text(json.dumps(child))
        return codes.pop(0)

    analysis = Analysis(
        kind="fake",
        subject="a",
        metrics=MetricSet(),
        views={"overview": lambda: Document(title="T", blocks=(Paragraph(text="x"),))},
    )
    return ProfileTools(
        profilers=(profiler,),
        folders=ProfileFolders(root),
        execute=execute,
        inspect=lambda paths: analysis,
        command=lambda nodeid, assigned: ("python", nodeid),
        root=root,
    )


def test_a_profile_that_works(tmp_path: Path) -> None:
    commands: list[list[str]] = []
    done = profile(CaseKey(nodeid="t.py::t[1]"), "fake", Plan(), tools(tmp_path, FakeProfiler(), [0], commands))
    assert not done.again
    assert commands[0] == ["fake", "python", "t.py::t[1]", "fake", "None"]
    assert sorted(p.name for p in done.folder.iterdir()) == [
        "metrics.json", "params.json", "profiler.log", "report.md",
    ]  # fmt: skip
    assert done.folder.parts[-4:-1] == ("fake", "t.py-t", "1")


def test_a_failure_right_after_autotuning_is_tried_once_more_and_said(tmp_path: Path) -> None:
    done = profile(CaseKey(nodeid="t.py::t"), "fake", Plan(), tools(tmp_path, FakeProfiler(), [1, 0], []))
    assert done.again
    assert '"second_try": true' in (done.folder / "params.json").read_text()
    assert "this is the second" in (done.folder / "report.md").read_text()


def test_a_folder_that_was_given_holds_the_profiles(tmp_path: Path) -> None:
    elsewhere = replace(
        tools(tmp_path, FakeProfiler(), [0], []), folders=ProfileFolders(tmp_path, home=tmp_path / "out")
    )
    done = profile(CaseKey(nodeid="t.py::t[1]"), "fake", Plan(), replace(elsewhere, revision=lambda: "abc1234"))
    assert done.folder.parent == tmp_path / "out" / "fake" / "t.py-t" / "1"
    assert json.loads((done.folder / "params.json").read_text())["version"] == "abc1234"
    assert ProfileFolders(tmp_path).statement(done.folder / "x.ncu-rep")["version"] == "abc1234"
    assert not (tmp_path / ".perfgate").exists()


def test_kernels_are_chosen_by_a_profiler_that_can(tmp_path: Path) -> None:
    class Choosy(FakeProfiler):
        def only(self, kernel, launches=0):
            choices.append([kernel, str(launches)])
            return self

    choices: list[list[str]] = []
    chosen = replace(tools(tmp_path, Choosy(), [0], []), only=("gemm", 3))
    done = profile(CaseKey(nodeid="t.py::t"), "fake", Plan(), chosen)
    assert choices == [["gemm", "3"]]
    assert json.loads((done.folder / "params.json").read_text())["kernels"] == "gemm"
    with pytest.raises(PerfgateError) as error:
        profile(CaseKey(nodeid="t.py::t"), "fake", Plan(), replace(chosen, profilers=(FakeProfiler(),)))
    assert error.value.code.name == "profile-mode"


def test_two_failures_are_an_error_with_the_log(tmp_path: Path) -> None:
    with pytest.raises(PerfgateError, match=r"(?s)it failed twice; it said:.*CUDA out of memory"):
        profile(CaseKey(nodeid="t.py::t"), "fake", Plan(), tools(tmp_path, FakeProfiler(), [1, 1], []))


def test_a_denied_permission_is_not_tried_again(tmp_path: Path) -> None:
    commands: list[list[str]] = []
    with pytest.raises(PerfgateError, match="ncu-permission"):
        profile(
            CaseKey(nodeid="t.py::t"),
            "fake",
            Plan(),
            tools(tmp_path, FakeProfiler(code="ncu-permission"), [1, 1], commands),
        )
    assert len(commands) == 1


def test_a_mode_that_nothing_has_and_a_tool_that_is_not_here(tmp_path: Path) -> None:
    with pytest.raises(PerfgateError, match="known here: fake"):
        profile(CaseKey(nodeid="t.py::t"), "crystal", Plan(), tools(tmp_path, FakeProfiler(), [], []))
    with pytest.raises(PerfgateError, match="it is not installed"):
        profile(CaseKey(nodeid="t.py::t"), "fake", Plan(), tools(tmp_path, FakeProfiler(usable=False), [], []))
    assert not (tmp_path / ".perfgate").exists()


def test_one_call_has_a_folder_of_its_own_and_is_the_one_that_is_watched(tmp_path: Path) -> None:
    commands: list[list[str]] = []
    key = CaseKey(nodeid="t.py::t[1]", name="bwd")
    done = profile(key, "fake", Plan(), tools(tmp_path, FakeProfiler(), [0], commands))
    assert commands[0][-1] == "bwd"
    assert done.folder.parts[-4:-1] == ("fake", "t.py-t-bwd", "1")


def test_what_the_child_says_of_itself_is_among_the_parameters(tmp_path: Path) -> None:
    facts = [["device", {"name": "H200"}], ["dtype", "bf16"], ["parameters", {"n": "1"}]]
    child = {"outcome": "passed", "entered": 1, "facts": facts}
    done = profile(CaseKey(nodeid="t.py::t[1]"), "fake", Plan(), tools(tmp_path, FakeProfiler(), [0], [], child))
    parameters = json.loads((done.folder / "params.json").read_text())
    assert (parameters["device"]["name"], parameters["dtype"], parameters["parameters"]) == ("H200", "bf16", {"n": "1"})
    assert not (done.folder / "child.json").exists()


@pytest.mark.parametrize(
    ("child", "codes", "says"),
    [
        ({"outcome": "skipped", "text": "no GPU"}, [0], "the test was skipped: no GPU"),
        ({"outcome": "passed", "entered": 0, "calls": ["fwd"]}, [0], "made no call named 'bwd'.*its calls are 'fwd'"),
        ({"outcome": "passed", "entered": 0, "calls": ["", "fwd"]}, [0], "its calls are one without a name, 'fwd'"),
        ({"outcome": "failed", "error": ["profile-tool", "this mode needs a GPU", "rent one"]}, [1], "needs a GPU"),
        ({"outcome": "failed"}, [124], "took over 1800 s"),
    ],
)
def test_what_a_second_try_cannot_fix_is_not_tried_again(
    tmp_path: Path, child: dict[str, object], codes: list[int], says: str
) -> None:
    commands: list[list[str]] = []
    with pytest.raises(PerfgateError, match=says):
        profile(
            CaseKey(nodeid="t.py::t", name="bwd"),
            "fake",
            Plan(),
            tools(tmp_path, FakeProfiler(), codes, commands, child),
        )
    assert len(commands) == 1


def test_a_view_that_has_nothing_to_show_leaves_the_others_alone(tmp_path: Path) -> None:
    def nothing() -> Document:
        raise PerfgateError("profile-mode", "nothing to replay")

    page = Document(title="T", blocks=(Paragraph(text="x"),))
    analysis = Analysis(
        kind="fake", subject="a", metrics=MetricSet(), views={"overview": lambda: page, "replay": nothing}
    )  # fmt: skip
    fake_tools = replace(tools(tmp_path, FakeProfiler(), [0], []), inspect=lambda paths: analysis)
    done = profile(CaseKey(nodeid="t.py::t"), "fake", Plan(), fake_tools)
    verbose = (done.folder / "report-verbose.md").read_text()
    assert "# T" in verbose
    assert "No view `replay`: nothing to replay." in verbose


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


def execute(argv: Sequence[str], log: Path, **options: object) -> int:
    """The child prints, attaches a file, and says with what it was run."""
    del argv, options
    log.write_text("1 passed\n")
    (log.parent / "tiling").mkdir()
    (log.parent / "tiling" / "stage1.json").write_text("[]")
    facts = [["dtype", "bf16"], ["device", "NVIDIA H200"]]
    (log.parent / "child.json").write_text(json.dumps({"outcome": "passed", "entered": 1, "facts": facts}))
    return 0


def test_the_list_is_the_one_of_the_specification() -> None:
    assert tuple(LEFT) == CAPTURES == ("event", "annotation", "ncu", "nsys", "torch", "cupti", "cubin")


@pytest.mark.parametrize(
    "mode", [pytest.param(mode, marks=[pytest.mark.nvcc] if mode == "cubin" else []) for mode in CAPTURES]
)
def test_each_capture_has_its_folder_and_its_files(tmp_path: Path, mode: str) -> None:
    if mode == "cubin" and not has_tools("nvdisasm", "cuobjdump"):
        pytest.skip("nvdisasm and cuobjdump are not installed (extra: ncu)")
    tools = replace(profile_tools(tmp_path), profilers=(Leaves(mode),), execute=execute)
    done = profile(KEY, mode, Plan(), tools)
    assert done.folder.relative_to(tmp_path).parts[:-1] == (
        ".perfgate", "profiles", mode, "t.py-test_gemm", "4096-bf16",
    )  # fmt: skip
    for pattern in sorted({*ALWAYS, LEFT[mode][1], *LEFT[mode][2]}):
        paths = list(done.folder.glob(pattern))
        assert paths, f"no {pattern} among {sorted(str(p.relative_to(done.folder)) for p in done.folder.rglob('*'))}"
        assert all(path.stat().st_size for path in paths)
    params = json.loads((done.folder / "params.json").read_text())
    assert (params["mode"], params["profiler"], params["parameters"], params["dtype"], params["device"]) == (
        mode, "1.2.3", "4096-bf16", "bf16", "NVIDIA H200",
    )  # fmt: skip
    assert "policy" in params["clocks"]
    assert json.loads((done.folder / "metrics.json").read_text())["metrics"]


def test_what_a_limit_asks_for_reaches_the_inspector_of_a_capture(tmp_path: Path) -> None:
    limit = parse_limit("executed(LDG.E, kernel=stage1) >= 1", kinds=by_name())
    case = Case(nodeid=KEY.nodeid, limits=(limit,), plan=Plan(), path="t.py")
    tools = replace(profile_tools(tmp_path), profilers=(Leaves("ncu"),), execute=execute)
    done = profile(KEY, "ncu", Plan(), with_limits(tools, case))
    assert [m.value for m in done.analysis.metrics.find(limit.metric, limit.labels)] == [8.0]
