"""``--benchmark-json``: the figures of this run in the form that pytest-benchmark writes and others read."""

from __future__ import annotations

import datetime as dt
import json
import platform
from pathlib import Path
from typing import Any

import pytest

import pytest_perfgate
from pytest_perfgate.clock import HOST_CLOCK

FIGURES = "perfgate_benchmark"
"""The attribute of a test's report that carries its figures, also from a worker."""


class BenchmarkJson:
    """Gathers what the tests were shown and writes it after the last."""

    def __init__(self, path: str) -> None:
        self._path, self._found = Path(path), {}  # type: ignore[var-annotated]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        figures = getattr(report, FIGURES, None)
        if figures is not None:
            self._found[report.nodeid] = figures

    def pytest_sessionfinish(self) -> None:
        now = dt.datetime.fromtimestamp(HOST_CLOCK.date(), dt.timezone.utc)
        text = json.dumps(document(list(self._found.values()), now), indent=1)
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._path.write_text(text + "\n", encoding="utf-8")
        except OSError as fault:
            raise pytest.UsageError(f"--benchmark-json={self._path}: {fault.strerror or fault}") from None

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        count = len(self._found)
        terminalreporter.write_line(f"wrote {self._path}: {count} benchmark{'' if count == 1 else 's'}")


def plain(figures: dict[str, Any]) -> Any:
    """Figures as they travel: parameters of other types by their names."""
    return json.loads(json.dumps(figures, default=str))


def document(benchmarks: list[dict[str, Any]], now: dt.datetime) -> dict[str, Any]:
    """The whole file. The machine is named as far as a comparison needs it."""
    return {
        "machine_info": {
            "node": "",
            "machine": platform.machine(),
            "system": platform.system(),
            "release": platform.release(),
            "python_implementation": platform.python_implementation(),
            "python_version": platform.python_version(),
        },
        "commit_info": {},
        "benchmarks": benchmarks,
        "datetime": now.isoformat(),
        "version": f"perfgate {pytest_perfgate.__version__}",
    }
