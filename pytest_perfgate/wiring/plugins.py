"""Plugins of the command line: those of the entry-point group, and those that the project names."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from pytest_perfgate.model.errors import PerfgateError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

GROUP = "pytest_perfgate"
_HOOK = "pytest_perfgate_"
_PLACE = "pyproject.toml: tool.perfgate.plugins"


def load_plugins(host: Any, names: Sequence[str], root: Path) -> None:
    """Every plugin into its host; raises where one does not load, which would be missing in silence."""
    try:
        host.load_setuptools_entrypoints(GROUP)
    except (Exception, SystemExit) as fault:
        what = f"an installed plugin of the entry-point group {GROUP!r} cannot be loaded: {_told(fault)}"
        raise PerfgateError("plugin-broken", what, mend="mend it, or uninstall the package that brings it") from fault
    for name in dict.fromkeys(names):
        plugin = _imported(name, root)
        if not any(hook.startswith(_HOOK) and callable(getattr(plugin, hook, None)) for hook in dir(plugin)):
            what = f"{name!r} is no plugin: it has no function {_HOOK}*"
            raise PerfgateError("plugin-broken", what, mend="docs/plugins.md says which hooks there are", place=_PLACE)
        try:
            host.register(plugin, name)
        except Exception as fault:
            what = f"{name!r} cannot be registered: {_told(fault)}"
            raise PerfgateError("plugin-broken", what, mend="docs/plugins.md has the hooks", place=_PLACE) from fault


def _imported(name: str, root: Path) -> Any:
    try:
        return import_module(name)
    except ModuleNotFoundError as fault:
        if fault.name != name and not name.startswith(f"{fault.name}."):
            raise _raising(name, fault) from fault
        what, mend = f"there is no module {name!r}", ""
        if (root / f"{name}.py").is_file() or (root / name / "__init__.py").is_file():
            mend = "it lies in the root, which is not on the path: PYTHONPATH=. perfgate ..., or install it"
        raise PerfgateError("plugin-broken", what, mend=mend, place=_PLACE) from fault
    except (Exception, SystemExit) as fault:
        raise _raising(name, fault) from fault


def _raising(name: str, fault: BaseException) -> PerfgateError:
    return PerfgateError("plugin-broken", f"the import of {name!r} raises {_told(fault)}", place=_PLACE)


def _told(fault: BaseException) -> str:
    """The type and the first line of what it says."""
    first = (str(fault).strip().splitlines() or [""])[0]
    return f"{type(fault).__name__}: {first}" if first else type(fault).__name__
