"""Access to stores, arms, deliveries and plugins."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.wiring import CommandLineTools, joined, own_host

if TYPE_CHECKING:
    from pytest_perfgate.adapters.arms.store import ArmStore
    from pytest_perfgate.adapters.stores.baselines import Baselines
    from pytest_perfgate.adapters.stores.records import Records
    from pytest_perfgate.adapters.stores.repository import GitRepository
    from pytest_perfgate.model.device import Device
    from pytest_perfgate.model.measurement import Environment
    from pytest_perfgate.model.metric import Table
    from pytest_perfgate.model.ports import HistoryStore
    from pytest_perfgate.model.profiles import BenchFile
    from pytest_perfgate.model.project import Config, Merging
    from pytest_perfgate.model.verdict import Leftover, RunReport


def baseline_store(root: Path, project: Config, revisions: Any = None) -> Baselines:
    """Return the project's baselines; those of devices that it does not list are under ``.perfgate/``."""
    from pytest_perfgate.adapters.stores.baselines import Baselines, StoredFiles
    from pytest_perfgate.adapters.stores.configuration import devices_at, folder_at

    then = revisions or repository(root)
    stored = StoredFiles(partial(folder_at, then.show), then.files, partial(devices_at, then.show))
    return Baselines(root, project.devices, project.baselines, then.show, stored)


def ceilings_at(root: Path) -> Callable[[Device], Device]:
    """Return a function that adds a project's ceilings to a device, each read once on first use."""

    @cache
    def ceiled(device: Device) -> Device:
        from pytest_perfgate.wiring import configuration
        from pytest_perfgate.wiring.devices import with_measured_ceilings

        return with_measured_ceilings(baseline_store(root, configuration(root)))(device)

    return ceiled


def record_store(root: Path) -> Records:
    from pytest_perfgate.adapters.stores.records import Records

    return Records(root)


def write_record(path: Path, report: RunReport) -> None:
    """Write a record as one file, with its samples."""
    from pytest_perfgate.adapters.stores.records import render_record
    from pytest_perfgate.adapters.system.files import write_atomically

    write_atomically(path, render_record(report))


def history_store(root: Path, project: Config) -> HistoryStore:
    """Return the history, in a file or at an address of PostgreSQL."""
    from pytest_perfgate.adapters.stores.history import SERVERS, SqliteHistory, history_file

    if project.history.startswith(SERVERS):
        from pytest_perfgate.adapters.stores.postgres import PostgresHistory

        return PostgresHistory(project.history)
    return SqliteHistory(history_file(root, project.history))


def history_table(root: Path, project: Config, name: str) -> Table:
    """Return every figure of every run, of all cases or of those with this in their name."""
    from pytest_perfgate.core.render.exports import figures_table

    history = history_store(root, project)
    places = history.keys()
    lines = history.levels({place: () for place in places if name in str(place[1])}, 0, sys.maxsize)
    return figures_table(entry for line, _ in lines for entry in line)


def repository(root: Path, target: str = "") -> GitRepository:
    """Return git's access to the project; ``target`` is the branch that its changes are merged into."""
    from pytest_perfgate.adapters.stores.repository import GitRepository

    return GitRepository(root, target=target)


def environment_digest(environment: Environment) -> str:
    """Return a digest that is equal for two runs in the same environment."""
    from pytest_perfgate.adapters.stores.stored_forms import digest_of

    return digest_of(environment)


def kept_before(root: Path, folder: str, environment: Mapping[str, str]) -> bool:
    """Return whether a revision that this change may have left has a folder of baselines."""
    from pytest_perfgate.adapters.stores import base_revision as before

    return before.kept_before(root, folder, environment)


def merging(root: Path, project: Config) -> Merging | None:
    """Return git's settings for merging baselines; ``None`` if git does not answer."""
    from pytest_perfgate.adapters.stores.baseline_merge import probe_merging

    return probe_merging(root, project.baselines)


