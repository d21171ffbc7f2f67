"""The composition root: the one place that names adapters. Everything is imported on first use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_perfgate.model.capabilities import SupportsOperators
from pytest_perfgate.model.errors import refusal
from pytest_perfgate.wiring import devices as wiring_devices

if TYPE_CHECKING:
    from pytest_perfgate.model.metric import Document
    from pytest_perfgate.model.project import Config
    from pytest_perfgate.model.verdict import Verdict


Part = tuple[str, ...]
"""A factory as ``module:name`` below ``pytest_perfgate.``, then the parts that it is given."""

_PROFILERS: tuple[Part, ...] = (
    ("wiring.profiling:timeline",),
    ("adapters.profilers.in_process:Torch",),
    ("wiring.profiling:kernel_records",),
    ("adapters.profilers.in_process:EventTimes",),
    ("wiring.profiling:annotation",),
    ("wiring.profiling:deep",),
    ("adapters.profilers.tools:CubinKeeper",),
)

_CATALOGUE = wiring_devices.CATALOGUE

_PATTERNS = "wiring.profiling:communication"

_INSPECTORS: tuple[Part, ...] = (
    ("wiring.profiling:timeline_inspection",),
    (
        "app.inspections.kineto:Kineto",
        "adapters.readers.kineto:read_kineto",
        "adapters.readers.kineto:looks_like_kineto",
        _CATALOGUE,
        "adapters.formats.files:write_replay",
        "adapters.children.spawn:spread",
        _PATTERNS,
    ),
    ("app.inspections.cubin:Cubin", "adapters.readers.cubin:read_cubins", _CATALOGUE),
    (
        "app.inspections.ncu:Ncu",
        "adapters.readers.ncu_report:read_ncu",
        _CATALOGUE,
        "adapters.readers.ncu_report:long_head",
    ),
    ("app.inspections.ncu:Rocprof", "adapters.readers.rocprof:read_rocprof", _CATALOGUE),
    ("app.inspections.results:Runs", "adapters.stores.records:read_record"),
    ("app.inspections.results:nvbench", "adapters.readers.benchmarks:read_nvbench"),
    ("app.inspections.results:pytest_benchmark", "adapters.readers.benchmarks:read_pytest_benchmark"),
    ("app.inspections.results:google_benchmark", "adapters.readers.benchmarks:read_google_benchmark"),
    ("app.inspections.results:asv", "adapters.readers.benchmarks:read_asv"),
)

_COMMENT = "core.render.html:render_comment"

_DELIVERIES: tuple[Part, ...] = (
    ("adapters.delivery:GithubComment", _COMMENT),
    ("adapters.delivery:GitlabComment", _COMMENT),
    ("adapters.delivery:Webhook", _COMMENT),
    ("wiring.stores:json_file",),
    ("wiring.stores:html_file",),
    ("wiring.stores:markdown_file",),
)
"""The built-ins; of several that recognise a thing the first wins."""


class BuiltIns:
    """Our own instruments; they come in by the same hooks as anybody's, and know the project's own devices."""

    def __init__(self, project: Config | None = None) -> None:
        own = wiring_devices.own_sheets(project) if project is not None and project.device else {}
        patterns = {_PATTERNS: lambda: project.communication} if project is not None else {}
        self._own: Mapping[str, Any] = {**own, **patterns}

    def pytest_perfgate_runtimes(self) -> Sequence[Any]:
        return _made(wiring_devices.RUNTIMES, self._own)

    def pytest_perfgate_timers(self) -> Sequence[Any]:
        return _made(wiring_devices.TIMERS)

    def pytest_perfgate_profilers(self) -> Sequence[Any]:
        return _made(_PROFILERS)

    def pytest_perfgate_inspectors(self) -> Sequence[Any]:
        return _made(_INSPECTORS, self._own)

    def pytest_perfgate_deliveries(self) -> Sequence[Any]:
        return _made(_DELIVERIES)


_SHIPPED: Mapping[str, Any] = {}


def _made(parts: Sequence[Part], own: Mapping[str, Any] = _SHIPPED) -> list[Any]:
    return [made(part, own) for part in parts]


def made(part: Part, own: Mapping[str, Any] = _SHIPPED) -> Any:
    """What a factory makes of the parts it is given: how a use case meets its adapter.

    ``own`` are parts of the project that stand in for shipped ones.
    """
    factory, *given = (own[place] if place in own else _found(place) for place in part)
    return factory(*given)


def _found(place: str) -> Any:
    module, _, name = place.partition(":")
    return getattr(import_module(f"pytest_perfgate.{module}"), name)


def inspectors_of(hooks: Any) -> tuple[Any, ...]:
    """Every inspector, those that count work knowing the user's operators too."""
    found = tuple(joined(hooks.pytest_perfgate_inspectors()))
    models = {name: model for part in hooks.pytest_perfgate_operators() for name, model in part.items()}
    for inspector in found:
        if models and isinstance(inspector, SupportsOperators):
            inspector.operators = models
    return found


class CommandLineTools:
    """What commands that look into files need: the same plugins as in tests, hosted by ourselves."""

    def __init__(self, hooks: Any) -> None:
        from pytest_perfgate.core.metric_kinds import by_name

        self.inspectors = inspectors_of(hooks)
        self.kinds = by_name(joined(hooks.pytest_perfgate_metrics()))

    @staticmethod
    def peek(path: Path) -> bytes:
        """The first bytes of a file; a folder has none."""
        if path.is_dir():
            return b""
        try:
            from pytest_perfgate.adapters.system.files import first_bytes

            return first_bytes(path, 4096)
        except OSError as error:
            raise refusal(error, str(path)) from error


