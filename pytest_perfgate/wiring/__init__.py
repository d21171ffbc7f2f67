"""The composition root: the only place that names adapters. Everything is imported on first use."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pytest_perfgate.model.device import SupportsOperators
from pytest_perfgate.model.errors import refusal
from pytest_perfgate.wiring import devices as wiring_devices

if TYPE_CHECKING:
    from pluggy import PluginManager

    from pytest_perfgate.adapters.children.channel import ParentChannel
    from pytest_perfgate.model.device import Availability, Device
    from pytest_perfgate.model.metric import Document, Problem
    from pytest_perfgate.model.ports import GateTools, Instruments
    from pytest_perfgate.model.privacy import Names
    from pytest_perfgate.model.project import Config
    from pytest_perfgate.model.verdict import Verdict

T = TypeVar("T")


def inspectors_of(hooks: Any) -> tuple[Any, ...]:
    """Return every inspector; those that count work know the user's operators, and outputs name no person."""
    from pytest_perfgate.app.inspections import AnonymousInspector

    inspectors = tuple(joined(hooks.pytest_perfgate_inspectors()))
    models = {name: model for part in hooks.pytest_perfgate_operators() for name, model in part.items()}
    for inspector in inspectors:
        if models and isinstance(inspector, SupportsOperators):
            inspector.operators = models
    return tuple(AnonymousInspector(inspector, _named_by) for inspector in inspectors)


def _named_by(paths: Sequence[Path]) -> Names:
    from pytest_perfgate.adapters.readers.fields import named_by

    here = str(Path.cwd())
    names = named_by(paths)
    return replace(names, roots=names.roots | {here}) if here.count("/") > 1 else names


class CommandLineTools:
    """What commands on files need, with the same plugins as in tests, loaded without pytest."""

    def __init__(self, hooks: Any) -> None:
        from pytest_perfgate.core.metric_kinds import by_name

        self.inspectors = inspectors_of(hooks)
        self.kinds = by_name(joined(hooks.pytest_perfgate_metrics()))

    @staticmethod
    def peek(path: Path) -> bytes:
        """Return the first bytes of a file; empty for a folder."""
        if path.is_dir():
            return b""
        try:
            from pytest_perfgate.adapters.system.files import first_bytes

            return first_bytes(path, 4096)
        except OSError as error:
            raise refusal(error, str(path)) from error


def command_line_tools(root: Path, config: Config | None = None) -> CommandLineTools:
    return CommandLineTools(own_host(root, config).hook)


def own_host(root: Path, config: Config | None = None) -> PluginManager:
    """Return a plugin manager without pytest, with the entry-point group and ``[tool.perfgate] plugins``."""
    import pluggy

    from pytest_perfgate import hookspecs
    from pytest_perfgate.adapters.stores.configuration import read_config
    from pytest_perfgate.wiring.built_ins import BuiltIns
    from pytest_perfgate.wiring.stores import load_plugins

    class Host(pluggy.PluginManager):
        """Adds hooks by name as pytest does, so that a plugin is written once for both."""

        def parse_hookimpl_opts(self, plugin: object, name: str) -> Any:
            own_hook = name.startswith("pytest_perfgate_") and callable(getattr(plugin, name, None))
            return {} if own_hook else None

    host = Host("pytest")
    host.add_hookspecs(hookspecs)
    project = config if config is not None else read_config(root)
    host.register(BuiltIns(project), "perfgate-built-ins")
    load_plugins(host, project.plugins, root)
    return host


def write_pages(path: Path, documents: Sequence[Document]) -> None:
    from pytest_perfgate.core.render.html import render_html

    path.write_text(render_html(documents), encoding="utf-8")


def write_tables(folder: Path, documents: Mapping[str, Document]) -> tuple[Path, ...]:
    from pytest_perfgate.adapters import formats

    return formats.write_tables(folder, documents)


def write_junit(path: Path, subject: str, verdicts: Sequence[Verdict]) -> None:
    from pytest_perfgate.adapters import formats

    formats.write_junit(path, subject, verdicts)


class LazySequence(Sequence[T]):
    """A sequence whose members are made on first use, once."""

    def __init__(self, make: Callable[[], Iterable[T]]) -> None:
        self._make = make

    @cached_property
    def _members(self) -> tuple[T, ...]:
        return tuple(self._make())

    def __getitem__(self, at: Any) -> Any:
        return self._members[at]

    def __len__(self) -> int:
        return len(self._members)


def packages_elsewhere(root: Path, project: Config) -> Callable[[], tuple[Problem, ...]]:
    """Return a function that finds packages of this checkout that were loaded from another; it looks after imports."""
    problems: dict[int, tuple[Problem, ...]] = {}

    def look() -> tuple[Problem, ...]:
        if (count := len(sys.modules)) not in problems:
            from pytest_perfgate.adapters.arms.overlay import loaded_origin
            from pytest_perfgate.model.metric import Problem

            texts = imported_elsewhere(root, project, loaded_origin)
            problems[count] = tuple(Problem(code="package-elsewhere", what=text, retry=False) for text in texts)
        return problems[count]

    return look


def imported_elsewhere(root: Path, project: Config, origin: Callable[[str], str | None]) -> Iterator[str]:
    """Yield which packages of this checkout come from another one, by their origins."""
    from pytest_perfgate.adapters.arms.overlay import from_elsewhere

    for name, own, folder in from_elsewhere(
        root, [nested.path for nested in project.projects], project.packages, origin
    ):
        if folder.name in {"site-packages", "dist-packages"}:
            yield f"{name} in {folder} is another version than this checkout's {own.relative_to(root).as_posix()}"
        else:
            place = own.parent if own.name == "__init__.py" else own
            yield f"{name} is imported from {folder}, and this checkout holds {place.relative_to(root).as_posix()}"


