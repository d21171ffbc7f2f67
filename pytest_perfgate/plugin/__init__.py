"""The pytest shell. It imports only modules that pytest has already loaded."""

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
    """Exempt our modules from pytest's assert rewriting, which would compile them again in each process of a container.

    Containers often set ``PYTHONDONTWRITEBYTECODE``. Our modules have no asserts, so the installer's bytecode will do.
    """
    marked = getattr(getattr(pluginmanager, "rewrite_hook", None), "_must_rewrite", None)
    if isinstance(marked, set):
        marked -= {"pytest_perfgate", "pytest_perfgate.plugin"}


def pytest_addoption(parser: pytest.Parser) -> None:
    from pytest_perfgate.plugin.options import add_options

    add_options(parser)


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config, args: Sequence[str]) -> None:
    """Save the environment and the clocks before a conftest can change them; a child receives its job."""
    import pytest_perfgate.clock  # noqa: F401 - saves the clocks as they are now
    from pytest_perfgate.plugin.options import CHILD, STARTED_WITH, refuse_unknown, started_with

    refuse_unknown(args)
    early_config.stash[STARTED_WITH] = started_with()
    if address := os.environ.pop("PERFGATE_CHANNEL", ""):
        from pytest_perfgate.plugin.child import receive_job

        early_config.stash[CHILD] = receive_job(address, early_config)
    elif "PYTEST_XDIST_WORKER" not in os.environ:
        _guard_exit(early_config)


@pytest.hookimpl(wrapper=True, specname="pytest_load_initial_conftests")
def pytest_fail_ended_conftests(early_config: pytest.Config) -> Generator[None, Any, Any]:
    """Fail a run in CI that a conftest ends with 0 while pytest loads it: pytest would pass without a word."""
    from pytest_perfgate.plugin.options import child_environment

    try:
        return (yield)
    except SystemExit as end:
        if end.code or not (ci := child_environment(early_config)).get("CI") or not _is_gated(early_config, dict(ci)):
            raise
        raise pytest.UsageError(_CONFTEST_ENDED) from end


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    from pytest_perfgate.plugin.options import CHILD

    config.addinivalue_line("markers", _MARKER)
    if CHILD not in config.stash and not hasattr(config, "workerinput"):
        _guard_exit(config)
    if CHILD in config.stash:
        from pytest_perfgate.plugin.child import ChildRole

        config.pluginmanager.register(ChildRole(config, *config.stash[CHILD]), ROLE)
    elif "PERFGATE_PROFILE" in os.environ:
        from pytest_perfgate.plugin.profiled import ProfiledRole

        config.pluginmanager.register(ProfiledRole(config, os.environ.pop("PERFGATE_PROFILE")), ROLE)
    elif hasattr(config, "workerinput"):
        from pytest_perfgate.plugin.xdist import WorkerRole

        config.pluginmanager.register(WorkerRole(config), ROLE)


def _guard_exit(config: pytest.Config) -> None:
    """Fail a process that ends itself with 0 before pytest has ended: it would pass in CI, since no hook runs."""
    from pytest_perfgate.plugin.options import child_environment

    at_start, end, process = dict(child_environment(config)), os._exit, os.getpid()
    if not at_start.get("CI") or "PERFGATE_PROFILE" in os.environ or end.__name__ == "ended":  # guarded already
        return

    def ended(status: int) -> NoReturn:
        if status == 0 and os.getpid() == process and _is_gated(config, at_start):
            capture: Any = config.pluginmanager.get_plugin("capturemanager")
            if capture is not None:
                capture.suspend_global_capture(in_=True)
            os.write(2, _ENDED_EARLY)
            status = 1
        end(status)

    os._exit = ended
    config.add_cleanup(lambda: _restore_exit(config, end))


def _restore_exit(config: pytest.Config, end: Callable[[int], NoReturn]) -> None:
    """Restore ``os._exit``; if the session failed, keep its exit status even when an exit handler ends the process."""
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


_CONFTEST_ENDED = (
    "perfgate: a conftest called sys.exit(0): no test was run, the gate gave no verdict, and this run fails"
    "\n  next  skip the tests that cannot run here: pytestmark = pytest.mark.skipif(..., reason=...)"
)


