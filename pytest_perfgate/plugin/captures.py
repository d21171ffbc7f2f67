"""Captures that need a run of their own: taken by the controller, after the timing and before the first test."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_perfgate.app.captures import with_captures
from pytest_perfgate.app.profile import ProfileTools, profile
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.profiling import Assignment, external
from pytest_perfgate.plugin.invocation import arguments, child_job, environment
from pytest_perfgate.plugin.measuring import built_ins

if TYPE_CHECKING:
    from pytest_perfgate.app.profiled import Profiled
    from pytest_perfgate.model.children import Capture, CaseResult
    from pytest_perfgate.model.plan import Case
    from pytest_perfgate.plugin.docket import Docket

Say = Callable[[str], None]


def captured(session: Docket, results: Mapping[str, CaseResult], say: Say) -> dict[str, CaseResult]:
    """The results with the captures that their cases ask for; one profiler at a time."""
    if not any(external(result.case.plan.captures) for result in results.values()):
        return dict(results)
    config = session.settings.pytest
    built_ins(config)
    tools = _tools(session)
    job = child_job(config)

    def take(case: Case, one: Capture, mode: str) -> Profiled:
        say(f"capture {mode} of {one.key}")
        assigned = Assignment(
            mode=mode, out="", call=one.key.name, clocks=case.plan.clocks.value, options=job.options,
            markers=job.markers, bare=True,
        )  # fmt: skip
        try:
            return profile(one.key, mode, case.plan, asking(tools, case), assigned)
        except OSError as fault:
            raise PerfgateError("profile-child", f"the profile could not be kept: {fault}") from fault

    return {nodeid: with_captures(result, take) for nodeid, result in results.items()}


def asking(tools: ProfileTools, case: Case) -> ProfileTools:
    """Tools that tell an inspector what the limits of a case ask for."""
    return replace(tools, inspect=partial(tools.inspect, limits="\n".join(limit.text for limit in case.limits)))


def _tools(session: Docket) -> ProfileTools:
    from pytest_perfgate.wiring import interpreter
    from pytest_perfgate.wiring.profiling import prelude, profile_tools

    config = session.settings.pytest
    start = config.invocation_params.dir
    here = "" in sys.path or str(Path.cwd()) in sys.path

    def command(nodeid: str, assigned: Assignment) -> list[str]:
        """The arguments of a measuring child, with the one test in place of its file."""
        case = session.cases[nodeid]
        told = arguments(config, [case])[:-1]
        file, _, rest = nodeid.partition("::")
        node = f"{config.rootpath / file}::{rest}"
        return [*interpreter(here=here, prelude=prelude(assigned, start)), *told, node]

    found: ProfileTools = profile_tools(config.rootpath, config.hook, command, environment(os.environ.items()))
    return found