def merge_baselines(base: Path, ours: Path, theirs: Path, shown: str) -> tuple[Any, ...]:
    """Merge three baseline files into ours; return the conflicting cases with what both sides did."""
    from pytest_perfgate.adapters.stores.baseline_merge import merge_files

    return merge_files(base, ours, theirs, shown)


def read_benchmarks(path: Path) -> BenchFile:
    """Return the results of another benchmark tool, recognised by content."""
    from pytest_perfgate.app.inspections import unknown
    from pytest_perfgate.core.analysis.foreign_files import foreign
    from pytest_perfgate.wiring.built_ins import BENCHMARK_TOOLS, benchmarks_of

    head, tools = CommandLineTools.peek(path), [benchmarks_of(tool) for tool in BENCHMARK_TOOLS]
    for tool in tools:
        if tool.recognises(path, head):
            return tool.read(path)
    if foreign(head)[0] or not head.strip():
        raise unknown(path, head, tools)
    fix = f"name a file of one of these kinds: {', '.join(BENCHMARK_TOOLS)}"
    raise PerfgateError("artifact-unknown", "this is no benchmark's JSON", place=str(path), fix=fix)


def host_device_key() -> str:
    from pytest_perfgate.adapters.devices.host import probe_host

    return str(probe_host().key)


def arms(root: Path, project: Config, paths: Sequence[str], imported: Sequence[str] = ()) -> ArmStore:
    from pytest_perfgate.adapters.arms import hidden_projects
    from pytest_perfgate.adapters.arms.overlay import parent_folders
    from pytest_perfgate.adapters.arms.store import ArmStore
    from pytest_perfgate.model.verdict import ArmSettings

    projects = tuple(nested.path for nested in project.projects)
    settings = ArmSettings(
        mode={"package": "overlay", "": "auto"}.get(project.arms, project.arms),
        projects=projects or (".",),
        missing=hidden_projects(root.resolve(), projects, parent_folders(())),
        builds=tuple((nested.path, nested.build) for nested in project.projects if nested.build),
        build=tuple(project.build.splitlines()),
        editable=tuple(str((root / place).resolve()) for place in project.editable),
        tests=project.test_paths,
        packages=project.packages,
        accepted=project.baselines,
        imported=tuple(imported),
    )
    return ArmStore(root, settings, paths)


def packaging_fix(root: Path, project: Config) -> str:
    """Return the fix if a build of this project would take its baselines for a package, else ""."""
    from pytest_perfgate.adapters.arms import build as backend

    return backend.packaging_fix(root, project.baselines)


