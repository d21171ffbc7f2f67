"""What an accepted line says: the figures of a sitting, and the decision of whoever signed it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from pytest_perfgate.core.gate.clocks import limited
from pytest_perfgate.core.gate.levels import scatter_of
from pytest_perfgate.core.gate.surroundings import surroundings
from pytest_perfgate.model.baseline import DIRTY, Baseline, Sitting, short_commit
from pytest_perfgate.model.measurement import Measurement
from pytest_perfgate.model.metric import Metric
from pytest_perfgate.model.values import value


@value
class Signature:
    """Who accepts, when, from which commit, why and until when."""

    who: str = ""
    when: str = ""
    why: str = ""
    commit: str = ""
    expires: str = ""
    started: str = ""
    """When the run that is accepted began; it tells one sitting from another."""
    named: bool = False
    """Whether the case was named itself: an end is then meant for it, though its line had none."""


def line_of(measurement: Measurement, time: Metric, sittings: Sequence[Sitting], signature: Signature) -> Baseline:
    scatter, count = scatter_of(sittings, time.value)
    return Baseline(
        key=measurement.key,
        device=measurement.device.key,
        time=time.value,
        scatter=scatter,
        sittings=max(1, count),
        commit=short_commit(signature.commit),
        who=signature.who,
        when=signature.when,
        why=signature.why,
        expires=signature.expires,
        identity=measurement.identity,
        surroundings=surroundings(measurement),
        limited=bool(limited(measurement.processes)),
    )


def with_sitting(before: Baseline, time: float, measurement: Measurement, signature: Signature) -> Baseline:
    """The mean over one sitting more, with the scatter that it brings."""
    n, step = before.sittings, math.log(time / before.time)
    variance = ((n - 1) * before.scatter**2 + step**2 * n / (n + 1)) / n
    after = replace(
        before,
        time=before.time * math.exp(step / (n + 1)),
        scatter=math.sqrt(variance),
        sittings=n + 1,
        blind=math.expm1(math.log1p(before.blind) * n / (n + 1)),
        commit=_commit(before, signature),
        identity=before.identity or measurement.identity,
        surroundings=surroundings(measurement),
        counted=max(signature.started, before.counted),
    )
    return carried(after, before, signature)


def carried(line: Baseline, before: Baseline, signature: Signature) -> Baseline:
    """A line that is no new decision: its end stays, and its reason with who gave it and when, until there is another.

    With another day an old reason would pass for a new one.
    """
    line = replace(line, expires=signature.expires if moves_end(before, signature) else before.expires)
    if (before.why or before.expires) and not signature.why:
        return replace(line, who=before.who, when=before.when, why=before.why)
    return replace(line, who=signature.who or before.who, when=signature.when or before.when, why=signature.why)


def moves_end(before: Baseline, signature: Signature) -> bool:
    """Whether an acceptance is given another end; of many cases only those that have one are meant."""
    return signature.expires not in {"", before.expires} and (bool(before.expires) or signature.named)


def renewed(before: Baseline, signature: Signature) -> Baseline:
    """The same time, accepted anew by whoever signs; without a new end it holds for good."""
    return replace(
        before,
        commit=_commit(before, signature),
        when=signature.when,
        who=signature.who,
        why=signature.why,
        expires=signature.expires,
    )


def committed(before: Baseline, signature: Signature) -> Baseline:
    """The same line with a commit that can be built; what is said of other lines is no reason of this one."""
    return carried(replace(before, commit=_commit(before, signature)), before, replace(signature, why=""))


def _commit(before: Baseline, signature: Signature) -> str:
    """The line's commit; where that was a tree in no commit, the one that measures the same."""
    clean = signature.commit and not signature.commit.endswith(DIRTY)
    return short_commit(signature.commit) if clean and before.commit.endswith(DIRTY) else before.commit
