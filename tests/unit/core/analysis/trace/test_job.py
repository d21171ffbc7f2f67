"""Ranks of a job: joined in any order, on any number of processes, without keeping their traces."""

from __future__ import annotations

import pickle
from dataclasses import replace
from functools import reduce
from operator import or_

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_perfgate.app.inspections import every_view
from pytest_perfgate.core.analysis.trace.job import RankFigures, TraceJob
from pytest_perfgate.core.analysis.trace.ranks import Collective, collective_metrics
from pytest_perfgate.core.render.text import render_text
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.metric import Finding, Metric, MetricSet, labels
from pytest_perfgate.model.values import Dimension
from tests.kineto_file import document, kernel, launch, written
from tests.kineto_job import job

SPANS = st.tuples(st.integers(0, 500), st.integers(1, 500), st.none() | st.integers(1, 9999))


def rank_of(number, spans):
    parts = tuple(
        Collective(kind="AllReduce" if n % 2 else "Broadcast", group="g", ordinal=n // 2, rank=number, start=start, length=length, size=size)
        for n, (start, length, size) in enumerate(spans)
    )  # fmt: skip
    metric = Metric(name="idle", value=number, dimension=Dimension.FRACTION, labels=labels(rank=number))
    return RankFigures(
        rank=number,
        path=f"rank{number}",
        window="whole",
        metrics=MetricSet(metrics=(metric,)),
        lines=(),
        collectives=parts,
    )


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])  # a busy machine is no fault
@given(st.lists(st.lists(SPANS, max_size=5), min_size=1, max_size=6), st.data())
def test_joining_is_associative_and_knows_no_order(ranks, data):
    parts = [TraceJob(ranks=(rank_of(n, spans),)) for n, spans in enumerate(ranks)]
    whole = reduce(or_, parts)
    shuffled = data.draw(st.permutations(parts))
    cut = data.draw(st.integers(0, len(parts)))
    again = reduce(or_, shuffled[:cut], TraceJob()) | reduce(or_, shuffled[cut:], TraceJob())
    assert again == whole
    assert collective_metrics(again.meeting) == collective_metrics(whole.meeting)
    assert [m.value for m in whole.metrics.find("idle")] == list(range(len(parts)))


def test_a_rank_is_joined_once():
    with pytest.raises(PerfgateError, match="rank 3 is claimed by rank3 and rank3"):
        TraceJob(ranks=(rank_of(3, []),)) | TraceJob(ranks=(rank_of(3, []),))


def test_ranks_in_one_file_or_several_say_the_same(kineto, tmp_path):
    import json

    paths = job(tmp_path, ranks=3)
    events = []
    for number, path in enumerate(paths):
        for event in json.loads(path.read_text())["traceEvents"]:
            args = {**event["args"], "rank": number}
            events.append({**event, "args": args, "pid": f"{number}-{event['pid']}"})
    fused = tmp_path / "fused.json"
    fused.write_text(json.dumps(document(events)))
    one, several = kineto.inspect([fused], {}), kineto.inspect(paths, {})
    for name in ("overlap", "comm_wait", "straggler", "comm_latency", "op_time"):
        assert one.metrics.find(name) == several.metrics.find(name), name
    for view in ("report", "ops", "steps", "ranks"):
        assert render_text(several.views[view]())
    assert len(several.metrics.find("overlap")) == 3


@pytest.mark.parametrize("kind", ["fair", "rough"])
def test_a_written_report_of_many_ranks_begins_with_all_of_them(kineto, tmp_path, kind):
    page = kineto.inspect(job(tmp_path), {}).views[kind]()
    text = render_text(page)
    assert page.title.startswith("2 ranks: standalone analysis")
    assert page.blocks[0].title == "All ranks"
    assert "Rank 1 waits least and so arrives last; rank 0 waits longest" in page.blocks[0].blocks[0].text
    assert text.index("straggler") < text.index("What follows is of rank 0 alone")


def test_the_first_sentence_of_many_ranks_is_the_answer(kineto, tmp_path):
    first, *_ = kineto.inspect(job(tmp_path), {}).views["report"]().blocks
    assert first.text.startswith("Computation fills ")
    assert " of the windows, exposed communication " in first.text
    assert "Rank 1 waits least and so arrives last; rank 0 waits longest for others, " in first.text
    alone = [written(tmp_path / f"alone{n}.json", [launch(0, 1), kernel("k", 5, 10, correlation=1)]) for n in range(2)]
    text, *_ = kineto.inspect(alone, {}).views["report"]().blocks
    assert text.text == "Computation fills 100 % of the windows, exposed communication 0 %, idle time 0 %."