def command_line_tools(root: Path) -> CommandLineTools:
    """Tools of the command line in a project."""
    return CommandLineTools(own_host(root).hook)


def own_host(root: Path) -> Any:
    """A plugin manager without pytest: the entry-point group and ``[tool.perfgate] plugins``."""
    import pluggy

    from pytest_perfgate import hookspecs
    from pytest_perfgate.adapters.stores.configuration import read_config
    from pytest_perfgate.wiring.stores import load_plugins

    class Host(pluggy.PluginManager):
        """Takes a hook by its name, as pytest does: a plugin is written once for both."""

        def parse_hookimpl_opts(self, plugin: object, name: str) -> Any:
            ours = name.startswith("pytest_perfgate_") and callable(getattr(plugin, name, None))
            return {} if ours else None

    host = Host("pytest")
    host.add_hookspecs(hookspecs)
    project = read_config(root)
    host.register(BuiltIns(project), "perfgate-built-ins")
    load_plugins(host, project.plugins, root)
    return host


def write_pages(path: Path, documents: Sequence[Document]) -> None:
    """Documents as one HTML file."""
    from pytest_perfgate.core.render.html import render_html

    path.write_text(render_html(documents), encoding="utf-8")


def write_tables(folder: Path, documents: Mapping[str, Document]) -> tuple[Path, ...]:
    """Tables of documents as CSV files."""
    from pytest_perfgate.adapters.formats import files as tables

    return tables.write_tables(folder, documents)


def write_junit(path: Path, subject: str, verdicts: Sequence[Verdict]) -> None:
    """Verdicts as a JUnit file."""
    from pytest_perfgate.adapters.formats import files as junit

    junit.write_junit(path, subject, verdicts)


def instruments(hooks: Any) -> Any:
    """What measures in this process: those of plugins and our own, the host last."""
    from pytest_perfgate.adapters.devices.host import probe_affinity, probe_pools, probe_threads
    from pytest_perfgate.model.ports import Instruments
    from pytest_perfgate.model.values import LazySequence as Later

    return Instruments(
        runtimes=(*joined(hooks.pytest_perfgate_runtimes()), wiring_devices.host_runtime()),
        timers=(*joined(hooks.pytest_perfgate_timers()), wiring_devices.host_timer()),
        threads=probe_threads,
        pools=probe_pools,
        affinity=probe_affinity,
        inspectors=Later(lambda: inspectors_of(hooks)),  # readers of files are half of what a child would load
        profilers=Later(lambda: joined(hooks.pytest_perfgate_profilers())),
        clocks=wiring_devices.clocks(),
        leases=wiring_devices.leases(),
        contents=wiring_devices.contents(),
    )


def joined(answers: Sequence[Sequence[Any]]) -> list[Any]:
    """What several plugins gave, in one list."""
    return [member for answer in answers for member in answer]


def configuration(root: Path) -> Config:
    """The project's settings."""
    from pytest_perfgate.adapters.stores.configuration import read_config

    return read_config(root)


def interpreter(*, here: bool, prelude: str = "") -> tuple[str, ...]:
    """How a child of this interpreter is started."""
    from pytest_perfgate.adapters.children.spawn import interpreter as found

    return found(here=here, prelude=prelude)


def parent_channel(address: str) -> Any:
    """A child's way to its parent."""
    from pytest_perfgate.adapters.children.channel import connect_parent

    return connect_parent(address)


def gate_tools(root: Path, project: Config, kinds: Any, environment: Any = None) -> Any:
    """What judging asks of the world."""
    from functools import cache, partial

    from pytest_perfgate.adapters.children.spawn import LocalNursery
    from pytest_perfgate.adapters.devices.host import probe_environment
    from pytest_perfgate.adapters.stores.configuration import declared_names, settings_at
    from pytest_perfgate.adapters.stores.records import Records
    from pytest_perfgate.adapters.stores.repository import GitRepository
    from pytest_perfgate.app.accepted import placed
    from pytest_perfgate.model.ports import GateTools
    from pytest_perfgate.wiring.stores import baseline_store, history_store

    wiring_devices.lead_run()
    repository = GitRepository(root, environment, project.target)
    probe = partial(probe_environment, partial(declared_names, root, (".", *(one.path for one in project.projects))))
    baselines = baseline_store(root, project, repository)
    return GateTools(
        kinds=kinds,
        nursery=LocalNursery(),
        environment=cache(partial(placed, probe, repository)),
        roofed=wiring_devices.roofed(baselines),
        baselines=baselines,
        committed=baselines.committed,
        records=Records(root),
        history=history_store(root, project),
        repository=repository,
        settings=partial(settings_at, root, repository.show),
        here=wiring_devices.keys_here,
    )


def write_values(path: Path, values: Sequence[Any]) -> None:
    """Values of the model for another process of this run."""
    from pytest_perfgate.adapters.children.channel import encode_value
    from pytest_perfgate.adapters.system.files import write_atomically

    write_atomically(path, encode_value(list(values)))


def read_values(path: Path, kind: type[Any]) -> list[Any]:
    """The same, read; a file that is not here holds none."""
    from pytest_perfgate.adapters.children.channel import decode_value

    return decode_value(path.read_bytes(), list[kind]) if path.is_file() else []  # type: ignore[valid-type]


def here(project: Config | None = None) -> Any:
    """The devices of this machine, and the libraries that can use them."""
    return wiring_devices.machine([*BuiltIns(project).pytest_perfgate_runtimes(), wiring_devices.host_runtime()])


def ward(root: Path) -> Any:
    """What the doctor looks at."""
    from pytest_perfgate.wiring import profiling as examining

    hooks = own_host(root).hook
    return examining.ward(instruments(hooks), joined(hooks.pytest_perfgate_profilers()))
