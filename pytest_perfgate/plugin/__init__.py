"""The pytest shell: nothing is imported here that pytest has not loaded already."""

from __future__ import annotations

import atexit
import os
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from pytest_perfgate.plugin.fixture import Perfgate


_MARKER = (
    "perfgate(*limits, on=, capture=, timer=, runtime=, cache=, clocks=, data=, rounds=, budget=): "
    "limits that this test's measurement must keep, such as 'time <= 3 ms' or 'slowdown <= 3%'"
)

_LISTING = (
    "collectonly", "setupplan", "setuponly", "showfixtures", "show_fixtures_per_test", "markers", "cacheshow", "help",
    "version",
)  # fmt: skip


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    _load_as_installed(pluginmanager)  # pytest calls this hook before any other
    from pytest_perfgate import hookspecs

    pluginmanager.add_hookspecs(hookspecs)


def _load_as_installed(pluginmanager: pytest.PytestPluginManager) -> None:
    """Asserts of a plugin's own modules are rewritten by pytest, and compiled anew by every process of a container.

    There ``PYTHONDONTWRITEBYTECODE`` is usual. We have no such asserts: what the installer compiled is what we load.
    """
    marked = getattr(getattr(pluginmanager, "rewrite_hook", None), "_must_rewrite", None)
    if isinstance(marked, set):
        marked -= {"pytest_perfgate", "pytest_perfgate.plugin"}


def pytest_addoption(parser: pytest.Parser) -> None:
    from pytest_perfgate.plugin.options import add_options

    add_options(parser)


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config, args: Sequence[str]) -> None:
    """What CI says of a run is not a conftest's to rewrite, nor are the clocks."""
    import pytest_perfgate.clock  # noqa: F401 - taken as they are now
    from pytest_perfgate.plugin.options import STARTED_WITH, refuse_unknown, started_with

    refuse_unknown(args)
    early_config.stash[STARTED_WITH] = started_with()


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    from pytest_perfgate.plugin.options import child_environment

    config.addinivalue_line("markers", _MARKER)
    address = os.environ.pop("PERFGATE_CHANNEL", "")
    alone = not address and "PERFGATE_PROFILE" not in os.environ and not hasattr(config, "workerinput")
    at_start = child_environment(config)
    if alone and at_start.get("CI"):
        _guard_exit(config, dict(at_start))
    if address:
        from pytest_perfgate.plugin.child import ChildRole

        config.pluginmanager.register(ChildRole(config, address), ROLE)
    elif "PERFGATE_PROFILE" in os.environ:
        from pytest_perfgate.plugin.profiled import ProfiledRole

        config.pluginmanager.register(ProfiledRole(config, os.environ.pop("PERFGATE_PROFILE")), ROLE)
    elif hasattr(config, "workerinput"):
        from pytest_perfgate.plugin.xdist import WorkerRole

        config.pluginmanager.register(WorkerRole(config), ROLE)


def _guard_exit(config: pytest.Config, at_start: dict[str, str]) -> None:
    """In CI a process that ends itself with 0, before pytest has ended, would pass in silence: no hook hears of it."""
    end, process = os._exit, os.getpid()

    def ended(status: int) -> NoReturn:
        if status == 0 and os.getpid() == process and _is_gated(config, at_start):
            capture: Any = config.pluginmanager.get_plugin("capturemanager")
            if capture is not None:
                capture.suspend_global_capture(in_=True)
            os.write(2, _ENDED_EARLY)
            status = 1
        end(status)

    os._exit = ended
    config.add_cleanup(lambda: _unguard(config, end))


def _unguard(config: pytest.Config, end: Callable[[int], NoReturn]) -> None:
    """From here on os._exit is Python's own; but what failed stays failed, whatever runs at the process's very end."""
    os._exit = end  # type: ignore[assignment]
    session: Any = config.pluginmanager.get_plugin("session")
    failed, process = int(getattr(session, "exitstatus", 0)), os.getpid()
    if failed and config.pluginmanager.has_plugin(ROLE):
        atexit.register(_at_exit, lambda status: end(status or failed) if os.getpid() == process else end(status))


def _at_exit(ended: Callable[[int], NoReturn]) -> None:
    os._exit = ended  # type: ignore[assignment]


_ENDED_EARLY = (
    b"\nperfgate: something called os._exit(0) before pytest had ended: the gate gave no verdict, and this run fails"
    b"\n  next  find the call; a test that must end its process so does it in a process of its own\n"
)


