"""The settings of this session: options, environment, configuration, kinds of metrics."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pytest

from pytest_perfgate.plugin.told import told

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_perfgate.model.config import Config
    from pytest_perfgate.model.metric import MetricKind
    from pytest_perfgate.model.plan import Mode
    from pytest_perfgate.model.policy import Policy
    from pytest_perfgate.plugin.collect import Collector


COMPAT = "pytest_perfgate.compat"
CI_BUDGET_S = 600.0
"""What a run in CI spends at most where nobody said."""


class Settings:
    """Read when the first gated test is met, not before."""

    def __init__(self, config: pytest.Config) -> None:
        self.pytest = config
        self.options: Any = config.option
        self.ci = bool(told(config).get("CI"))

    def read(self) -> tuple[Policy, float]:
        """What does not read ends the run before its first test, and is said once."""
        return self.policy, self.budget_s

    @cached_property
    def project(self) -> Config:
        from pytest_perfgate.wiring import configuration

        found = configuration(self.pytest.rootpath)
        return replace(found, history=self.options.perfgate_history or found.history)

    @cached_property
    def mode(self) -> Mode:
        from pytest_perfgate.model.plan import Mode

        asked = self.options.perfgate_mode or self.project.mode or ("full" if self.ci else "quick")
        return Mode.FULL if self.options.perfgate_against and asked != "off" else Mode(asked)

    @cached_property
    def budget_s(self) -> float:
        """Seconds that the whole run may take to measure: in CI ten minutes, elsewhere endless where nobody said."""
        from pytest_perfgate.plugin.spans import seconds

        given = self.options.perfgate_budget
        if given is not None:
            return seconds(given, "--perfgate-budget")
        return CI_BUDGET_S if self.ci else math.inf

    @property
    def command(self) -> str:
        """How pytest must be started to run these tests again: with the plugin that was asked for by hand."""
        return (
            f"pytest -p {COMPAT}"
            if any(arg.endswith(COMPAT) for arg in self.pytest.invocation_params.args)
            else "pytest"
        )

    @property
    def debugging(self) -> bool:
        """``--pdb`` and ``--trace``: somebody sits in the test."""
        return bool(self.options.usepdb or self.options.trace)

    @cached_property
    def policy(self) -> Policy:
        from pytest_perfgate.core.gate.policy import parse_policy
        from pytest_perfgate.wiring.stores import merge_request

        pairs = (*(f"{key}={choice}" for key, choice in self.project.policy), *self.options.perfgate_policy)
        return parse_policy(pairs, ci=self.ci, place="policy", request=merge_request(told(self.pytest)))

    @cached_property
    def kinds(self) -> Mapping[str, MetricKind]:
        from pytest_perfgate.core.metrics.registry import by_name

        answers = self.pytest.hook.pytest_perfgate_metrics()
        return by_name(kind for answer in answers for kind in answer)

    @cached_property
    def collector(self) -> Collector:
        from pytest_perfgate.plugin.collect import Collector

        if self.project.device:  # a key that nothing reads is an error, also where no such device is at work
            from pytest_perfgate.wiring.devices import catalogue

            catalogue(self.project)
        return Collector(self.project, self.options, self.kinds, self._captures)

    def _captures(self) -> list[str]:
        """Names of the profilers that plugins bring."""
        return [one.name for answer in self.pytest.hook.pytest_perfgate_profilers() for one in answer]
