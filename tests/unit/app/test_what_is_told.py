"""What a block says of a build that failed."""

from __future__ import annotations

import pytest

from pytest_perfgate.app.judge import in_short
from pytest_perfgate.model.errors import PerfgateError

PIP = """the base arm: pip install: exit 1
    error: subprocess-exited-with-error
    × Preparing metadata did not run successfully.
      error: Multiple top-level packages discovered in a flat-layout: ['k', 'baselines'].
      To avoid accidental inclusion of unwanted files or directories,
    note: This error originates from a subprocess
    error: metadata-generation-failed"""


@pytest.mark.parametrize(
    ("what", "place", "said"),
    [
        (PIP, "build.log", ["the base arm: pip install: exit 1",
                            "error: Multiple top-level packages discovered in a flat-layout: ['k', 'baselines'].",
                            "all of it: build.log"]),
        ("make: exit 2\n  k.c:3:1: error: no ;\n  make: *** [k.o]", "", ["make: exit 2", "k.c:3:1: error: no ;"]),
        ("it is full\n  left free: 0 MB", "", ["it is full", "left free: 0 MB"]),
        ("one line", "build.log", ["one line"]),
    ],
)  # fmt: skip
def test_the_line_that_calls_itself_the_error(what: str, place: str, said: list[str]) -> None:
    assert in_short(PerfgateError("arm-build-failed", what, place=place)).splitlines() == said
