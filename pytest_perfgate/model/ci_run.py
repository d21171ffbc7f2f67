"""Which run of CI this is, where CI gives its runs a name."""

from __future__ import annotations

from collections.abc import Mapping

FACT = "ci run"
"""What a record calls it among the facts of its environment."""
_NAMES = (
    "GITHUB_RUN_ID",
    "CI_PIPELINE_ID",
    "BUILD_BUILDID",
    "BUILDKITE_BUILD_ID",
    "CIRCLE_WORKFLOW_ID",
    "BITBUCKET_PIPELINE_UUID",
    "BUILD_TAG",
)
"""Of all jobs of a run together: one may measure, and another deliver."""


def ci_run(environment: Mapping[str, str]) -> str:
    """The name of the run; empty outside of CI, and where CI gives none."""
    return next((environment[name] for name in _NAMES if environment.get("CI") and environment.get(name)), "")
