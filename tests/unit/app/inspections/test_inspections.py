"""Captures joined to what was timed, with and without the instrument."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_perfgate.app.conclude import capture_notes
from pytest_perfgate.app.inspections import AnonymousInspector, every_view, trusted, view, with_captures
from pytest_perfgate.app.profile import Profiled
from pytest_perfgate.core.judge.context import JudgeContext
from pytest_perfgate.core.judge.judge import judge
from pytest_perfgate.core.judge.policy import CI, LOCAL
from pytest_perfgate.core.render.block import render_block
from pytest_perfgate.core.render.text import render_text
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.measurement import Artifact, Identity
from pytest_perfgate.model.metric import (
    Analysis,
    Bullets,
    Document,
    Metric,
    MetricSet,
    Paragraph,
    Picture,
    Problem,
    Section,
    Table,
    labels,
)
from pytest_perfgate.model.plan import Case, Effect, Outcome, Plan
from pytest_perfgate.model.privacy import Names
from pytest_perfgate.model.protocol import Capture, CaseResult
from pytest_perfgate.model.values import Dimension
from tests.unit.core.judge.bench import HOST, KEY, KINDS, limit, measured, samples

CASE = Case(
    nodeid=KEY.nodeid, limits=(limit("overlap >= 80%"), limit("time <= 1s")), plan=Plan(captures=("event", "nsys"))
)
TIMED = Capture(
    key=KEY, samples=(samples(1e6),), device=HOST, identity=Identity(device=HOST.key, timer="events"), limits=()
)


def result(*rounds: tuple[Capture, ...], case: Case = CASE, outcome: str = "passed") -> CaseResult:
    return CaseResult(case=case, captures=rounds, outcome=outcome)


def analysis(value: float = 0.5, problems: tuple[Problem, ...] = ()) -> Analysis:
    metric = Metric(name="overlap", value=value, dimension=Dimension.FRACTION, labels=labels(rank=0))
    return Analysis(
        kind="nsys",
        subject="a",
        metrics=MetricSet(metrics=(metric,)),
        views={},
        problems=problems,
        window="window 0..9",
    )


def taking(problems: tuple[Problem, ...] = (), again: bool = False):
    def take(case: Case, one: Capture, mode: str) -> Profiled:
        artifacts = (Artifact(kind=mode, path="a.sqlite"),)
        return Profiled(
            mode=mode, folder=Path("kept"), artifacts=artifacts, analysis=analysis(problems=problems), again=again,
            version="2024.6",
        )  # fmt: skip

    return take


def missing(case: Case, one: Capture, mode: str) -> Profiled:
    raise PerfgateError("profile-tool", "nsys is not on the PATH", fix="install Nsight Systems")


def judged(case_result: CaseResult, policy=LOCAL):
    last = case_result.captures[-1][0]
    measurement = replace(
        measured(1e6), metrics=last.metrics, findings=last.findings, processes=last.samples, key=last.key
    )
    return judge(measurement, CASE.limits, baseline=None, context=JudgeContext(kinds=KINDS, policy=policy))


def test_the_last_round_carries_the_figures_the_file_and_their_source() -> None:
    case_result = with_captures(result((TIMED,), (TIMED,)), taking(again=True))
    first, last = case_result.captures
    assert first == (TIMED,)
    assert last[0].samples == TIMED.samples, "the timing stays as it was"
    assert [artifact.path for artifact in last[0].artifacts] == ["a.sqlite"]
    block = " ".join(render_block(judged(case_result)).split())
    assert "overlap(rank=0) 50 % limit >= 80 %" in block
    assert "seen captured by nsys 2024.6: window 0..9; kept in kept; the first try failed right after" in block


def test_what_a_capture_cannot_vouch_for_is_invalid_and_leaves_the_time_alone() -> None:
    thin = Problem(code="coverage", what="only 20 % of the time is explained")
    report = judged(with_captures(result((TIMED,)), taking((thin,))))
    assert {v.limit.metric: v.outcome for v in report.verdicts} == {
        "overlap": Outcome.INVALID, "time": Outcome.PASSED,
    }  # fmt: skip
    block = " ".join(render_block(report).split())
    assert "overlap not to be trusted" in block
    assert "only 20 % of the time is explained [coverage]" in block


def test_a_missing_instrument_is_not_measured_and_fails_in_ci() -> None:
    case_result = with_captures(result((TIMED,)), missing)
    report = judged(case_result, CI)
    by_metric = {v.limit.metric: v for v in report.verdicts}
    assert by_metric["time"].outcome is Outcome.PASSED
    assert by_metric["overlap"].outcome is Outcome.NOT_MEASURED
    assert by_metric["overlap"].effect is Effect.FAIL
    assert by_metric["overlap"].next == ("install Nsight Systems",)
    assert "capture nsys was not taken: nsys is not on the PATH" in by_metric["overlap"].sentence
    assert not capture_notes([report], CI), "the limit says so already"


def test_a_capture_that_no_limit_needs_is_a_note_that_fails_in_ci() -> None:
    report = judged(with_captures(result((TIMED,)), missing))
    bare = replace(report, verdicts=tuple(v for v in report.verdicts if v.limit.metric == "time"))
    (note,) = capture_notes([bare], CI)
    assert note.effect is Effect.FAIL
    assert "nsys is not on the PATH" in note.names[0]
    assert capture_notes([bare], LOCAL)[0].effect is Effect.WARN


def test_nothing_is_taken_of_a_test_that_failed_or_brought_its_own() -> None:
    read = replace(TIMED, identity=Identity(device=HOST.key, timer="read"))
    for untouched in (result((TIMED,), outcome="failed"), result(), result((read,))):
        assert with_captures(untouched, missing) == untouched
    plain = replace(CASE, plan=Plan(captures=("event", "cubin")))
    assert with_captures(result((TIMED,), case=plain), missing) == result((TIMED,), case=plain)


def test_an_analysis_without_problems_is_taken_as_it_is() -> None:
    assert trusted(analysis()) == analysis().metrics


def test_all_views_are_those_that_apply_with_the_reasons_of_the_others() -> None:
    def silent() -> Document:
        raise PerfgateError("trace-no-operation", "no operation is large and slow enough")

    table = Document(title="Table", blocks=())
    views = every_view(
        Analysis(kind="toy", subject="x", metrics=MetricSet(), views={"table": lambda: table, "replay": silent})
    )
    assert views["table"] is table
    assert "replay: no operation is large and slow enough" in render_text(views["not applicable"])
    with pytest.raises(PerfgateError, match="no operation"):
        every_view(Analysis(kind="toy", subject="x", metrics=MetricSet(), views={"replay": silent}))


class Reader:
    """An inspector that counts work."""

    name, views, options = "made", ("report",), (("top", "how many"),)
    operators: dict = {}

    def recognises(self, path, head) -> bool:
        return head == b"mine"


def test_an_inspector_is_made_with_the_first_file_that_may_be_its_own(tmp_path) -> None:
    from pytest_perfgate.wiring.built_ins import Deferred

    made = []
    deferred = Deferred("made", lambda: made.append(1) or Reader(), lambda path, _: path.suffix != ".json")
    deferred.operators = {"aten::mine": len}
    assert not deferred.recognises(tmp_path / "a.json", b"mine")
    assert made == []
    assert deferred.recognises(tmp_path / "a.bin", b"mine")
    assert (deferred.views, deferred.options) == (("report",), (("top", "how many"),))
    assert deferred.inspector.operators == {"aten::mine": len}
    assert made == [1]


@pytest.mark.parametrize(
    ("name", "head", "maybe"),
    [
        ("t.json", b' {"traceEvents"', False),
        ("t.json", b"[{}", False),
        ("t.json.gz", b"\x1f\x8b\x08", False),
        ("t.json", b"SQLite format 3", True),
        ("t.sqlite", b"SQLite format 3", True),
        ("t.nsys-rep", b"{", True),
        ("t.csv", b'"ID","Kernel Name"', False),
        ("t.csv", b"SQLite format 3", True),
        ("t.cubin", b"\x7fELF", False),
    ],
)
def test_json_is_no_export_of_nsys(tmp_path, name, head, maybe) -> None:
    from pytest_perfgate.wiring.built_ins import BuiltIns

    nsys = BuiltIns().pytest_perfgate_inspectors()[0]
    assert nsys.name == "nsys"
    nsys.recognises(tmp_path / name, head)
    assert ("inspector" in vars(nsys)) is maybe


@pytest.mark.parametrize(
    ("name", "head", "expected"),
    [
        ("t.csv", b'"ID","Kernel Name","Grid Size"', ["ncu"]),
        ("t.csv", b"ptxas info    : 0 bytes gmem", ["cubin"]),
        ("t.csv", b'{"traceEvents": [', ["nsys", "kineto"]),
        ("t.cubin", b"\x7fELF", ["cubin"]),
        ("t", b"NVR\0", ["ncu"]),
    ],
)
def test_a_file_makes_no_inspector_of_another_kind(tmp_path, name, head, expected) -> None:
    from pytest_perfgate.wiring.built_ins import BuiltIns

    inspectors = BuiltIns().pytest_perfgate_inspectors()
    assert any(one.recognises(tmp_path / name, head) for one in inspectors)
    assert [one.name for one in inspectors if "inspector" in vars(one)] == expected


class Telling:
    """An inspector of a file that names people; its views are built one by one."""

    name, views, options = "made", ("report", "rest"), ()

    def recognises(self, path: Path, head: bytes) -> bool:
        return True

    def inspect(self, paths: Sequence[Path], options: Mapping[str, str]) -> Analysis:
        op = Metric(
            name="op_time", value=1.0, dimension=Dimension.TIME, labels=labels(op="/home/ann.b/repo/k.py(3): f")
        )
        rows = (("/srv/repo/src/k.cu", 1.0), ("ann.b@node7", None), ("annex", 2))
        report = Document(title="r", blocks=(Section(title="s", blocks=(Table(columns=(), rows=rows),)),))
        rest = Document(title="ran on node7", blocks=(Paragraph(text="by ann.b"), Bullets(items=("channel.b",))))
        views = {"report": lambda: report, "rest": lambda: rest}
        files = {"k.cu": lambda: "// /Users/bob/k.cu\n"}
        pictures = {"line": lambda: Picture(svg="<svg><text>/home/ann.b/k.cu</text></svg>", alt="of ann.b")}
        return Analysis(
            kind="made", subject="k", metrics=MetricSet(metrics=(op,)), views=views, files=files, pictures=pictures
        )

    def compare(self, before: Sequence[Path], after: Sequence[Path], options: Mapping[str, str]) -> Analysis:
        return self.inspect(after, options)


def test_no_answer_of_an_inspector_names_a_person_or_a_machine() -> None:
    shareable = AnonymousInspector(Telling(), lambda _: Names(roots=frozenset({"/srv/repo"})))
    for answer in (shareable.inspect([], {}), AnonymousInspector(Telling(), lambda _: Names()).compare([], [], {})):
        assert answer.metrics.metrics[0].labels == (("op", "~/repo/k.py(3): f"),)
        (section,) = answer.views["report"]().blocks
        assert section.blocks[0].rows[1:] == (("[user]@[host]", None), ("annex", 2))
        rest = answer.views["rest"]()
        assert (rest.title, rest.blocks[0].text, rest.blocks[1].items) == ("ran on [host]", "by [user]", ("channel.b",))
        assert answer.files["k.cu"]() == "// ~/k.cu\n"
        picture = answer.pictures["line"]()
        assert (picture.svg, picture.alt) == ("<svg><text>~/k.cu</text></svg>", "of [user]")
    (section,) = shareable.inspect([], {}).views["report"]().blocks
    assert section.blocks[0].rows[0] == ("src/k.cu", 1.0), "what lies in the project is named from there"


def test_a_file_that_is_given_twice_counts_once_or_not_at_all() -> None:
    shareable = AnonymousInspector(Telling(), lambda _: Names())
    with pytest.raises(PerfgateError, match="is given twice") as caught:
        shareable.inspect([Path("k.csv"), Path("j.csv"), Path("k.csv")], {})
    assert caught.value.code.name == "artifact-mixed"
    assert shareable.compare([Path("k.csv")], [Path("k.csv")], {}).subject == "k", "a file may be held against itself"


def test_a_view_that_fills_the_memory_is_an_error_about_its_file() -> None:
    class Filling(Telling):
        def inspect(self, paths: Sequence[Path], options: Mapping[str, str]) -> Analysis:
            return replace(super().inspect(paths, options), views={"report": self.full})

        def full(self) -> Document:
            raise MemoryError

    with pytest.raises(PerfgateError, match="the memory is full") as caught:
        AnonymousInspector(Filling(), lambda _: Names()).inspect([Path("k.csv")], {}).views["report"]()
    assert (caught.value.code.name, caught.value.place) == ("trace-memory", "k.csv")


@pytest.mark.parametrize(("own", "other"), [("report", "analysis"), ("analysis", "report")])
def test_the_report_in_four_sections_has_both_of_its_names(own: str, other: str) -> None:
    page = Document(title="four sections", blocks=())
    one = replace(
        analysis(),
        views={"overview": lambda: Document(title="x", blocks=()), own: lambda: page},
        reports={"report": own},
    )
    assert view(one, own) is view(one, other) is page
    with pytest.raises(PerfgateError, match="have no view 'analysis'"):
        view(replace(one, reports={}, views={"overview": lambda: page}), "analysis")
