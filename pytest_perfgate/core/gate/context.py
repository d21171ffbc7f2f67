"""What a judge has to know beside the measurement."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import field
from typing import NamedTuple

from pytest_perfgate.core.gate.policy import LOCAL
from pytest_perfgate.core.metrics.registry import by_name
from pytest_perfgate.core.stats.summary import Summary
from pytest_perfgate.model.baseline import Baseline
from pytest_perfgate.model.measurement import Measurement
from pytest_perfgate.model.metric import MetricKind, MetricSet
from pytest_perfgate.model.paired import Paired
from pytest_perfgate.model.plan import Mode
from pytest_perfgate.model.policy import Policy
from pytest_perfgate.model.problem import Problem
from pytest_perfgate.model.values import value

_BUILT_IN = by_name()


@value
class Unpaired:
    """Why the two builds of a case could not be compared, so that its stored line judges it."""

    why: str
    step: str = ""
    """What would make the comparison possible."""
    base_missing: bool = False
    """Whether no clone has the commit: nothing that is fetched brings it."""


@value
class JudgeContext:
    """The policy and the circumstances of a run, or of one case in it."""

    policy: Policy = LOCAL
    mode: Mode = Mode.FULL
    kinds: Mapping[str, MetricKind] = field(default_factory=lambda: _BUILT_IN, repr=False)
    gates: int = 1
    """How many slowdown gates the run has: the price of asking often."""
    scatter: float | None = None
    """Relative scatter between sittings from the history; the baseline's own where unknown."""
    sittings: int = 0
    """Sittings behind ``scatter``."""
    own_shift: float = 0.0
    """The 99th percentile of this case's own A/A shift, where it was calibrated."""
    floor_ns: float = 2000.0
    """Differences below this are none, per timed sample: a batch of calls divides it."""
    paired_available: bool = False
    """Whether a suspect will be confirmed in two arms: then nothing else convicts it."""
    edited: Baseline | None = None
    """The line of the work tree where this change edits it; ``baseline`` is the merge base's."""
    replaced: Baseline | None = None
    """The merge base's line, where it cannot be compared and ``baseline`` is the one that this change accepts."""
    today: str = ""
    """ISO date, against which an acceptance expires."""
    facts: str = "shown"
    """How closely the versions around a device must agree with the baseline's: a level of ``core.gate.facts``."""
    then_hz: float | None = None
    """The clock of the sittings that were accepted, where the history knows it."""
    unpaired: Unpaired | None = None
    """Why this case was not compared between two builds, where it should have been."""
    unbaselined: str = ""
    """Why there is no baseline, where the caller knows more than that."""
    pytest: str = "pytest"
    """How this run was started, as far as the next one must be started so too."""


REASON = ' --reason "..."'


class Trial(NamedTuple):
    """One measurement on the bench: what was seen, what it is held against, what is wrong with it."""

    measurement: Measurement
    context: JudgeContext
    metrics: MetricSet
    problems: tuple[Problem, ...]
    baseline: Baseline | None
    seen: Summary | None
    modes: bool
    paired: Paired | None

    @property
    def name(self) -> str:
        """The case, quoted for a shell."""
        return shlex.quote(str(self.measurement.key))

    @property
    def profiles(self) -> tuple[str, ...]:
        """The command that looks into this test; what runs on the host alone has no kernels to look into."""
        return (f"perfgate profile {self.name}",) if self.measurement.device.kind != "host" else ()

    @property
    def rerun(self) -> str:
        """The command that runs this test once more, which pytest knows without its calls; more stands behind it."""
        return f"{self.context.pytest} {shlex.quote(self.measurement.key.nodeid)}"

    def accepting(self, option: str = "") -> str:
        """The command that accepts this time; where CI refuses to write, from the record that it leaves."""
        source = "--from RECORD " if self.context.policy.ci else ""
        return f"perfgate accept {source}{self.name}{option}"
