"""Access to profilers and inspectors."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union

from pytest_perfgate.app.inspections import choose, inspect
from pytest_perfgate.model.device import SupportsOwnQueue
from pytest_perfgate.model.protocol import IN_PROCESS, STATIC, TIMED, VARIABLE
from pytest_perfgate.model.verdict import CaseReport, RunReport
from pytest_perfgate.wiring import CommandLineTools, command_line_tools, configuration, instruments, joined, own_host
from pytest_perfgate.wiring import devices as machine

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from pytest_perfgate.adapters.stores.profiles import ProfileFolders
    from pytest_perfgate.app.diagnosis import DoctorTools
    from pytest_perfgate.app.profile import Profiled, ProfileTools
    from pytest_perfgate.model.metric import Analysis, Document
    from pytest_perfgate.model.ports import Profiler
    from pytest_perfgate.model.profiles import Scrub
    from pytest_perfgate.model.project import Config
    from pytest_perfgate.model.protocol import Assignment, Capture

    Command = Callable[[str, Assignment], Sequence[str]]
    Environ = Mapping[str, str]


def scrubber() -> Scrub:
    """Return a function that cleans an export of Nsight Systems."""
    from pytest_perfgate.adapters.readers.nsys_report import scrub

    return scrub


def profile_tools(
    root: Path, hooks: Any = None, command: Command | None = None, env: Environ | None = None, out: Path | None = None
) -> ProfileTools:
    """Return what profiling needs from outside; a pytest passes its own plugins, command line and environment."""
    from pytest_perfgate.adapters.stores.profiles import ProfileFolders
    from pytest_perfgate.app.profile import ProfileTools

    hook = hooks if hooks is not None else own_host(root).hook
    tools = CommandLineTools(hook)
    lease, project, folders = machine.leases(), configuration(root), ProfileFolders(root, write_views, out)
    return ProfileTools(
        profilers=tuple(joined(hook.pytest_perfgate_profilers())),
        folders=folders,
        execute=partial(_execute, env),
        inspect=partial(_inspected, tools, folders),
        command=partial(_launched, project.launcher, command or partial(_command, root)),
        root=root,
        timeout_s=project.timeout,
        exclusively=partial(lease.hold, "profiler"),
        revision=partial(_revision, root),
    )


def _revision(root: Path) -> str:
    """Return the current commit, and whether it was edited since."""
    from pytest_perfgate.adapters.stores.repository import GitRepository

    repository = GitRepository(root)
    head = repository.head()[:7]
    return f"{head} with changes" if head and repository.dirty() else head


def _execute(
    env: Environ | None, argv: Sequence[str], log: Path, *, extra: Mapping[str, str], cwd: Path, timeout_s: float
) -> int:
    """Run a child under a profiler with its output in a new log."""
    from pytest_perfgate.adapters.system.processes import run_logged

    log.unlink(missing_ok=True)
    return run_logged(argv, log, folder=cwd, env={**(os.environ if env is None else env), **extra}, timeout_s=timeout_s)


def _inspected(tools: CommandLineTools, folders: ProfileFolders, paths: Sequence[Path], limits: str = "") -> Analysis:
    """Return the analysis of a profile, with the facts beside it that the inspector asks for."""
    stated = {"limits": limits, **(folders.statement(paths[0]) if paths else {})}
    inspector = choose(paths, {}, inspectors=tools.inspectors, peek=tools.peek)
    return inspector.inspect(paths, {name: stated[name] for name, _ in inspector.options if name in stated})


def _launched(launcher: Sequence[str], command: Command, nodeid: str, assigned: Assignment) -> Sequence[str]:
    """Return a child's command behind the launcher, unless the profiler puts the launcher before itself."""
    from pytest_perfgate.adapters.profilers.tools import with_launcher

    inside = assigned.mode in {*IN_PROCESS, TIMED, STATIC}
    return with_launcher(launcher if inside else (), command(nodeid, assigned))


def prelude(assigned: Assignment, folder: Path) -> str:
    """Return Python code with the assignment and the folder, so that a launcher need not pass an environment."""
    code = f"import os; os.chdir({str(folder)!r}); os.environ[{VARIABLE!r}] = {assigned.text()!r}; "
    return f"{code}os.environ.pop('PYTEST_ADDOPTS', None); "