def instruments(hooks: Any, root: Path | None = None, project: Config | None = None) -> Instruments:
    """Return what measures in this process: instruments of plugins and our own, the host last."""
    from pytest_perfgate.adapters.devices.host import probe_affinity, probe_pools, probe_threads
    from pytest_perfgate.adapters.system.processes import ProcessMemory, queued_ns
    from pytest_perfgate.model.ports import Instruments

    return Instruments(
        runtimes=(*joined(hooks.pytest_perfgate_runtimes()), wiring_devices.host_runtime()),
        timers=(*joined(hooks.pytest_perfgate_timers()), wiring_devices.host_timer()),
        threads=probe_threads,
        pools=probe_pools,
        affinity=probe_affinity,
        inspectors=LazySequence(lambda: inspectors_of(hooks)),  # readers of files are half of what a child would import
        profilers=LazySequence(lambda: joined(hooks.pytest_perfgate_profilers())),
        clocks=wiring_devices.clocks(),
        leases=wiring_devices.leases(),
        contents=wiring_devices.contents(),
        memory=ProcessMemory(),
        queued=queued_ns,
        energy=wiring_devices.energy_meter,
        elsewhere=packages_elsewhere(root, project) if root and project else tuple,
    )


def joined(answers: Sequence[Sequence[Any]]) -> list[Any]:
    """Return the answers of several plugins in one list."""
    return [member for answer in answers for member in answer]


def configuration(root: Path, *, whole: bool = False) -> Config:
    """Return the project's settings; ``whole`` also parses a file that does not mention perfgate."""
    from pytest_perfgate.adapters.stores.configuration import read_config

    return read_config(root, whole=whole)


def interpreter(*, here: bool, prelude: str = "") -> tuple[str, ...]:
    """Return the command that starts a child of this interpreter."""
    from pytest_perfgate.adapters.children import spawn

    return spawn.interpreter(here=here, prelude=prelude)


def calibration_path(root: Path) -> Path:
    """Return the file of the rounds of ``perfgate calibrate``, which are of this machine."""
    return root / ".perfgate" / "calibration.bin"


def parent_channel(address: str) -> ParentChannel:
    from pytest_perfgate.adapters.children.channel import connect_parent

    return connect_parent(address)


def gate_tools(root: Path, project: Config, kinds: Any, environment: Any = None, *, watched: bool = False) -> GateTools:
    """Return what judging needs from outside; ``watched`` compares the working copy at the end with that of now."""
    from functools import cache, partial

    from pytest_perfgate.adapters.children.spawn import LocalSpawner
    from pytest_perfgate.adapters.devices.host import probe_environment
    from pytest_perfgate.adapters.stores.configuration import declared_names, settings_at
    from pytest_perfgate.adapters.stores.records import Records
    from pytest_perfgate.adapters.stores.repository import GitRepository
    from pytest_perfgate.model.measurement import TREE, commit_name
    from pytest_perfgate.model.ports import GateTools
    from pytest_perfgate.wiring.stores import baseline_store, history_store

    wiring_devices.lead_run()
    repository = GitRepository(root, environment, project.target)
    probe = partial(
        probe_environment, partial(declared_names, root, (".", *(nested.path for nested in project.projects)))
    )
    baselines = baseline_store(root, project, repository)

    def tree() -> tuple[str, bool]:
        return repository.head(), repository.dirty()

    began = tree() if watched else None

    @cache
    def environment_here() -> Any:
        here, now = probe(), tree()
        if began is None or now == began:
            return replace(here, commit=now[0], dirty=now[1])
        trees = (commit_name(head[:10], dirty=dirty) or "no commit" for head, dirty in (began, now))
        return replace(here, commit=began[0], dirty=True, facts=(*here.facts, (TREE, ", then ".join(trees))))

    return GateTools(
        kinds=kinds,
        spawner=LocalSpawner(),
        environment=environment_here,
        with_measured_ceilings=wiring_devices.with_measured_ceilings(baselines),
        baselines=baselines,
        committed=baselines.committed,
        records=Records(root),
        history=history_store(root, project),
        repository=repository,
        settings=partial(settings_at, root, repository.show),
        here=wiring_devices.keys_here,
    )


def write_values(path: Path, values: Sequence[Any]) -> None:
    """Write values of the model for another process of this run."""
    from pytest_perfgate.adapters.children.channel import encode_value
    from pytest_perfgate.adapters.system.files import write_atomically

    write_atomically(path, encode_value(list(values)))


def read_values(path: Path, kind: type[Any]) -> list[Any]:
    """Return the values of such a file; empty if it does not exist."""
    from pytest_perfgate.adapters.children.channel import decode_value

    return decode_value(path.read_bytes(), list[kind]) if path.is_file() else []  # type: ignore[valid-type]


def this_machine(project: Config | None) -> tuple[list[Device], list[Availability]]:
    """Return the devices of this machine, and the libraries that can use them."""
    from pytest_perfgate.wiring.built_ins import BuiltIns

    return wiring_devices.machine([*BuiltIns(project).pytest_perfgate_runtimes(), wiring_devices.host_runtime()])