def _is_gated(config: pytest.Config, environment: dict[str, str]) -> bool:
    """Return whether this run has gated tests, or belongs to a project that has settings or baselines."""
    from pytest_perfgate.plugin.selection import has_gate

    return config.pluginmanager.has_plugin(ROLE) or has_gate(config.rootpath, environment)


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> int | None:
    """Refuse a listing in CI, since it runs no test, unless the command line asked for it: a change may set options."""
    from pytest_perfgate.plugin.options import child_environment

    if not any(getattr(config.option, name, None) for name in _LISTING) or not child_environment(config).get("CI"):
        return None
    from pytest_perfgate.plugin.controller import refused

    return refused(config)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes(config: pytest.Config) -> None:
    """Register the hooks of pytest-xdist's controller: the workers report what is gated."""
    from pytest_perfgate.plugin.xdist import DistributedRole

    config.pluginmanager.register(DistributedRole(config), "perfgate-distributed")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the tests of this shard; no other plugin may divide gated tests, or run one in several threads."""
    _refuse_misspelled(config, items)
    if config.pluginmanager.has_plugin("run-parallel"):
        for item in filter(is_gated, items):
            item.add_marker(pytest.mark.thread_unsafe(reason="perfgate measures it alone"), append=False)
            item.add_marker(pytest.mark.iterations(1), append=False)
    option = config.option
    if option.perfgate_shard or getattr(option, "splits", None) or getattr(option, "num_shards", 1) != 1:
        from pytest_perfgate.plugin.selection import divide

        divide(config, items)


def _refuse_misspelled(config: pytest.Config, items: Sequence[pytest.Item]) -> None:
    """Refuse in CI a mark that is nearly ours, since its test would not be gated; elsewhere pytest itself warns."""
    nodes = {node for item in items for node in (item, item.parent, getattr(item.parent, "parent", None)) if node}
    names = {mark.name for node in nodes for mark in node.own_markers} - {"perfgate"}
    near = [name for name in names if abs(len(name) - 8) < 3 and len(set(name.lower()) ^ set("perfgate")) < 3]
    if near:
        from pytest_perfgate.plugin.collect import refuse_misspelled

        refuse_misspelled(config, items, near)


def pytest_deselected(items: Sequence[pytest.Item]) -> None:

    # pytest-testmon hands over an object without a name for each test of a file that it did not open
    gated = [item for item in items if hasattr(item, "nodeid") and is_gated(item)]
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
        raise pytest.UsageError(f"a conftest or a plugin removed {ROLE} from the run: not every test was judged")
    return result


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """In CI, mark that the run left no record if it broke off before it measured, so that no older one is delivered."""
    from pytest_perfgate.plugin.options import child_environment

    role = session.config.pluginmanager.get_plugin(ROLE)
    worker = hasattr(session.config, "workerinput")
    broken = role is None and not worker and exitstatus not in {0, 1, 5}
    if child_environment(session.config).get("CI") and (broken or getattr(role, "recorded", None) is False):
        from pytest_perfgate.plugin.ending import close_records

        close_records(session.config, exitstatus, reported=not broken)


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Name the option that gates a suite of pytest-benchmark or pytest-codspeed, where perfgate judged no test."""
    plugins = config.pluginmanager
    other = next((name for name in ("benchmark", "codspeed") if plugins.has_plugin(name)), "")
    if not other or plugins.has_plugin(ROLE) or getattr(config.option, "benchmark_disable", False):
        return
    items = getattr(plugins.get_plugin("session"), "items", ())
    count = sum(not _BENCHES.isdisjoint(getattr(item, "fixturenames", ())) for item in items)
    if count and not config.option.collectonly:
        tests = "1 test that uses" if count == 1 else f"{count} tests that use"
        line = f"perfgate did not judge {tests} pytest-{other}; to measure and judge without an edit:"
        terminalreporter.write_line(line)
        terminalreporter.write_line("next  pytest -p pytest_perfgate.compat")


_BENCHES = frozenset({"benchmark", "codspeed_benchmark"})


def _misses(config: pytest.Config) -> bool:
    """Return whether CI runs a project with a gate and collected no gated test: the missing tests are judged too."""
    from pytest_perfgate.plugin.options import child_environment

    alone = not any(map(config.pluginmanager.has_plugin, (ROLE, "perfgate-distributed")))
    at_start = dict(child_environment(config))
    return alone and bool(at_start.get("CI")) and _is_gated(config, at_start)


@pytest.fixture
def perfgate(request: pytest.FixtureRequest) -> Perfgate:
    """Measure what it is called with and judge it by the test's ``perfgate`` marker.

    ``perfgate(fn, *args, setup=, work=, check=, calls=1, name=, limits=())`` calls ``fn`` and returns a view whose
    ``result`` is what ``fn`` returned and whose ``time`` is its time.
    """
    gate: Perfgate = role_of(request.config).gate(request.node)
    return gate


ROLE = "perfgate-role"


def is_gated(item: pytest.Item) -> bool:
    """Return whether a test has the marker or requests the fixture; this runs for every test of every session."""
    return item.get_closest_marker("perfgate") is not None or "perfgate" in getattr(item, "fixturenames", ())


def role_of(config: pytest.Config) -> Any:
    """Return the role of this pytest: a child, a worker, or the controller, which its first gated test creates."""
    role = config.pluginmanager.get_plugin(ROLE)
    if role is None:
        from pytest_perfgate.plugin.controller import ControllerRole

        role = ControllerRole(config)
        config.pluginmanager.register(role, ROLE)
    return role
