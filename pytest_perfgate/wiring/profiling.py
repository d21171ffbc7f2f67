"""The composition root of profiling: profilers with their launcher, folders, children."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_perfgate.model.profiling import IN_PROCESS, STATIC, TIMED, VARIABLE
from pytest_perfgate.wiring import CommandLineTools, configuration, joined, own_host

if TYPE_CHECKING:
    from pytest_perfgate.model.children import Capture
    from pytest_perfgate.model.document import Document
    from pytest_perfgate.model.nsys import Scrub
    from pytest_perfgate.model.profiling import Assignment

    Command = Callable[[str, Assignment], Sequence[str]]
    Environ = Mapping[str, str]


def scrubber() -> Scrub:
    """What cleans an export of Nsight Systems."""
    from pytest_perfgate.adapters.readers.nsys.scrub import scrub

    return scrub


def timeline() -> Any:
    """Nsight Systems behind the project's launcher; what it keeps is scrubbed."""
    from pytest_perfgate.adapters.profilers.nsys import Nsys

    project = configuration(Path.cwd())
    return Nsys(scrubber(), project.launcher, project.timeout)


def timeline_inspection() -> Any:
    """Reads exports as the project's own patterns say."""
    from pytest_perfgate.adapters.readers.nsys.report import read_nsys
    from pytest_perfgate.app.inspections.nsys import Nsys

    project = configuration(Path.cwd())
    known = "|".join(f"(?:{pattern})" for pattern in project.communication)
    return Nsys(read_nsys, {**({"communication": known} if known else {}), **dict(project.nsys)})


def annotation() -> Any:
    """What classifies a kernel."""
    return _ncu("annotation")


def deep() -> Any:
    """Source and machine code as well."""
    return _ncu("ncu")


def kernel_records() -> Any:
    """Kernel records of CUPTI, in process."""
    from pytest_perfgate.adapters.bindings.cupti import CuptiRecorder
    from pytest_perfgate.adapters.profilers.cupti import Cupti

    return Cupti(CuptiRecorder())


def _ncu(name: str) -> Any:
    from pytest_perfgate.adapters.profilers.ncu import Ncu
    from pytest_perfgate.adapters.profilers.profiler_api import switched

    return Ncu(switched, configuration(Path.cwd()).launcher, name=name)


def profile_tools(root: Path, hooks: Any = None, command: Command | None = None, env: Environ | None = None) -> Any:
    """What profiling asks of the world; a pytest brings its own plugins, command line and environment."""
    from functools import partial

    from pytest_perfgate.adapters.stores.profiles import ProfileFolders
    from pytest_perfgate.app.profile import ProfileTools
    from pytest_perfgate.wiring.devices import leases

    found = hooks if hooks is not None else own_host(root).hook
    tools = CommandLineTools(found)
    held, project, folders = leases(), configuration(root), ProfileFolders(root, write_views)
    return ProfileTools(
        profilers=tuple(joined(found.pytest_perfgate_profilers())),
        folders=folders,
        execute=partial(_execute, env),
        inspect=lambda paths, limits="": _inspected(
            paths, tools, {"limits": limits, **(folders.statement(paths[0]) if paths else {})}
        ),
        command=partial(_launched, project.launcher, command or partial(_command, root)),
        root=root,
        timeout_s=project.timeout,
        alone=partial(held.hold, "profiler"),
    )


def _execute(
    env: Environ | None, argv: Sequence[str], log: Path, *, extra: Mapping[str, str], cwd: Path, timeout_s: float
) -> int:
    """Run a child under a profiler with its output in a fresh log."""
    from pytest_perfgate.adapters.system.commands import run_logged

    log.unlink(missing_ok=True)
    variables = {**(os.environ if env is None else env), **extra}
    return run_logged(argv, log, folder=cwd, env=variables, timeout_s=timeout_s)


def _inspected(paths: Sequence[Path], tools: CommandLineTools, stated: Mapping[str, str]) -> Any:
    """What a profile left, read with all that is known beside it and that the inspector asks for."""
    from pytest_perfgate.app.inspect import choose

    inspector = choose(paths, {}, inspectors=tools.inspectors, peek=tools.peek)
    asked = {name for name, _ in inspector.options}
    return inspector.inspect(paths, {name: text for name, text in stated.items() if name in asked})


def _launched(launcher: Sequence[str], command: Command, nodeid: str, assigned: Assignment) -> Sequence[str]:
    """Instruments that stand before the child have the launcher before them; the others are inside it."""
    from pytest_perfgate.adapters.profilers.nsys import behind

    inside = assigned.mode in {*IN_PROCESS, TIMED, STATIC}
    return behind(launcher if inside else (), command(nodeid, assigned))


def prelude(assigned: Assignment, folder: Path) -> str:
    """The assignment and the folder in the child's own words: no launcher has to carry an environment."""
    told = f"import os; os.chdir({str(folder)!r}); os.environ[{VARIABLE!r}] = {assigned.text()!r}; "
    return f"{told}os.environ.pop('PYTEST_ADDOPTS', None); "


def _command(root: Path, nodeid: str, assigned: Assignment) -> list[str]:
    """A pytest of the command line: the project's own settings, one test."""
    from pytest_perfgate.wiring import interpreter

    start = interpreter(here=True, prelude=prelude(assigned, root))
    return [*start, nodeid, "-q", "--no-header", "-p", "no:cacheprovider"]


def write_views(folder: Path, views: Mapping[str, Document]) -> None:
    """Tables as CSV and pictures as SVG, and all of it as one page."""
    from pytest_perfgate.adapters.formats.drawings import write_drawings
    from pytest_perfgate.wiring import write_pages, write_tables

    write_tables(folder / "tables", views)
    write_drawings(folder, views)
    write_pages(folder / "report.html", list(views.values()))


def profiler_region(name: str, out: Path, hooks: Any) -> Any:
    """Entered in a profiled child around the call that counts."""
    return next(one for one in joined(hooks.pytest_perfgate_profilers()) if one.name == name).region(out)


def write_times(folder: Path, capture: Capture) -> None:
    """A call timed by events, as a record that any reader of records understands."""
    from pytest_perfgate.adapters.profilers.event import TIMES
    from pytest_perfgate.adapters.stores.records import render_record
    from pytest_perfgate.app.assemble import record_of

    (folder / TIMES).write_bytes(render_record(record_of(capture)))


def handed_files(name: str, thing: Any, home: Path, nodeid: str) -> Iterator[tuple[str, Path]]:
    """The files behind what a test attaches; what is no file yet is written into a folder of that test."""
    from pytest_perfgate.adapters.stores.handed import handed_files as found
    from pytest_perfgate.adapters.stores.profiles import safe

    return found(name, thing, home / safe(nodeid))