def _command(root: Path, nodeid: str, assigned: Assignment) -> list[str]:
    """Return the command of a pytest for one test, with the project's own settings."""
    from pytest_perfgate.wiring import interpreter

    words = (nodeid, "-q", "--no-header", "-p", "no:cacheprovider")
    return [*interpreter(here=True, prelude=prelude(assigned, root)), *words]


def write_views(folder: Path, views: Mapping[str, Document]) -> None:
    """Write tables as CSV, pictures as SVG, and everything as one page."""
    from pytest_perfgate.adapters.formats import write_drawings
    from pytest_perfgate.core.render.drawing import standalone
    from pytest_perfgate.wiring import write_pages, write_tables

    write_tables(folder / "tables", views)
    write_drawings(folder, views, standalone)
    write_pages(folder / "report.html", list(views.values()))


def write_pictures(folder: Path, document: Document) -> tuple[Path, ...]:
    from pytest_perfgate.adapters.formats import write_drawings
    from pytest_perfgate.core.render.drawing import standalone
    from pytest_perfgate.model.errors import written

    with written(str(folder)):
        return write_drawings(folder, {"page": document}, standalone)


def write_picture(path: Path, svg: str) -> None:
    """Write one picture as SVG, or as PNG by an available program."""
    from pytest_perfgate.adapters import formats

    formats.write_picture(path, svg)


def profiler_region(name: str, out: Path, hooks: Any) -> AbstractContextManager[None]:
    """Return the block of a profiled child around the call that counts."""
    profiler: Profiler = next(one for one in joined(hooks.pytest_perfgate_profilers()) if one.name == name)
    return profiler.region(out)


def write_times(folder: Path, capture: Capture) -> None:
    """Write a call timed by events as a record, which any reader of records understands."""
    from pytest_perfgate.adapters.profilers.in_process import TIMES
    from pytest_perfgate.adapters.stores.records import render_record
    from pytest_perfgate.app.measure import record_of

    (folder / TIMES).write_bytes(render_record(record_of(capture)))


def attachment_files(name: str, thing: Any, home: Path, nodeid: str) -> Iterator[tuple[str, Path]]:
    """Yield the files behind an attached thing; other content is written into a folder of that test."""
    from pytest_perfgate.adapters.stores import profiles

    return profiles.attachments(name, thing, home / profiles.folder_name(nodeid))


Place = Union[str, Path]


def look(*paths: Place, **options: Any) -> Analysis:
    """Inspect one file, or the several of one job; options are those of ``perfgate inspect --set``."""
    tools = command_line_tools(Path.cwd())
    return inspect([Path(path) for path in paths], _texts(options), inspectors=tools.inspectors, peek=tools.peek)


def profile(nodeid: str, mode: str = "annotation", *, out: Place = "", kernel: str = "", launches: int = 0) -> Profiled:
    """Profile one test of the project here, as ``perfgate profile`` does; return its folder, files and analysis."""
    from pytest_perfgate.app import profile as use_case
    from pytest_perfgate.model.plan import ClockPolicy, Plan, parse_case_key

    tools = profile_tools(Path.cwd(), out=Path(out) if out else None)
    plan = Plan(clocks=ClockPolicy.OBSERVE)
    return use_case.profile(parse_case_key(nodeid), mode, plan, replace(tools, only=(kernel, launches)))


def compare(before: Place, after: Place, **options: Any) -> Analysis:
    """Compare two files of one kind; the first is the reference."""
    tools = command_line_tools(Path.cwd())
    paths, settings = [Path(before), Path(after)], _texts(options)
    inspector = choose(paths, settings, inspectors=tools.inspectors, peek=tools.peek)
    return inspector.compare(paths[:1], paths[1:], settings)


def frame(source: Any = "", view: str = "") -> Any:
    """Return a table as a pandas frame.

    Of an analysis, a document or a table: the first table of the named view, or its metrics. Of a run, the path or
    address of a record, or nothing (the last run here): one row a verdict. Of the history here (the view "history"):
    one row a figure, of the cases with this in their name.
    """
    from pytest_perfgate.adapters import formats as tables

    if isinstance(source, (str, Path, RunReport)):
        from pytest_perfgate.wiring.stores import history_table, record_store

        if view == "history":
            return tables.frame(history_table(Path.cwd(), configuration(Path.cwd()), str(source)))
        return tables.run_frame(source, record_store(Path.cwd()).read)
    return tables.frame(source, view)


