"""The composition root of what lies on disk: baselines, records, history, the repository, written files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_perfgate.model.config import Config
    from pytest_perfgate.model.document import Document
    from pytest_perfgate.model.verdict import Verdict


def baseline_store(root: Path, project: Config, revisions: Any = None) -> Any:
    """The project's baselines; those of devices that it does not list lie under ``.perfgate/``."""
    from pytest_perfgate.adapters.stores.baselines import Baselines

    shown = (revisions or repository(root)).show
    return Baselines(root, devices=project.devices, folder=project.baselines, show=shown)


def local_baselines(root: Path) -> Any:
    """Baselines of this checkout alone, whatever the device."""
    from pytest_perfgate.adapters.stores.baselines import Baselines

    return Baselines(root)


def record_store(root: Path) -> Any:
    """The records of runs."""
    from pytest_perfgate.adapters.stores.records import Records

    return Records(root)


def history_store(root: Path, project: Config) -> Any:
    """Sittings over time."""
    from pytest_perfgate.adapters.stores.history import SqliteHistory

    return SqliteHistory(root / (project.history or ".perfgate/history.db"))


def repository(root: Path) -> Any:
    """What git says about the project."""
    from pytest_perfgate.adapters.stores.repository import GitRepository

    return GitRepository(root)


def host_environment() -> Any:
    """What is recorded about this machine beside a measurement."""
    from pytest_perfgate.adapters.devices.process import probe_environment

    return probe_environment()


def merge_baselines(base: Path, ours: Path, theirs: Path, shown: str) -> tuple[str, ...]:
    """Three baseline files merged into ours; the cases in conflict."""
    from pytest_perfgate.adapters.stores.baseline_merge import merge_files

    return merge_files(base, ours, theirs, shown)


def write_pages(path: Path, documents: Sequence[Document]) -> None:
    """Documents as one HTML file."""
    from pytest_perfgate.core.render.html import render_html

    path.write_text(render_html(documents), encoding="utf-8")


def write_tables(folder: Path, documents: Mapping[str, Document]) -> tuple[Path, ...]:
    """Tables of documents as CSV files."""
    from pytest_perfgate.adapters.formats import tables

    return tables.write_tables(folder, documents)


def write_junit(path: Path, subject: str, verdicts: Sequence[Verdict]) -> None:
    """Verdicts as a JUnit file."""
    from pytest_perfgate.adapters.formats import junit

    junit.write_junit(path, subject, verdicts)