def test_the_order_in_which_files_come_back_does_not_matter(kineto, tmp_path, monkeypatch):
    paths = job(tmp_path, ranks=3)
    monkeypatch.setattr(kineto, "_spread", lambda _: lambda look, files: [look(file) for file in reversed(files)])
    backwards = kineto.inspect(paths, {"workers": "elsewhere"})
    monkeypatch.undo()
    assert backwards.metrics == kineto.inspect(paths, {}).metrics


def test_what_travels_to_another_process_survives_it(kineto, tmp_path, monkeypatch):
    paths = job(tmp_path, ranks=2)

    def far(_):
        return lambda look, files: [pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(look))(f))) for f in files]

    monkeypatch.setattr(kineto, "_spread", far)
    away = kineto.inspect(paths, {}).metrics
    monkeypatch.undo()
    assert away == kineto.inspect(paths, {}).metrics


def test_an_error_crosses_processes_whole():
    error = PerfgateError("trace-empty", "no events", place="a.json", fix="profile more")
    assert pickle.loads(pickle.dumps(error)).text() == error.text()


def test_files_that_name_no_rank_are_numbered(kineto, tmp_path):
    events = [launch(0, 1), kernel("a", 5, 10, correlation=1)]
    paths = [written(tmp_path / f"{name}.json", events) for name in "ab"]
    assert len(kineto.inspect(paths, {}).metrics.find("idle")) == 2


def test_a_file_is_given_once(kineto, tmp_path):
    path = written(tmp_path / "a.json", [launch(0, 1), kernel("a", 5, 10, correlation=1)])
    with pytest.raises(PerfgateError, match="is given twice"):
        kineto.inspect([path, path], {})
    (tmp_path / "b.json").symlink_to(path)
    with pytest.raises(PerfgateError, match="are one file"):
        kineto.inspect([path, tmp_path / "b.json"], {})


def test_the_ranks_say_how_much_is_linked(kineto, tmp_path):
    whole = [launch(0, 1), kernel("a", 5, 10, correlation=1)]
    paths = [
        written(tmp_path / "a.json", whole, distributedInfo={"rank": 0}),
        written(tmp_path / "b.json", [*whole, kernel("b", 20, 10, correlation=99)], distributedInfo={"rank": 1}),
    ]
    text = render_text(kineto.inspect(paths, {}).views["report"]())
    assert "Limits are INVALID: rank 1: only 50.0 % of the GPU time is linked to a launch" in text
    assert "coverage" in text
    assert [line.split()[-2:] for line in text.splitlines() if line.startswith(("0 ", "1 "))][:2] == [
        ["100", "%"],
        ["50", "%"],
    ]


def test_a_file_of_several_ranks_is_read_once_for_all_views(kineto, tmp_path, monkeypatch) -> None:
    events = [
        event
        for rank in (0, 1)
        for event in (
            launch(0, rank + 1, pid=rank + 1, rank=rank),
            kernel("k", 5, 10, correlation=rank + 1, device=rank, rank=rank),
        )
    ]
    path = written(tmp_path / "t.json", events)
    reads, read = [], kineto._read
    monkeypatch.setattr(kineto, "_read", lambda one: reads.append(one) or read(one))
    analysis = kineto.inspect([path], {})
    every_view(analysis)
    assert reads == [path]


def test_ranks_of_another_class_do_not_have_the_like() -> None:
    classes = {0: "communication", 1: "communication", 2: "latency"}
    ranks = [
        replace(rank_of(rank, []), findings=(Finding(title="bound", detail="So.", trigger=f"class={name}"),))
        for rank, name in classes.items()
    ]
    details = {finding.trigger: finding.detail for finding in TraceJob.of(ranks).findings}
    assert details == {"class=communication": "So. 1 more rank has the same.", "class=latency": "So."}


def test_advice_that_follows_from_a_class_stands_beside_it() -> None:
    findings = (
        Finding(title="The window is communication-bound", trigger="class=communication"),
        Finding(title="Overlap", trigger="class=communication", advice="overlap it"),
    )
    ranks = tuple(replace(rank_of(number, []), findings=findings) for number in (0, 1))
    assert [finding.advice for finding in TraceJob(ranks=ranks).findings] == ["", "overlap it"]


@pytest.mark.parametrize(
    ("name", "worst"),
    [("idle", 2), ("window_coverage", 0), ("bandwidth_fraction", 0), ("intensity", 0), ("sequence", 0)],
)
def test_the_rank_that_is_named_is_the_worst_one(name, worst) -> None:
    ranks = [replace(rank_of(n, []), findings=(Finding(title="This", trigger=f"{name}={n + 1}"),)) for n in range(3)]
    (finding,) = TraceJob.of(ranks).findings
    assert finding.title == f"Rank {worst}: This"
