"""Findings and problems under a table."""

from __future__ import annotations

from pytest_perfgate.core.analysis.nsys.findings import doubts, problems
from pytest_perfgate.model.document import Block, Bullets
from pytest_perfgate.model.nsys_job import Job


def notes(job: Job) -> tuple[Block, ...]:
    """What makes limits INVALID first, then what a reader should doubt."""
    items = [f"INVALID for limits: {problem.what}" for problem in problems(job)]
    items += [f"{finding.title}{f' ({finding.detail})' if finding.detail else ''}" for finding in doubts(job)]
    return (Bullets(items=tuple(items)),) if items else ()
