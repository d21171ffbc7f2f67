"""Measurements: samples of several processes with their identity and their metrics."""

from __future__ import annotations

from dataclasses import fields

from pytest_perfgate.model.ci_run import FACT
from pytest_perfgate.model.device import Device
from pytest_perfgate.model.metric import MetricSet
from pytest_perfgate.model.plan import CaseKey
from pytest_perfgate.model.problem import Finding, Problem
from pytest_perfgate.model.samples import Samples
from pytest_perfgate.model.values import value
from pytest_perfgate.model.work import Work


@value
class Identity:
    """What must agree before two measurements may be compared at all."""

    device: str
    clocks: str = "off"
    timer: str = "host"
    cache: str = "warm"
    data: str = "user"
    threads: str = ""
    affinity: str = ""
    notes: tuple[tuple[str, str], ...] = ()
    """What the test said with ``perfgate.note``."""
    calls: str = "1"
    """How many calls one call of the test stood for: times are those of one."""

    def differences(self, other: Identity) -> tuple[tuple[str, str, str], ...]:
        """(field, here, there) for all that differs."""
        return tuple(
            (name, str(getattr(self, name)), str(getattr(other, name)))
            for name in _IDENTITY
            if getattr(self, name) != getattr(other, name)
        )

    def text(self) -> str:
        """Equal for two of one device that may be compared, and never empty: what the history keeps beside a time."""
        unusual = self.differences(Identity(device=self.device))
        return ", ".join(f"{name}={here}" for name, here, _ in unusual) or "usual"


_IDENTITY = tuple(field.name for field in fields(Identity))


@value
class Environment:
    """Recorded, shown when something moved, never part of the identity."""

    python: str = ""
    platform: str = ""
    packages: tuple[tuple[str, str], ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
    """Driver, toolkit, governor, load: name and text."""
    commit: str = ""
    dirty: bool = False
    ci: bool = False

    @property
    def lasting(self) -> Environment:
        """What outlives the run: kept beside an accepted time, to say what moved."""
        facts = tuple((name, text) for name, text in self.facts if name not in _PASSING)
        return Environment(python=self.python, platform=self.platform, packages=self.packages, facts=facts)

    def differences(self, other: Environment) -> tuple[tuple[str, str, str], ...]:
        """(name, here, there) for all that lasts and differs; what one side does not have reads ``none``."""
        here, there = self._lines(), other._lines()
        names = dict.fromkeys((*here, *there))
        apart = ((name, here.get(name, "none"), there.get(name, "none")) for name in names)
        return tuple((name, mine, theirs) for name, mine, theirs in apart if mine != theirs)

    def _lines(self) -> dict[str, str]:
        lasting = self.lasting
        return dict((*lasting.facts, ("system", self.platform), ("python", self.python), *self.packages))


_PASSING = frozenset({"load", FACT})
"""Facts of the moment."""


@value
class Artifact:
    """A file that a capture left, with what made it."""

    kind: str
    path: str
    parameters: tuple[tuple[str, str], ...] = ()


@value
class Measurement:
    """One case measured: the processes of one sitting, and all metrics they give."""

    key: CaseKey
    processes: tuple[Samples, ...]
    device: Device
    identity: Identity
    environment: Environment = Environment()
    work: Work | None = None
    metrics: MetricSet = MetricSet()
    findings: tuple[Finding, ...] = ()
    problems: tuple[Problem, ...] = ()
    artifacts: tuple[Artifact, ...] = ()
    modules: tuple[tuple[str, str], ...] = ()
    """(file, hash) of every module of the package under test: the proof of the arm."""
    limits: tuple[str, ...] = ()
    """What the fixture's call added with ``limits=``."""

    def with_metrics(self, metrics: MetricSet) -> Measurement:
        """The same with other metrics, as ``dataclasses.replace`` gives it at four times the cost."""
        return Measurement(
            key=self.key,
            processes=self.processes,
            device=self.device,
            identity=self.identity,
            environment=self.environment,
            work=self.work,
            metrics=metrics,
            findings=self.findings,
            problems=self.problems,
            artifacts=self.artifacts,
            modules=self.modules,
            limits=self.limits,
        )
