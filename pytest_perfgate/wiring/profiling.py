"""The composition root of profiling: profilers with their launcher, folders, children."""

from __future__ import annotations

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


def kept_kernel(thing: Any, name: str) -> Path | None:
    """A compiled kernel of Triton as a file; nothing where it is something else."""
    from pytest_perfgate.adapters.profilers.cubin import is_compiled_kernel, write_compiled_kernel

    return write_compiled_kernel(thing, Path(".perfgate") / "kernels", name) if is_compiled_kernel(thing) else None