def frames(source: Any, view: str = "") -> dict[str, Any]:
    """Return every table of a document, or of one view of an analysis, by its title."""
    from pytest_perfgate.adapters import formats as tables

    return tables.frames(source, view)


def write_reports(folder: Path, analysis: Analysis) -> tuple[Path, ...]:
    """Write the reports of an analysis with its tables; without own reports, its first view."""
    from pytest_perfgate.adapters import formats as reports
    from pytest_perfgate.app.inspections import with_pictures_first
    from pytest_perfgate.core.render.html import render_html, render_markdown

    def page(document: Document) -> str:
        return render_html(with_pictures_first(document, analysis))

    names = analysis.reports or {"report": next(iter(analysis.views))}
    pages = {stem: analysis.views[view]() for stem, view in names.items()}
    tables = {view: analysis.views[view]() for view in analysis.tables} or dict(pages)
    paths = reports.write_reports(folder, pages, tables, {"md": render_markdown, "html": page})
    for name, build in analysis.data.items():
        (folder / name).write_text(build(), encoding="utf-8")
    return (*paths, *(folder / name for name in analysis.data))


def write_workbook(path: Path, documents: Mapping[str, Document]) -> Path:
    from pytest_perfgate.adapters import formats as workbook

    return workbook.write_workbook(path, documents)


def _texts(options: dict[str, Any]) -> dict[str, str]:
    return {name: str(value) for name, value in options.items()}


def faulty_cards(root: Path, cards: Sequence[Any]) -> Iterator[str]:
    """Yield faults that this machine's cards report, and those that the last records show."""
    from pytest_perfgate.adapters.devices.clocks import SupportsHealth, faults_of
    from pytest_perfgate.adapters.stores.records import Records
    from pytest_perfgate.core.judge.suite import slow_cards
    from pytest_perfgate.model.errors import PerfgateError

    for card in cards:
        health = card.health() if isinstance(card, SupportsHealth) else None
        for text in faults_of(health, health) if health is not None else ():
            yield f"{card.uuid()}: {text}. Nothing that it measures is valid until it was reset: nvidia-smi -r."
    records = Records(root)
    reports: list[CaseReport] = []
    for path in records.paths()[-_RECORDS:]:
        with suppress(PerfgateError):  # an unreadable one is reported where it is needed
            reports += records.read(str(path)).cases
    for slow in slow_cards(reports):
        yield f"{slow.text} of the last records. Look at its power limit, its heat and its errors: nvidia-smi -q."


_RECORDS = 5  # in which cards slower than others are sought


def doctor_tools(root: Path, config: Config) -> DoctorTools:
    """Return what the doctor examines, with the instruments of the command line."""
    from pytest_perfgate.adapters.devices import host as permissions
    from pytest_perfgate.adapters.devices.clock_locks import read_locks
    from pytest_perfgate.adapters.devices.clocks import answering_cards
    from pytest_perfgate.app.diagnosis import DoctorTools, timed_here

    tools = instruments(own_host(root, config).hook)
    devices, libraries = machine.machine(tools.runtimes)
    runtimes = [runtime for runtime, availability in zip(tools.runtimes, libraries) if availability.usable]
    for runtime in (one for one in runtimes if isinstance(one, SupportsOwnQueue)):
        runtime.own_queue()
    management, shown = machine.management(), permissions.visible_devices()
    library = management.availability()
    cards, lost = answering_cards(management) if library.usable else ([], [])
    return DoctorTools(
        devices=devices,
        libraries=libraries,
        runtimes=runtimes,
        timers=tools.timers,
        management=library,
        profilers=[timed_here(profiler.availability(), runtimes) for profiler in tools.profilers],
        gpu_permissions=permissions.probe_gpu_permissions(driven=library.usable),
        host_permissions=permissions.probe_host_permissions(),
        locks=read_locks(),
        visible=shown or "nothing restricts them",
        restricted=bool(shown),
        resolution=machine.finest,
        driven=[name for _, name in cards],
        faulty=(*lost, *faulty_cards(root, [card for card, _ in cards])) if library.usable else (),
    )
