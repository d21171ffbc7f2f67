"""Stores of a project, and other tools' results, for the commands."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.wiring import _INSPECTORS, CommandLineTools, _found, made

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_perfgate.model.config import Config


def baseline_store(root: Path, project: Config, revisions: Any = None) -> Any:
    """The project's baselines; those of devices that it does not list lie under ``.perfgate/``."""
    from pytest_perfgate.adapters.stores.baselines import Baselines, Kept
    from pytest_perfgate.adapters.stores.settings import devices_at, folder_at

    then = revisions or repository(root)
    kept = Kept(partial(folder_at, then.show), then.files, partial(devices_at, then.show))
    return Baselines(root, project.devices, project.baselines, then.show, kept)


def record_store(root: Path) -> Any:
    """The records of runs."""
    from pytest_perfgate.adapters.stores.records import Records

    return Records(root)


def history_store(root: Path, project: Config) -> Any:
    """Sittings over time."""
    from pytest_perfgate.adapters.stores.history import SqliteHistory, history_file

    return SqliteHistory(history_file(root, project.history))


def repository(root: Path, target: str = "") -> Any:
    """What git says about the project; ``target`` is the branch that its changes are merged into."""
    from pytest_perfgate.adapters.stores.repository import GitRepository

    return GitRepository(root, target=target)


def merge_request(environment: Mapping[str, str]) -> bool:
    """Whether CI says that this is a change about to be merged."""
    from pytest_perfgate.adapters.stores.ci_words import targets

    return bool(targets(environment))


def kept_before(root: Path, folder: str, environment: Mapping[str, str]) -> bool:
    """Whether a revision that this change may have left has a folder of baselines."""
    from pytest_perfgate.adapters.stores import before

    return before.kept_before(root, folder, environment)


def merging(root: Path, project: Config) -> Any:
    """What git is told about merging baselines; ``None`` where git says nothing."""
    from pytest_perfgate.adapters.stores.merge_by_git import probe_merging

    return probe_merging(root, project.baselines)


def merge_baselines(base: Path, ours: Path, theirs: Path, shown: str) -> tuple[Any, ...]:
    """Three baseline files merged into ours; the (case, what both sides did) in conflict."""
    from pytest_perfgate.adapters.stores.baseline_merge import merge_files

    return merge_files(base, ours, theirs, shown)


def read_benchmarks(path: Path) -> Any:
    """Results of another benchmark tool, its file told by content."""
    readers = {
        "nvbench": "adapters.readers.nvbench:read_nvbench",
        "pytest-benchmark": "adapters.readers.pytest_benchmark:read_pytest_benchmark",
        "google-benchmark": "adapters.readers.google_benchmark:read_google_benchmark",
        "asv": "adapters.readers.asv:read_asv",
    }
    from pytest_perfgate.core.analysis.foreign import foreign

    head = CommandLineTools.peek(path)
    kinds = [made(part) for part in _INSPECTORS if part[0].startswith("app.inspections.benchmarks:")]
    kind = next((kind for kind in kinds if kind.recognises(path, head)), None)
    if kind is None:
        seen, mend = foreign(head)
        what = f"the file {seen}" if seen else "this is no benchmark's JSON"
        raise PerfgateError("artifact-unknown", what, place=str(path), mend=mend or f"kinds: {', '.join(readers)}")
    return _found(readers[kind.name])(path)


def host_device_key() -> str:
    """The key of this host as a device."""
    from pytest_perfgate.adapters.devices.host import probe_host

    return str(probe_host().key)
