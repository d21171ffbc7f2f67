"""Options of pytest-benchmark and pytest-codspeed."""

from __future__ import annotations

import datetime as dt
import json
import platform
import re
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import TestCase

import pytest

import pytest_perfgate
from pytest_perfgate.clock import HOST_CLOCK

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator


_SEATS = ("benchmark", "codspeed")
"""The names under which those plugins are loaded."""

_NOTES = pytest.StashKey[list[str]]()

_FLAGS = {
    "--benchmark-only": "skip the tests without a benchmark",
    "--benchmark-skip": "skip the benchmarks",
    "--benchmark-disable": "call each benchmark once and measure nothing, like --perfgate=off",
    "--benchmark-enable": "take --benchmark-disable back",
}

_RULE = "perfgate decides how often a call runs"

_KEPT = "every run is kept under .perfgate/"

_TABLE = "perfgate writes its own report"

_IDLE: dict[str, tuple[str, tuple[str, ...]]] = {
    _RULE: (
        "min-time max-time min-rounds precision confidence timer calibration-precision warmup-iterations",
        ("warmup", "disable-gc"),
    ),
    _KEPT: ("save storage netrc", ("autosave", "save-data")),
    _TABLE: ("sort group-by columns name time-unit", ("verbose", "quiet", "histogram")),
    "perfgate compare takes two records": ("", ("compare",)),
    "perfgate profiles kernels, not lines of Python": ("cprofile cprofile-loops cprofile-top", ("cprofile-dump",)),
}
"""For each reason why options are idle: those that take a value, and those that may stand alone."""

_ALONE = {"disable-gc", "autosave", "save-data", "verbose", "quiet"}

_CODSPEED = {"--codspeed-warmup-time": _RULE, "--codspeed-max-time": _RULE, "--codspeed-max-rounds": _RULE}

_FAIL = re.compile(r"(?:(min|max|mean|median):)?([0-9]*\.?[0-9]+)%")


def reserve_plugin_names(manager: pytest.PytestPluginManager) -> None:
    """Take the names of the other plugins, so that they do not load and a lookup by name still finds a plugin."""
    for name in _SEATS:
        if not manager.has_plugin(name) and not manager.is_blocked(name):
            manager.register(PlaceholderPlugin(), name)


class PlaceholderPlugin:
    """Registered under the name of another plugin."""


def earlier_plugin(manager: pytest.PytestPluginManager) -> str:
    """Return the other plugin that was loaded before ours, or ""."""
    loaded = (
        name for name in (*_SEATS, "pytest_benchmark.plugin", "pytest_codspeed.plugin") if manager.has_plugin(name)
    )
    return next((name for name in loaded if not isinstance(manager.get_plugin(name), PlaceholderPlugin)), "")


def add_benchmark_options(parser: pytest.Parser) -> None:
    """Add their options, each with its effect here."""
    group = parser.getgroup(
        "benchmark-compat", "options of pytest-benchmark and pytest-codspeed, for suites that pass them"
    )
    for name, doc in _FLAGS.items():
        group.addoption(name, action="store_true", help=doc)
    group.addoption("--benchmark-json", metavar="PATH", help="write the figures in pytest-benchmark's format")
    group.addoption(
        "--benchmark-compare-fail", action="append", nargs="+", default=[], metavar="EXPR",
        help="a share such as mean:5%% becomes the limit 'slowdown <= 5%%'",
    )  # fmt: skip
    for instead, (values, rest) in _IDLE.items():
        for name in values.split():
            group.addoption(f"--benchmark-{name}", action="append", metavar="VALUE", help=f"no effect: {instead}")
        for name in rest:
            settings: dict[str, Any] = {"action": "store_true"} if name in _ALONE else {"nargs": "?", "const": ""}
            group.addoption(f"--benchmark-{name}", help=f"no effect: {instead}", **settings)
    group.addoption("--codspeed", action="store_true", help="skip the tests without a benchmark")
    group.addoption("--codspeed-mode", metavar="MODE", help="no effect: perfgate measures time")
    for name, instead in _CODSPEED.items():
        group.addoption(name, metavar="VALUE", help=f"no effect: {instead}")


def apply_options(config: pytest.Config) -> None:
    """Apply the options that were passed, and store notes on those that do nothing."""
    option, lines = config.option, list(idle_lines(config.option))
    if option.benchmark_disable and not option.benchmark_enable:
        if option.perfgate_mode or option.perfgate_against:
            lines.append("--benchmark-disable is ignored, because the command line asks for the gate")
        else:
            option.perfgate_mode = "off"
            lines.append("--benchmark-disable: nothing was measured; --benchmark-enable reverses it")
    expressions = [text for expression in option.benchmark_compare_fail for text in expression]
    if option.benchmark_skip and not option.benchmark_only:
        option.perfgate_mode = "off"
    limits = [limit_of(text) for text in expressions]
    if limits and not any(text.startswith("slowdown") for text in option.perfgate_limit):
        option.perfgate_limit = [*option.perfgate_limit, *limits]
        lines.append(f"--benchmark-compare-fail {' '.join(expressions)}: held as {', '.join(limits)}")
    config.stash[_NOTES] = lines


def limit_of(expression: str) -> str:
    """Return ``mean:5%`` as a limit; a difference in seconds is refused, since it does not account for noise."""
    match = _FAIL.fullmatch(expression)
    if match is None:
        raise pytest.UsageError(
            f"--benchmark-compare-fail={expression}: only a share of a time can be a limit here, such as mean:5%\n"
            "next: --perfgate-limit 'slowdown <= 5%' or 'time <= 3 ms'"
        )
    return f"slowdown <= {match[2]}%"


