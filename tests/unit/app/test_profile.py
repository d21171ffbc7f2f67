"""The use case with fakes of every part."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

import pytest

from pytest_perfgate.adapters.stores.profiles import ProfileFolders
from pytest_perfgate.app.profile import ProfileTools, profile
from pytest_perfgate.model.analysis import Analysis
from pytest_perfgate.model.device import Availability
from pytest_perfgate.model.document import Document, Paragraph
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.measurement import Artifact
from pytest_perfgate.model.metric import MetricSet
from pytest_perfgate.model.plan import Plan


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


def tools(root: Path, profiler: FakeProfiler, codes: list[int], seen: list[list[str]]) -> ProfileTools:
    def execute(argv, log, *, extra, cwd, timeout_s) -> int:  # type: ignore[no-untyped-def]
        seen.append([*argv, extra["PERFGATE_PROFILE"].partition(":")[0]])
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
        interpreter=("python",),
        root=root,
    )


def test_a_profile_that_works(tmp_path: Path) -> None:
    seen: list[list[str]] = []
    done = profile("t.py::t[1]", "fake", Plan(), tools(tmp_path, FakeProfiler(), [0], seen))
    assert not done.again
    assert seen[0][:3] == ["fake", "python", "t.py::t[1]"]
    assert seen[0][-1] == "fake"
    assert sorted(p.name for p in done.folder.iterdir()) == ["metrics.json", "params.json", "report.md"]
    assert done.folder.parts[-4:-1] == ("fake", "t.py-t", "1")


def test_a_failure_right_after_autotuning_is_tried_once_more_and_said(tmp_path: Path) -> None:
    done = profile("t.py::t", "fake", Plan(), tools(tmp_path, FakeProfiler(), [1, 0], []))
    assert done.again
    assert '"second_try": true' in (done.folder / "params.json").read_text()


def test_two_failures_are_an_error_with_the_log(tmp_path: Path) -> None:
    with pytest.raises(PerfgateError, match="it failed twice"):
        profile("t.py::t", "fake", Plan(), tools(tmp_path, FakeProfiler(), [1, 1], []))


def test_a_denied_permission_is_not_tried_again(tmp_path: Path) -> None:
    seen: list[list[str]] = []
    with pytest.raises(PerfgateError, match="ncu-permission"):
        profile("t.py::t", "fake", Plan(), tools(tmp_path, FakeProfiler(code="ncu-permission"), [1, 1], seen))
    assert len(seen) == 1


def test_a_mode_that_nothing_has_and_a_tool_that_is_not_here(tmp_path: Path) -> None:
    with pytest.raises(PerfgateError, match="known here: fake"):
        profile("t.py::t", "crystal", Plan(), tools(tmp_path, FakeProfiler(), [], []))
    with pytest.raises(PerfgateError, match="it is not installed"):
        profile("t.py::t", "fake", Plan(), tools(tmp_path, FakeProfiler(usable=False), [], []))
    assert not (tmp_path / ".perfgate").exists()
