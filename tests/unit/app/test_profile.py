"""The use case with fakes of every part."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_perfgate.adapters.stores.profiles import ProfileFolders
from pytest_perfgate.app.profile import ProfileTools, profile
from pytest_perfgate.model.device import Availability
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.measurement import Artifact
from pytest_perfgate.model.metric import Analysis, Document, MetricSet, Paragraph
from pytest_perfgate.model.plan import CaseKey, Plan
from pytest_perfgate.model.protocol import parse_assignment


class FakeProfiler:
    name = "fake"

    def __init__(self, usable: bool = True, code: str = "") -> None:
        self.usable, self.code = usable, code

    def availability(self) -> Availability:
        return Availability(name=self.name, usable=self.usable, why="it is not installed", mend="install it")

    def command(self, argv: Sequence[str], out: Path, plan: Plan) -> list[str]:
        return ["fake", *argv]

    def region(self, out: Path) -> nullcontext[None]:
        return nullcontext()

    def artifacts(self, out: Path) -> tuple[Artifact, ...]:
        if self.code:
            raise PerfgateError(self.code, "said so")
        return (Artifact(kind="fake", path=str(out / "a")),)


def tools(
    root: Path, profiler: FakeProfiler, codes: list[int], seen: list[list[str]], child: dict[str, object] | None = None
) -> ProfileTools:
    def execute(argv, log, *, extra, cwd, timeout_s) -> int:  # type: ignore[no-untyped-def]
        assigned = parse_assignment(extra["PERFGATE_PROFILE"])
        seen.append([*argv, assigned.mode, str(assigned.call)])
        log.write_text("collected 1 item\nCUDA out of memory\n")
        if child is not None:
            (log.parent / "child.json").write_text(json.dumps(child))
        return codes.pop(0)

    told = Analysis(
        kind="fake",
        subject="a",
        metrics=MetricSet(),
        views={"overview": lambda: Document(title="T", blocks=(Paragraph(text="x"),))},
    )
    return ProfileTools(
        profilers=(profiler,),
        folders=ProfileFolders(root),
        execute=execute,
        inspect=lambda paths: told,
        command=lambda nodeid, assigned: ("python", nodeid),
        root=root,
    )


def test_a_profile_that_works(tmp_path: Path) -> None:
    seen: list[list[str]] = []
    done = profile(CaseKey(nodeid="t.py::t[1]"), "fake", Plan(), tools(tmp_path, FakeProfiler(), [0], seen))
    assert not done.again
    assert seen[0] == ["fake", "python", "t.py::t[1]", "fake", "None"]
    assert sorted(p.name for p in done.folder.iterdir()) == [
        "metrics.json", "params.json", "profiler.log", "report.md",
    ]  # fmt: skip
    assert done.folder.parts[-4:-1] == ("fake", "t.py-t", "1")


def test_a_failure_right_after_autotuning_is_tried_once_more_and_said(tmp_path: Path) -> None:
    done = profile(CaseKey(nodeid="t.py::t"), "fake", Plan(), tools(tmp_path, FakeProfiler(), [1, 0], []))
    assert done.again
    assert '"second_try": true' in (done.folder / "params.json").read_text()


def test_two_failures_are_an_error_with_the_log(tmp_path: Path) -> None:
    with pytest.raises(PerfgateError, match=r"(?s)it failed twice; it said:.*CUDA out of memory"):
        profile(CaseKey(nodeid="t.py::t"), "fake", Plan(), tools(tmp_path, FakeProfiler(), [1, 1], []))


def test_a_denied_permission_is_not_tried_again(tmp_path: Path) -> None:
    seen: list[list[str]] = []
    with pytest.raises(PerfgateError, match="ncu-permission"):
        profile(
            CaseKey(nodeid="t.py::t"),
            "fake",
            Plan(),
            tools(tmp_path, FakeProfiler(code="ncu-permission"), [1, 1], seen),
        )
    assert len(seen) == 1


def test_a_mode_that_nothing_has_and_a_tool_that_is_not_here(tmp_path: Path) -> None:
    with pytest.raises(PerfgateError, match="known here: fake"):
        profile(CaseKey(nodeid="t.py::t"), "crystal", Plan(), tools(tmp_path, FakeProfiler(), [], []))
    with pytest.raises(PerfgateError, match="it is not installed"):
        profile(CaseKey(nodeid="t.py::t"), "fake", Plan(), tools(tmp_path, FakeProfiler(usable=False), [], []))
    assert not (tmp_path / ".perfgate").exists()


def test_one_call_has_a_folder_of_its_own_and_is_the_one_that_is_watched(tmp_path: Path) -> None:
    seen: list[list[str]] = []
    key = CaseKey(nodeid="t.py::t[1]", name="bwd")
    done = profile(key, "fake", Plan(), tools(tmp_path, FakeProfiler(), [0], seen))
    assert seen[0][-1] == "bwd"
    assert done.folder.parts[-4:-1] == ("fake", "t.py-t-bwd", "1")


def test_what_the_child_says_of_itself_is_among_the_parameters(tmp_path: Path) -> None:
    facts = [["device", {"name": "H200"}], ["dtype", "bf16"], ["parameters", {"n": "1"}]]
    child = {"outcome": "passed", "entered": 1, "facts": facts}
    done = profile(CaseKey(nodeid="t.py::t[1]"), "fake", Plan(), tools(tmp_path, FakeProfiler(), [0], [], child))
    said = json.loads((done.folder / "params.json").read_text())
    assert (said["device"]["name"], said["dtype"], said["parameters"]) == ("H200", "bf16", {"n": "1"})
    assert not (done.folder / "child.json").exists()


@pytest.mark.parametrize(
    ("child", "codes", "says"),
    [
        ({"outcome": "skipped", "text": "no GPU"}, [0], "the test was skipped: no GPU"),
        ({"outcome": "passed", "entered": 0, "seen": ["fwd"]}, [0], "made no call named 'bwd'.*its calls are 'fwd'"),
        ({"outcome": "failed", "error": ["profile-tool", "this mode needs a GPU", "rent one"]}, [1], "needs a GPU"),
        ({"outcome": "failed"}, [124], "took over 1800 s"),
    ],
)
def test_what_a_second_try_cannot_mend_is_not_tried_again(
    tmp_path: Path, child: dict[str, object], codes: list[int], says: str
) -> None:
    seen: list[list[str]] = []
    with pytest.raises(PerfgateError, match=says):
        profile(
            CaseKey(nodeid="t.py::t", name="bwd"), "fake", Plan(), tools(tmp_path, FakeProfiler(), codes, seen, child)
        )
    assert len(seen) == 1


def test_a_view_that_has_nothing_to_show_leaves_the_others_alone(tmp_path: Path) -> None:
    def nothing() -> Document:
        raise PerfgateError("profile-mode", "nothing to replay")

    page = Document(title="T", blocks=(Paragraph(text="x"),))
    told = Analysis(
        kind="fake", subject="a", metrics=MetricSet(), views={"overview": lambda: page, "replay": nothing}
    )  # fmt: skip
    given = replace(tools(tmp_path, FakeProfiler(), [0], []), inspect=lambda paths: told)
    done = profile(CaseKey(nodeid="t.py::t"), "fake", Plan(), given)
    verbose = (done.folder / "report-verbose.md").read_text()
    assert "# T" in verbose
    assert "No view `replay`: nothing to replay." in verbose