def idle_lines(option: Any) -> Iterator[str]:
    """Yield one line for each reason, with the options that were passed and do nothing."""
    for instead, (values, rest) in _IDLE.items():
        names = [f"--benchmark-{name}" for name in (*values.split(), *rest)]
        passed = [name for name in names if _passed(option, name)]
        passed += [name for name, why in _CODSPEED.items() if why is instead and _passed(option, name)]
        if passed:
            yield f"no effect: {', '.join(passed)} ({instead})"


def _passed(option: Any, name: str) -> bool:
    value = getattr(option, name[2:].replace("-", "_"), None)
    return value is not None and value is not False


def option_notes(config: pytest.Config) -> list[str]:
    """Return the notes on passed options, and on a mark that measures nothing, for the end of the run."""
    items = getattr(config.pluginmanager.get_plugin("session"), "items", ())
    notes, without_fixture = [*config.stash.get(_NOTES, [])], sum(map(_is_bare, items))
    if without_fixture:
        from pytest_perfgate.core.render.words import plural

        text = f"{plural(without_fixture, 'test')} with the mark benchmark and without the fixture: not measured"
        notes.append(f"{text}; codspeed_benchmark measures a whole test")
    return notes


def _is_bare(item: pytest.Item) -> bool:
    """Return whether a test has the mark itself, and nothing measures it."""
    marked = any(mark.name == "benchmark" for mark in item.own_markers)
    return marked and "perfgate" not in getattr(item, "fixturenames", ())


def select(option: Any, items: Iterable[pytest.Item]) -> None:
    """Apply ``--benchmark-only`` and ``--benchmark-skip`` as pytest-benchmark does."""
    only = option.benchmark_only or option.codspeed
    if not only and not option.benchmark_skip:
        return
    name = "--benchmark-only" if only else "--benchmark-skip"
    if option.codspeed:
        name = "--codspeed"
    for item in items:
        if bool(only) != ("perfgate" in getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.skip(reason=f"{name} leaves this out"))


FIGURES = "perfgate_benchmark"
"""The attribute of a test's report that carries its figures, including reports of workers."""


class BenchmarkJson:
    """Collects the figures of the tests and writes them after the last one."""

    def __init__(self, path: str) -> None:
        self._path = Path(path)
        self._place = self._path.absolute()  # a test may change the folder
        self._figures: dict[str, Any] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        figures = getattr(report, FIGURES, None)
        if figures is not None:
            self._figures[report.nodeid] = figures

    def pytest_sessionfinish(self) -> None:
        now = dt.datetime.fromtimestamp(HOST_CLOCK.date(), dt.timezone.utc)
        text = json.dumps(document(list(self._figures.values()), now), indent=1)
        try:
            self._place.parent.mkdir(parents=True, exist_ok=True)
            self._place.write_text(text + "\n", encoding="utf-8")
        except OSError as fault:
            raise pytest.UsageError(f"--benchmark-json={self._path}: {fault.strerror or fault}") from None

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        count = len(self._figures)
        terminalreporter.write_line(f"wrote {self._path}: {count} benchmark{'' if count == 1 else 's'}")


def plain(figures: dict[str, Any]) -> Any:
    """Return figures that serialise: parameters of other types by their names."""
    return json.loads(json.dumps(figures, default=str))


def document(benchmarks: list[dict[str, Any]], now: dt.datetime) -> dict[str, Any]:
    """Return the whole file, with the facts of the machine that a comparison needs."""
    return {
        "machine_info": {
            "node": "",
            "machine": platform.machine(),
            "system": platform.system(),
            "release": platform.release(),
            "python_implementation": platform.python_implementation(),
            "python_version": platform.python_version(),
        },
        "commit_info": {},
        "benchmarks": benchmarks,
        "datetime": now.isoformat(),
        "version": f"perfgate {pytest_perfgate.__version__}",
    }


_WHOLE = pytest.StashKey[bool]()


def gate_test(items: Iterable[pytest.Item]) -> None:
    """Give each such test our fixture; pytest-benchmark requires only the mark."""
    for item in items:
        if _is_timed_entirely(item):
            item.stash[_WHOLE] = True
            names: list[str] = item.fixturenames  # type: ignore[attr-defined]
            if "perfgate" not in names:
                names.append("perfgate")


def gate_hidden(items: Iterable[pytest.Item]) -> None:
    """Gate tests whose ``benchmark`` is a fixture of a conftest, so that the missing measurement is reported."""
    from pytest_perfgate.plugin.collect import foreign_fixture

    for item in items:
        if "benchmark" in getattr(item, "fixturenames", ()) and foreign_fixture(item, "benchmark"):
            item.add_marker("perfgate")


def measure_test(item: Any, fixture: Callable[..., Any]) -> bool | None:
    """Call the test through the fixture, although it does not request it, if its mark makes it a benchmark."""
    if not item.stash.get(_WHOLE, False):
        return None
    arguments = {name: item.funcargs[name] for name in item._fixtureinfo.argnames}  # noqa: SLF001 - as pytest calls it
    item.funcargs["benchmark"] = fixture(item.funcargs["perfgate"], item)
    item.funcargs["benchmark"](partial(item.obj, **arguments))
    return True


def _is_timed_entirely(item: pytest.Item) -> bool:
    if not isinstance(item, pytest.Function) or "perfgate" in item._fixtureinfo.argnames:  # noqa: SLF001 - as above
        return False
    if {"benchmark", "codspeed_benchmark"} & set(item.fixturenames) or issubclass(item.cls or object, TestCase):
        return False
    marked = item.get_closest_marker("benchmark") is not None and find_spec("pytest_codspeed") is not None
    return marked or item.get_closest_marker("codspeed_benchmark") is not None
