"""What holds the window of a rank back, and each of its stages; windows that leave most of a capture out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from pytest_perfgate.core.analysis import intervals
from pytest_perfgate.core.analysis.classify import THRESHOLDS, Bottleneck, Classification, Signals, classify
from pytest_perfgate.core.analysis.decisions import recommendations
from pytest_perfgate.core.analysis.nsys.metrics import is_launch
from pytest_perfgate.core.render.words import quantity
from pytest_perfgate.model.metric import Finding, Severity
from pytest_perfgate.model.nsys import Job, RankResult
from pytest_perfgate.model.values import Dimension

HALF = 0.5
"""The part of a capture under which its windows say little of it."""
_CLOSE_NS = 10_000
_HELD = (Bottleneck.LAUNCH, Bottleneck.COMMUNICATION, Bottleneck.SYNCHRONISATION)


def rank_class(result: RankResult) -> Classification:
    """The class of a rank's window, with the numbers that it rests on; an export has no counters of a roof."""
    time, window = result.time, max(result.time.window_ns, 1)
    launching = sum(row.total_ns for row in result.api if is_launch(row.name))
    return classify(
        Signals(
            exposed=time.exposed_comm_ns / window,
            idle=time.idle_ns / window,
            launch_share=launching / window if result.api else None,
            sync=result.sync_ns / window if result.sync_ns is not None else None,
            kernel_ns=_train(result),
        )
    )


def _train(result: RankResult) -> float | None:
    compute = np.flatnonzero(~result.lane.talks)
    return intervals.train(
        result.lane.kernels.start[compute], result.lane.kernels.end[compute], _CLOSE_NS, result.lane.window.length
    )


def stage_class(result: RankResult, stage: str) -> str:
    """Whether a stage waits for its communication: exposed time over that and the computation of the stage."""
    exposed = sum(row.exposed_ns for row in result.overlaps if row.stage == stage)
    spent = exposed + dict(result.compute).get(stage, 0)
    share = exposed / spent if spent else 0.0
    return Bottleneck.COMMUNICATION.value if share > THRESHOLDS.exposed else ""


def class_findings(ranks: Sequence[RankResult]) -> Iterator[Finding]:
    """One finding for the ranks of each class, and the advice that it triggers."""
    classes = [(result, rank_class(result)) for result in ranks if len(result.lane.kernels)]
    for held in dict.fromkeys(found.bottleneck for _, found in classes):
        mine = [(result, found) for result, found in classes if found.bottleneck is held]
        if held is Bottleneck.NOT_COLLECTED:
            continue
        names, (_, first) = ", ".join(result.rank.name for result, _ in mine), mine[0]
        yield Finding(
            title=f"The window of rank {names} is {first.short}",
            detail=f"{', '.join(first.evidence)}."
            if len(mine) == 1
            else f"Rank {mine[0][0].rank.name}: {', '.join(first.evidence)}.",
            trigger=f"class={held.value}",
            severity=Severity.WARNING if held in _HELD else Severity.NOTE,
        )
        if held in _HELD:
            yield from recommendations({"class": held.value})


def class_sentences(ranks: Sequence[RankResult]) -> Iterator[str]:
    """What limits the windows, and the stages that wait for their communication."""
    for result in ranks:
        found = rank_class(result) if len(result.lane.kernels) else None
        if found is not None and found.bottleneck is not Bottleneck.NOT_COLLECTED:
            yield f"The window of rank {result.rank.name} is {found.sentence}."
    stages = [
        f"{row.stage} of rank {result.rank.name}"
        for result in ranks
        for row in result.overlaps
        if not row.outside and stage_class(result, row.stage)
    ]
    if stages:
        yield f"Communication-bound stages: {', '.join(stages)}."


def coverage_findings(job: Job) -> Iterator[Finding]:
    """Windows that leave most of a capture out: what happens between them is in no figure."""
    for result in job.ranks:
        window = result.lane.window
        if window.covers is None or window.covers >= HALF:
            continue
        apart = ""
        if window.apart is not None:
            apart = (
                f" A range is {quantity(window.length, Dimension.TIME)} long, and the next one starts "
                f"{quantity(window.apart, Dimension.TIME)} after it."
            )
        yield Finding(
            title=f"The windows of rank {result.rank.name} cover {window.covers:.0%} of its capture",
            detail=f"What happens between them, idle time above all, is in no figure of a window.{apart}",
            trigger=f"window_coverage={window.covers:.3f}",
            advice="look at the whole capture too: --start and --end, or limit step_to_step and window_coverage",
            severity=Severity.WARNING,
        )
