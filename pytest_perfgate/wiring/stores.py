"""Stores, arms, deliveries, plugins."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
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
    """The project's baselines; those of devices that it does not list lie under ``.perfgate/``."""
    from pytest_perfgate.adapters.stores.baselines import Baselines, StoredFiles
    from pytest_perfgate.adapters.stores.configuration import devices_at, folder_at

    then = revisions or repository(root)
    stored = StoredFiles(partial(folder_at, then.show), then.files, partial(devices_at, then.show))
    return Baselines(root, project.devices, project.baselines, then.show, stored)


def ceilings_at(root: Path) -> Callable[[Device], Device]:
    """Adds the ceilings that a project has to a device; each is read once, and nothing before one is asked for."""

    @cache
    def ceiled(device: Device) -> Device:
        from pytest_perfgate.wiring import configuration
        from pytest_perfgate.wiring.devices import roofed

        return roofed(baseline_store(root, configuration(root)))(device)

    return ceiled


def record_store(root: Path) -> Records:
    """The records of runs."""
    from pytest_perfgate.adapters.stores.records import Records

    return Records(root)


def write_record(path: Path, report: RunReport) -> None:
    """A record as one file, its samples in it."""
    from pytest_perfgate.adapters.stores.records import render_record
    from pytest_perfgate.adapters.system.files import write_atomically

    write_atomically(path, render_record(report))


def history_store(root: Path, project: Config) -> HistoryStore:
    """Sittings over time: in a file, or where an address of PostgreSQL leads."""
    from pytest_perfgate.adapters.stores.history import SERVERS, SqliteHistory, history_file

    if project.history.startswith(SERVERS):
        from pytest_perfgate.adapters.stores.postgres import PostgresHistory

        return PostgresHistory(project.history)
    return SqliteHistory(history_file(root, project.history))


def history_table(root: Path, project: Config, name: str = "") -> Table:
    """Every figure of every run, of all cases or of those with this in their name."""
    from pytest_perfgate.core.render.exports import figures_table

    lines = history_store(root, project).lines(0, sys.maxsize)
    return figures_table(s for line in lines if line and name in str(line[-1].key) for s in line)


def repository(root: Path, target: str = "") -> GitRepository:
    """What git says about the project; ``target`` is the branch that its changes are merged into."""
    from pytest_perfgate.adapters.stores.repository import GitRepository

    return GitRepository(root, target=target)


def environment_digest(environment: Environment) -> str:
    """Equal for two runs in the same surroundings."""
    from pytest_perfgate.adapters.stores.sittings import digest_of

    return digest_of(environment)


def merge_request(environment: Mapping[str, str]) -> bool:
    """Whether CI says that this is a change about to be merged."""
    from pytest_perfgate.adapters.stores.base_revision import targets

    return bool(targets(environment))


def kept_before(root: Path, folder: str, environment: Mapping[str, str]) -> bool:
    """Whether a revision that this change may have left has a folder of baselines."""
    from pytest_perfgate.adapters.stores import repository as before

    return before.kept_before(root, folder, environment)


def merging(root: Path, project: Config) -> Merging | None:
    """What git is told about merging baselines; ``None`` where git says nothing."""
    from pytest_perfgate.adapters.stores.baseline_merge import probe_merging

    return probe_merging(root, project.baselines)


def merge_baselines(base: Path, ours: Path, theirs: Path, shown: str) -> tuple[Any, ...]:
    """Three baseline files merged into ours; the (case, what both sides did) in conflict."""
    from pytest_perfgate.adapters.stores.baseline_merge import merge_files

    return merge_files(base, ours, theirs, shown)


def read_benchmarks(path: Path) -> BenchFile:
    """Results of another benchmark tool, its file told by content."""
    from pytest_perfgate.core.analysis.foreign_files import foreign
    from pytest_perfgate.wiring.built_ins import BENCHMARK_TOOLS

    head = CommandLineTools.peek(path)
    for tool in (make() for _, make in BENCHMARK_TOOLS.values()):
        if tool.recognises(path, head):
            return tool.read(path)
    kind, fix = foreign(head)
    what = f"the file {kind}" if kind else "this is no benchmark's JSON"
    kinds = f"kinds: {', '.join(BENCHMARK_TOOLS)}"
    raise PerfgateError("artifact-unknown", what, place=str(path), fix=fix or kinds)