def loaded_modules(names: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Return files and hashes of the package under test, as this process has loaded it."""
    from pytest_perfgate.adapters.arms import overlay as proof

    return proof.loaded_modules(names) if names else ()


def neighbour_modules(root: Path, names: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Return files and hashes of tests and of what lies beside them, as this process has loaded them."""
    from pytest_perfgate.adapters.arms import overlay as proof

    return proof.neighbour_modules(root, names)


def leftovers(root: Path, project: Config) -> tuple[Leftover, ...]:
    """Return what runs in two arms left behind: arms, locks, rounds, worktrees, children."""
    from pytest_perfgate.adapters.children.channel import leftover_children
    from pytest_perfgate.model.verdict import Leftover

    pids = leftover_children()
    untracked = (Leftover(path=str(pid), what="a child whose parent is gone", fix=f"kill {pid}") for pid in pids)
    return (*arms(root, project, ()).leftovers(), *untracked)


def deliveries(root: Path) -> Sequence[Any]:
    """Return the deliveries of reports, of plugins and our own."""
    return joined(own_host(root).hook.pytest_perfgate_deliveries())


def tables() -> Mapping[str, Callable[[Any], bytes]]:
    """Return the writers of table files, by name."""
    from pytest_perfgate.adapters.formats import render_csv, render_parquet

    return {"csv": render_csv, "parquet": render_parquet}


GROUP = "pytest_perfgate"

_HOOK, _PLACE = "pytest_perfgate_", "pyproject.toml: tool.perfgate.plugins"


def load_plugins(host: Any, names: Sequence[str], root: Path) -> None:
    """Load every plugin into its host; raise if one fails, since its absence would go unnoticed."""
    try:
        if _installed(GROUP):
            host.load_setuptools_entrypoints(GROUP)
    except (Exception, SystemExit) as fault:
        what = f"an installed plugin of the entry-point group {GROUP!r} cannot be loaded: {_first_line(fault)}"
        raise PerfgateError("plugin-broken", what, fix="fix it, or uninstall the package that brings it") from fault
    for name in dict.fromkeys(names):
        plugin = _imported(name, root)
        if not any(hook.startswith(_HOOK) and callable(getattr(plugin, hook, None)) for hook in dir(plugin)):
            what = f"{name!r} is not a plugin: it has no function {_HOOK}*"
            raise PerfgateError("plugin-broken", what, fix="docs/plugins.md says which hooks there are", place=_PLACE)
        try:
            host.register(plugin, name)
        except Exception as fault:
            what = f"{name!r} cannot be registered: {_first_line(fault)}"
            raise PerfgateError("plugin-broken", what, fix="docs/plugins.md has the hooks", place=_PLACE) from fault


def _installed(group: str) -> bool:
    """Return whether a distribution may bring plugins; asking the library takes a tenth of a command's start."""
    mark = f"[{group}]".encode()
    for place in map(Path, filter(None, sys.path)):
        with suppress(OSError):  # the library passes over what cannot be read, too
            if place.is_file():
                return True  # only the library looks into an archive
            inside = place.iterdir() if place.is_dir() else ()
            lists = (path / "entry_points.txt" for path in inside if path.name.endswith((".dist-info", ".egg-info")))
            if any(listed.is_file() and mark in listed.read_bytes() for listed in lists):
                return True
    return False


def _imported(name: str, root: Path) -> Any:
    try:
        return import_module(name)
    except ModuleNotFoundError as fault:
        if fault.name != name and not name.startswith(f"{fault.name}."):
            raise _raising(name, fault) from fault
        what, fix = f"there is no module {name!r}", ""
        if (root / f"{name}.py").is_file() or (root / name / "__init__.py").is_file():
            fix = "it lies in the root, which is not on the path: PYTHONPATH=. perfgate ..., or install it"
        raise PerfgateError("plugin-broken", what, fix=fix, place=_PLACE) from fault
    except (Exception, SystemExit) as fault:
        raise _raising(name, fault) from fault


def _raising(name: str, fault: BaseException) -> PerfgateError:
    return PerfgateError("plugin-broken", f"the import of {name!r} raises {_first_line(fault)}", place=_PLACE)


def _first_line(fault: BaseException) -> str:
    """Return the type and the first line of an error."""
    first = (str(fault).strip().splitlines() or [""])[0]
    return f"{type(fault).__name__}: {first}" if first else type(fault).__name__


def costs_path(root: Path) -> Path:
    """Return the file of the costs of a project's cases."""
    return root / ".perfgate" / "costs.json"


_LONGEST_COST_S = 86400.0
"""The longest plausible cost; a larger one came from a clock that was set."""


def read_costs(path: Path) -> dict[str, float]:
    """Return the last seconds a round of each case; lost or impossible ones only make estimates worse."""
    try:
        table = json.loads(path.read_text(encoding="utf-8"))
        costs = {str(name): float(cost) for name, cost in table.items()}
        return {name: cost for name, cost in costs.items() if 0 <= cost <= _LONGEST_COST_S}
    except (OSError, ValueError, TypeError, AttributeError, OverflowError, RecursionError):
        return {}


def write_costs(path: Path, costs: Mapping[str, float]) -> None:
    """Write the costs of these cases beside those of others."""
    with suppress(OSError):
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps({**read_costs(path), **costs}), encoding="utf-8")
