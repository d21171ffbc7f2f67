"""The composition root of profiling: profilers with their launcher, folders, children."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_perfgate.wiring import CommandLineTools, configuration, interpreter, joined, own_host

if TYPE_CHECKING:
    from pytest_perfgate.model.nsys import Scrub


def scrubber() -> Scrub:
    """What cleans an export of Nsight Systems."""
    from pytest_perfgate.adapters.readers.nsys.scrub import scrub

    return scrub


def timeline() -> Any:
    """Nsight Systems behind the project's launcher; what it keeps is scrubbed."""
    from pytest_perfgate.adapters.profilers.nsys import Nsys

    project = configuration(Path.cwd())
    return Nsys(scrubber(), project.launcher, project.timeout)


def annotation() -> Any:
    """What classifies a kernel."""
    return _ncu("annotation")


def deep() -> Any:
    """Source and machine code as well."""
    return _ncu("ncu")


def _ncu(name: str) -> Any:
    from pytest_perfgate.adapters.profilers.ncu import Ncu
    from pytest_perfgate.adapters.profilers.profiler_api import switched

    return Ncu(switched, configuration(Path.cwd()).launcher, name=name)


def profile_tools(root: Path) -> Any:
    """What profiling asks of the world."""
    from pytest_perfgate.adapters.stores.profiles import ProfileFolders, run_logged
    from pytest_perfgate.app.inspect import inspect
    from pytest_perfgate.app.profile import ProfileTools

    hooks = own_host(root).hook
    tools = CommandLineTools(hooks)
    return ProfileTools(
        profilers=tuple(joined(hooks.pytest_perfgate_profilers())),
        folders=ProfileFolders(root),
        execute=run_logged,
        inspect=lambda paths: inspect(paths, {}, inspectors=tools.inspectors, peek=tools.peek),
        interpreter=interpreter(here=True),
        root=root,
        timeout_s=configuration(root).timeout,
    )


def profiler_region(name: str, out: Path) -> Any:
    """Entered in a profiled child around the call that counts."""
    profilers = joined(own_host(Path.cwd()).hook.pytest_perfgate_profilers())
    return next(profiler for profiler in profilers if profiler.name == name).region(out)


def handed_files(name: str, thing: Any, home: Path, nodeid: str) -> Iterator[tuple[str, Path]]:
    """The files behind what a test attaches; what is no file yet is written into a folder of that test."""
    from pytest_perfgate.adapters.stores.handed import handed_files as found
    from pytest_perfgate.adapters.stores.profiles import safe

    return found(name, thing, home / safe(nodeid))