def host_device_key() -> str:
    """The key of this host as a device."""
    from pytest_perfgate.adapters.devices.host import probe_host

    return str(probe_host().key)


def arms(root: Path, project: Config, paths: Sequence[str]) -> ArmStore:
    """Makes arms of this repository."""
    from pytest_perfgate.adapters.arms.store import ArmStore
    from pytest_perfgate.model.verdict import ArmSettings

    settings = ArmSettings(
        mode={"package": "overlay", "": "auto"}.get(project.arms, project.arms),
        projects=tuple(one.path for one in project.projects) or (".",),
        builds=tuple((one.path, one.build) for one in project.projects if one.build),
        build=tuple(project.build.splitlines()),
        editable=tuple(str((root / place).resolve()) for place in project.editable),
        tests=project.test_paths,
        packages=project.packages,
        accepted=project.baselines,
    )
    return ArmStore(root, settings, paths)


def taken_for_package(root: Path, project: Config) -> str:
    """What fixes it where a build of this project would take its baselines for a package; empty where none would."""
    from pytest_perfgate.adapters.arms import build as backend

    return backend.taken_for_package(root, project.baselines)


def loaded_modules(names: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Files and hashes of the package under test, as this process has loaded it."""
    from pytest_perfgate.adapters.arms import overlay as proof

    return proof.loaded_modules(names) if names else ()


def neighbour_modules(root: Path, names: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Files and hashes of tests and of what lies beside them, as this process has loaded it."""
    from pytest_perfgate.adapters.arms import overlay as proof

    return proof.neighbour_modules(root, names)


def leftovers(root: Path, project: Config) -> tuple[Leftover, ...]:
    """What runs in two arms left behind: arms, locks, rounds, worktrees, children."""
    from pytest_perfgate.adapters.children.channel import stray_children
    from pytest_perfgate.model.verdict import Leftover

    pids = stray_children()
    strays = (Leftover(path=str(pid), what="a child whose parent is gone", fix=f"kill {pid}") for pid in pids)
    return (*arms(root, project, ()).leftovers(), *strays)


def deliveries(root: Path) -> Sequence[Any]:
    """Places a report can be taken to, by plugins and by us."""
    return joined(own_host(root).hook.pytest_perfgate_deliveries())


def tables() -> Mapping[str, Callable[[Any], bytes]]:
    """Files that a table of figures can be written as, by name."""
    from pytest_perfgate.adapters.formats import render_csv, render_parquet

    return {"csv": render_csv, "parquet": render_parquet}


GROUP = "pytest_perfgate"

_HOOK = "pytest_perfgate_"

_PLACE = "pyproject.toml: tool.perfgate.plugins"


def load_plugins(host: Any, names: Sequence[str], root: Path) -> None:
    """Every plugin into its host; raises where one does not load, which would be missing in silence."""
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
    """Whether a distribution may bring plugins: asking the library takes a tenth of a command's start."""
    mark = f"[{group}]".encode()
    for place in map(Path, filter(None, sys.path)):
        if place.is_file():
            return True  # an archive, which only the library looks into
        for listed in (*place.glob("*.dist-info/entry_points.txt"), *place.glob("*.egg-info/entry_points.txt")):
            if mark in listed.read_bytes():
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
    """The type and the first line of what it says."""
    first = (str(fault).strip().splitlines() or [""])[0]
    return f"{type(fault).__name__}: {first}" if first else type(fault).__name__


def costs_path(root: Path) -> Path:
    """Where the costs of a project's cases are kept."""
    return root / ".perfgate" / "costs.json"


_LONGEST_COST_S = 86400.0
"""No round of a case takes a day: what reads so is of a clock that somebody set."""


def read_costs(path: Path) -> dict[str, float]:
    """Seconds a round of each case took last time; what is lost or cannot be costs only a worse guess."""
    try:
        table = json.loads(path.read_text(encoding="utf-8"))
        costs = {str(name): float(cost) for name, cost in table.items()}
        return {name: cost for name, cost in costs.items() if 0 <= cost <= _LONGEST_COST_S}
    except (OSError, ValueError, TypeError, AttributeError, OverflowError, RecursionError):
        return {}


def write_costs(path: Path, costs: Mapping[str, float]) -> None:
    """Keep them beside those of other cases."""
    try:
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps({**read_costs(path), **costs}), encoding="utf-8")
    except OSError:
        return