def _is_gated(config: pytest.Config, environment: dict[str, str]) -> bool:
    """Whether this run has gated tests, or belongs to a project that keeps baselines."""
    from pytest_perfgate.plugin.selection import keeps_baselines

    return config.pluginmanager.has_plugin(ROLE) or keeps_baselines(config.rootpath, environment)


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> int | None:
    """A listing runs no test: in CI that is for the command to say, and not for settings that a change may write."""
    from pytest_perfgate.plugin.options import child_environment

    if not any(getattr(config.option, name, None) for name in _LISTING) or not child_environment(config).get("CI"):
        return None
    from pytest_perfgate.plugin.controller import refused

    return refused(config)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes(config: pytest.Config) -> None:
    """This is the controller of pytest-xdist: its workers will say what is gated."""
    from pytest_perfgate.plugin.xdist import DistributedRole

    config.pluginmanager.register(DistributedRole(config), "perfgate-distributed")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Divide the run where it is one of several shards; no other plugin may divide gated tests."""
    _refuse_misspelt(config, items)
    option = config.option
    if option.perfgate_shard or getattr(option, "splits", None) or getattr(option, "num_shards", 1) != 1:
        from pytest_perfgate.plugin.selection import divide

        divide(config, items)


def _refuse_misspelt(config: pytest.Config, items: Sequence[pytest.Item]) -> None:
    """In CI a mark that is nearly ours would gate nothing in silence; elsewhere pytest's own warning does."""
    nodes = {node for item in items for node in (item, item.parent, getattr(item.parent, "parent", None)) if node}
    names = {mark.name for node in nodes for mark in node.own_markers} - {"perfgate"}
    near = [name for name in names if abs(len(name) - 8) < 3 and len(set(name.lower()) ^ set("perfgate")) < 3]
    if near:
        from pytest_perfgate.plugin.collect import refuse_misspelt

        refuse_misspelt(config, items, near)


def pytest_deselected(items: Sequence[pytest.Item]) -> None:

    gated = [item for item in items if is_gated(item)]
    if gated:
        from pytest_perfgate.plugin.selection import deselected

        deselected(gated[0].config).update(item.nodeid for item in gated)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> Generator[None, Any, Any]:

    gated = [item for item in getattr(session, "items", ()) if is_gated(item)]
    option = session.config.option
    runs = not (option.collectonly or getattr(option, "setuponly", False))  # --setup-plan implies --setup-only
    plugins, first = session.config.pluginmanager, None
    if runs and (gated or option.perfgate_shard or _misses(session.config)):
        first = role_of(session.config)
        first.before(session, gated)
    result = yield
    role = plugins.get_plugin(ROLE)
    if role is not None and runs:
        role.after(session)
    if first is not None and role is not first:
        raise pytest.UsageError(f"a conftest or a plugin took {ROLE} out of the run: not every test was judged")
    return result


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """In CI somebody delivers the record of the run: one that broke off before it measured has none."""
    from pytest_perfgate.plugin.options import child_environment

    role = session.config.pluginmanager.get_plugin(ROLE)
    worker = hasattr(session.config, "workerinput")
    broken = role is None and not worker and exitstatus not in {0, 1, 5}
    if child_environment(session.config).get("CI") and (broken or getattr(role, "recorded", None) is False):
        from pytest_perfgate.plugin.ending import close_records

        close_records(session.config, exitstatus, reported=not broken)


def _misses(config: pytest.Config) -> bool:
    """In CI a project with baselines has gated tests; where none was collected, that is judged too."""
    from pytest_perfgate.plugin.options import child_environment

    alone = not any(map(config.pluginmanager.has_plugin, (ROLE, "perfgate-distributed")))
    if not alone or not child_environment(config).get("CI"):
        return False
    from pytest_perfgate.plugin.selection import keeps_baselines

    return keeps_baselines(config.rootpath, child_environment(config))


@pytest.fixture
def perfgate(request: pytest.FixtureRequest) -> Perfgate:
    """Measures what it is called with and judges it by the test's ``perfgate`` marker.

    ``perfgate(fn, *args, setup=, work=, check=, calls=1, name=, limits=())`` calls ``fn`` and
    returns a view whose ``result`` is what ``fn`` returned and whose ``time`` is its time.
    """
    gate: Perfgate = role_of(request.config).gate(request.node)
    return gate


ROLE = "perfgate-role"


def is_gated(item: pytest.Item) -> bool:
    """Whether a test has the marker or asks for the fixture; asked of every test of every session."""
    return item.get_closest_marker("perfgate") is not None or "perfgate" in getattr(item, "fixturenames", ())


def role_of(config: pytest.Config) -> Any:
    """What this pytest is to the gate: a child, a worker, or else the controller, from its first gated test on."""
    role = config.pluginmanager.get_plugin(ROLE)
    if role is None:
        from pytest_perfgate.plugin.controller import ControllerRole

        role = ControllerRole(config)
        config.pluginmanager.register(role, ROLE)
    return role
