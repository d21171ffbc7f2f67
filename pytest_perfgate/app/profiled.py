"""What a profile came to, and the folder in which people keep it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from pytest_perfgate.core.render.markdown import render_markdown
from pytest_perfgate.model.analysis import Analysis
from pytest_perfgate.model.document import Document
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.measurement import Artifact
from pytest_perfgate.model.plan import CaseKey, Plan
from pytest_perfgate.model.profiling import Told
from pytest_perfgate.model.values import array_value

_COMPACT = ("contract", "report", "overview", "bottleneck")


class Folders(Protocol):
    """Where profiles are kept."""

    def fresh(self, mode: str, nodeid: str) -> Path: ...

    def write_text(self, folder: Path, name: str, text: str) -> None: ...

    def write_json(self, folder: Path, name: str, value: Any) -> None: ...

    def read_json(self, folder: Path, name: str) -> dict[str, Any]:
        """What the child wrote; empty where it wrote nothing."""

    def tail(self, folder: Path, name: str) -> str:
        """The last lines of a log, indented; empty where there are none."""

    def write_pages(self, folder: Path, views: Mapping[str, Any]) -> None:
        """Tables as CSV, pictures as SVG, all views as one page."""


@array_value
class Profiled:
    """What a profile came to."""

    mode: str
    folder: Path
    artifacts: tuple[Artifact, ...]
    analysis: Analysis
    again: bool = False
    """Whether it took a second try."""
    version: str = ""
    """The instrument's own."""

    @property
    def evidence(self) -> str:
        """Where its figures are from, in a line."""
        again = "; the first try failed right after autotuning, this is the second" if self.again else ""
        window = f"{self.analysis.window}; " if self.analysis.window else ""
        return f"{window}kept in {self.folder}{again}"


def parameters(key: CaseKey, plan: Plan, told: Told) -> dict[str, Any]:
    """What the profile was taken with; written before anything is read, and read before its figures."""
    _, _, params = key.nodeid.partition("[")
    return {
        "nodeid": key.nodeid,
        "call": key.name,
        "parameters": params.removesuffix("]"),
        "clocks": {"policy": plan.clocks.value},
        **dict(told.facts),
    }


def write_profile(done: Profiled, folders: Folders, taken_with: Mapping[str, Any]) -> None:
    """``params.json``, ``report.md``, ``metrics.json``, and every view for those who look deeper."""
    folder, analysis = done.folder, done.analysis
    archs = {dict(m.labels).get("arch", "") for m in analysis.metrics.metrics} - {""}
    found = {"devices": sorted(archs), "window": analysis.window}
    folders.write_json(folder, "params.json", {**taken_with, **found})
    compact = next((name for name in _COMPACT if name in analysis.views), next(iter(analysis.views)))
    folders.write_text(folder, "report.md", render_markdown(analysis.views[compact](), level=2))
    folders.write_json(folder, "metrics.json", metrics_data(analysis))
    views, empty = _views(analysis)
    folders.write_pages(folder, views)
    for name, build in {**analysis.files, **analysis.kept}.items():
        folders.write_text(folder, name, build())
    if len(analysis.views) > 1:
        text = "\n".join([*map(render_markdown, views.values()), *empty])
        folders.write_text(folder, "report-verbose.md", text)


def _views(analysis: Analysis) -> tuple[dict[str, Document], list[str]]:
    """Every view that has something to show, and a line for each of the others."""
    views: dict[str, Document] = {}
    empty: list[str] = []
    for name, build in analysis.views.items():
        try:
            views[name] = build()
        except PerfgateError as fault:  # noqa: PERF203 - a view that has nothing to show leaves the others alone
            empty.append(f"No view `{name}`: {fault.what}.")
    return views, empty


def metrics_data(analysis: Analysis) -> dict[str, Any]:
    """Every metric with its labels; what is absent is listed with the way to collect it."""
    return {
        "kind": analysis.kind,
        "window": analysis.window,
        "problems": [{"code": p.code, "what": p.what} for p in analysis.problems],
        "metrics": [
            {"name": m.name, "value": m.value, "dimension": m.dimension.value, "labels": dict(m.labels), "note": m.note}
            for m in analysis.metrics.metrics
        ],
        "absent": [
            {"name": a.name, "labels": dict(a.labels), "why": a.why, "mend": a.mend} for a in analysis.metrics.absent
        ],
    }
