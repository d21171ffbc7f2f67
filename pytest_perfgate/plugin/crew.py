"""The children of a session: how each is started, what it is told, and how long it may be silent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_perfgate.app.measure import Crew
from pytest_perfgate.clock import seconds
from pytest_perfgate.plugin.invocation import child_job, child_spec

if TYPE_CHECKING:
    from pytest_perfgate.plugin.docket import Docket
    from pytest_perfgate.plugin.progress import Progress


def crew_of(session: Docket, progress: Progress) -> Crew:
    """Children of the working copy, with the session's own settings."""
    config, project = session.settings.pytest, session.settings.project
    return Crew(
        nursery=session.court.tools.nursery,
        spec=lambda some: child_spec(config, project, some),
        job=child_job(config),
        timeout_s=project.timeout,
        progress=progress,
        clock=seconds,
        tell=progress.tell,
        leanings=session.court.accepted.timers(),
    )
