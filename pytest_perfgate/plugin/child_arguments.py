"""What a child is started with: arguments, environment, job; and the lines that announce two builds."""

from __future__ import annotations

import atexit
import json
import os
import shlex
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import TYPE_CHECKING

import pytest

from pytest_perfgate.app.measure import ChildSettings
from pytest_perfgate.clock import seconds
from pytest_perfgate.core.render.words import plural, span
from pytest_perfgate.model.plan import LEAST
from pytest_perfgate.model.protocol import ChildJob, ChildSpec
from pytest_perfgate.model.values import first_of
from pytest_perfgate.plugin.measuring import CACHES, COLD

if TYPE_CHECKING:
    from pytest_perfgate.app.compare_arms import Comparison
    from pytest_perfgate.core.judge.rounds import Design
    from pytest_perfgate.core.stats.costs import PairCost
    from pytest_perfgate.model.plan import Case, CaseKey
    from pytest_perfgate.model.project import Config
    from pytest_perfgate.model.verdict import Arm
    from pytest_perfgate.plugin.reporting import Progress
    from pytest_perfgate.plugin.state import SessionState


_LEFT_OUT = (
    "cacheprovider",
    "junitxml",
    "xdist",
    "xdist.looponfail",
    "pytest_cov",
    "timeout",
    "rerunfailures",
    "randomly",
    "random_order",
    *("pastebin", "stepwise", "faulthandler", "pytest-testmon", "pytest_forked"),
)
"""Plugins that select, repeat, shuffle or report; in a child they would do so a second time."""

_OWN_GROUPS = {
    "general", "reporting", "debugconfig", "logging", "pytest-warnings", "collect", "terminal reporting", "xdist",
    "cov", "timeout", "rerunfailures", "pytest-randomly", "random_order", "perfgate", "benchmark", "distributed",
    "re-run failing tests to eliminate flaky failures", "hypothesis", "test session debugging and configuration",
}  # fmt: skip

_LENIENT = (
    "-o", "strict_config=false", "-o", "required_plugins=",
    "-W", "ignore:Unknown config option:pytest.PytestConfigWarning",
)  # fmt: skip
"""The configuration may name options of plugins that a child does not load: that is not an error here."""


def child_spec(config: pytest.Config, settings: Config, cases: Sequence[Case]) -> ChildSpec:
    """Return the specification of a child that runs these cases."""
    return ChildSpec(
        argv=tuple(arguments(config, cases)),
        python=own_interpreter(),
        cwd=config.invocation_params.dir,
        env=tuple(sorted({**environment(os.environ.items()), **cold_for(cases)}.items())),
        prefix=settings.launcher,
        label="the measuring child",
    )


def own_interpreter(prelude: str = "") -> tuple[str, ...]:
    """Return the command that starts a child, with the working directory on its path if it is on ours."""
    from pytest_perfgate.wiring import interpreter

    return interpreter(here="" in sys.path or str(Path.cwd()) in sys.path, prelude=prelude)


def cold_for(cases: Iterable[Case]) -> dict[str, str]:
    """Return empty cache folders of compilers for cases that measure the first call; they are removed at exit."""
    if not any("compile_time" in case.plan.figures for case in cases):
        return {}
    folder = Path(mkdtemp(prefix="perfgate-cold-"))
    atexit.register(rmtree, folder, ignore_errors=True)
    return {COLD: str(folder), "PYOPENCL_NO_CACHE": "1", **{name: str(folder / name.lower()) for name in CACHES}}


def arguments(config: pytest.Config, cases: Iterable[Case]) -> list[str]:
    """Return every argument of a child; nothing is added from ``addopts`` and the environment."""
    files = dict.fromkeys(case.nodeid.partition("::")[0] for case in cases)
    words = ["-o", "addopts=", "-q", f"--rootdir={config.rootpath}", f"--import-mode={config.option.importmode}"]
    if config.inipath is not None:
        words += ["-c", str(config.inipath)]
    if config.option.noconftest:
        words += ["--noconftest"]
    for name in _LEFT_OUT:
        words += ["-p", f"no:{name}"]
    for plugin in (*(config.option.plugins or ()), *filter(None, os.environ.get("PYTEST_PLUGINS", "").split(","))):
        if plugin != "no:terminal":  # a child's own -q is an option of that plugin
            words += ["-p", plugin]
    if os.environ.get("PYTEST_DISABLE_PLUGIN_AUTOLOAD") and "pytest_perfgate.plugin" not in words:
        words += ["-p", "pytest_perfgate.plugin"]
    for setting in config.option.override_ini or ():
        if not setting.startswith(("addopts", "strict_config")):
            words += ["-o", setting]
    words += _LENIENT
    for rule in config.option.pythonwarnings or ():
        words += ["-W", rule]
    return [*words, *(str(config.rootpath / name) for name in files)]


def arm_arguments(config: pytest.Config, cases: Iterable[Case], arm: Arm) -> list[str]:
    """Return the arguments of an arm's child: the head's tests, and none of the head's package on the path."""
    words = arguments(config, cases)
    top, here = config.rootpath, Path(arm.cwd)
    if arm.mode == "worktree":
        return _with_own_settings([_in_arm(text, top, here) for text in words], here)
    import_folders = _import_folders(config, cases)
    places = [
        str(place) for place in (*config.getini("pythonpath"), *import_folders) if not _holds(Path(place), arm.modules)
    ]
    words = [text for text in words if not text.startswith("--import-mode=")]
    words[2:2] = ["--import-mode=importlib", "-o", f"pythonpath={shlex.join(places)}"]
    return words


def code_folders(config: pytest.Config, paths: Iterable[str]) -> list[str]:
    """Return the folders below the root that ``pythonpath`` names, without those of tests and their helpers."""
    top = config.rootpath
    folders = [place.relative_to(top) for place in config.getini("pythonpath") if place.is_relative_to(top)]
    test_folders = {(top / path).parent.relative_to(top) for path in paths}
    return [folder.as_posix() for folder in folders if folder not in test_folders]


_SETTINGS = ("pytest.toml", ".pytest.toml", "pytest.ini", ".pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg")
"""Files that pytest looks for, in its order."""


def _with_own_settings(words: list[str], checkout: Path) -> list[str]:
    """Return the arguments with settings of the checkout's own where it lacks the head's file: a change may add one."""
    at = words.index("-c") if "-c" in words else len(words)
    if any(not Path(file).is_file() for file in words[at + 1 : at + 2]):
        own = next((str(file) for name in _SETTINGS if (file := checkout / name).is_file()), None)
        words[at : at + 2] = ["-c", own] if own else []
    return words


def _import_folders(config: pytest.Config, cases: Iterable[Case]) -> Iterable[Path]:
    """Yield the folders that pytest's usual import modes put on the path, since tests import modules beside them."""
    if config.option.importmode == "importlib":
        return []
    files = (config.rootpath / case.nodeid.partition("::")[0] for case in cases)
    return dict.fromkeys(_import_root(file.parent) for file in files)


def _import_root(folder: Path) -> Path:
    """Return the first folder upwards that is not a package."""
    return _import_root(folder.parent) if (folder / "__init__.py").is_file() else folder


def _in_arm(text: str, top: Path, root: Path) -> str:
    """Return an argument with a path below the root moved into the arm's checkout."""
    head, sign, tail = text.partition("=") if text.startswith("--rootdir=") else ("", "", text)
    place = Path(tail)
    inside = place.is_absolute() and place.is_relative_to(top)
    return f"{head}{sign}{root / place.relative_to(top)}" if inside else text


def _holds(place: Path, modules: Sequence[str]) -> bool:
    """Return whether a folder of ``pythonpath`` would put the head's package before the arm's."""
    return any((place / name).is_dir() or (place / f"{name}.py").is_file() for name in modules)


_STEERING = ("PYTEST_", "COV_CORE_", "COVERAGE_PROCESS_")
"""Variables that select tests, or make coverage trace every line of a timed process."""


def environment(inherited: Iterable[tuple[str, str]], folder: str = "") -> dict[str, str]:
    """Return the environment of a child in a folder, without the variables that change what pytest does."""
    variables = {name: text for name, text in inherited if not name.startswith(_STEERING)}
    if os.environ.get("PYTEST_DISABLE_PLUGIN_AUTOLOAD"):
        variables["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"]
    variables["PYTHONHASHSEED"] = variables.get("PYTHONHASHSEED", "random")
    if folder and os.path.realpath(variables.get("PWD", ".")) != os.path.realpath(folder):
        variables["PWD"] = folder  # else code that opens files below $PWD would read the head's in both builds
    return variables


def child_job(config: pytest.Config) -> ChildJob:
    """Return the job of a child, which is sent over the channel and not on the command line."""
    options = tuple(_own_options(config))
    markers = tuple(line for line in config.getini("markers") if not line.startswith("perfgate("))
    return ChildJob(cases=(), argv=tuple(sys.argv[1:]), options=options, markers=markers, root=str(config.rootpath))


def _own_options(config: pytest.Config) -> Iterable[tuple[str, str]]:
    """Yield options of the user's own plugins and conftests, as far as JSON can represent them."""
    parser = config._parser  # noqa: SLF001 - no public way to tell whose an option is
    groups = [parser._anonymous, *(g for g in parser._groups if g.name not in _OWN_GROUPS)]  # noqa: SLF001
    for option in (option for group in groups for option in group.options):
        name = option.dest
        try:
            yield name, json.dumps(getattr(config.option, name))
        except (TypeError, ValueError, AttributeError):
            continue


def child_settings(session: SessionState, progress: Progress) -> ChildSettings:
    """Return the settings of children that run the working copy, with the session's own settings."""
    config, project = session.settings.pytest, session.settings.project
    return ChildSettings(
        spawner=session.gate_judge.tools.spawner,
        spec=lambda some: child_spec(config, project, some),
        job=child_job(config),
        timeout_s=project.timeout,
        progress=progress,
        clock=seconds,
        tell=progress.tell,
        earlier_timers=session.gate_judge.accepted.timers(),
        early=has_free_cores(),
    )


def trying_line(cases: int, design: Design, left_s: float, cost: PairCost) -> str:
    """Return ``; what they do not clear goes to two builds: 1 test 19 s to 1 min, all 38 tests 1 to 6 min``."""
    if not cases:
        return ""
    text = "; tests that the accepted times do not clear are then measured in two builds"
    single, all_ = (cost.between(count, LEAST, design.last, left_s) for count in (1, cases))
    several = f"{single.partition(',')[0]}, all {cases} tests {all_}"
    return f"{text}: 1 test {single if cases == 1 else several}"


def paired_line(cases: int, design: Design, left_s: float, cost: PairCost) -> str:
    """Return ``38 tests in two builds, 7 to 30 rounds, 1 min 24 s to 6 min; 10 min of the budget are left``."""
    least = max(LEAST, design.least)
    text = f"{plural(cases, 'test')} in two builds, {least} to {design.last} rounds"
    text += f", {cost.between(cases, least, design.last, left_s)}"
    return text if left_s == float("inf") else f"{text}; {span(left_s)} of the budget are left"


def count_decidable(cases: Iterable[Case]) -> int:
    """Count the cases with a slowdown limit, which two builds may have to decide."""
    return sum(any(limit.metric == "slowdown" for limit in case.limits) for case in cases)


_CORES = 4
"""Two sides measure on one core, two starting processes need one each, and the user's threads another."""


def has_free_cores() -> bool:
    """Return whether enough cores are free to start processes while others measure on a device."""
    return len(os.sched_getaffinity(0)) >= _CORES if hasattr(os, "sched_getaffinity") else False


def proven_forks(project: Config, root: Path) -> Callable[[CaseKey, str], float | None] | None:
    """Return the scatter of fresh A/A pairs of a call on a device, if forked pairs are shown to scatter no more."""
    if project.preload == "off":
        return None
    from pytest_perfgate.app.compare_arms import ROUND, captures_of
    from pytest_perfgate.core.judge.calibration import FORKED, forkable
    from pytest_perfgate.core.judge.samples import pair_of
    from pytest_perfgate.model.verdict import PairedRound
    from pytest_perfgate.wiring import calibration_path, read_values

    rounds = read_values(calibration_path(root), PairedRound)
    fresh, forked = captures_of(rounds, ROUND), captures_of(rounds, FORKED)
    proven = {
        (key, fresh[key][-1][0].device.key): forkable(pair_of(fresh[key]), pair_of(pairs))
        for key, pairs in forked.items()
        if {both[0].device.key for both in (*fresh.get(key, ()), *pairs)} == {pairs[-1][0].device.key} and key in fresh
    }
    return lambda key, device: proven.get((key, device))


def possible_differences(session: SessionState, comparison: Comparison) -> str:
    """Return what can differ where base and head hold the same package: edited files, or the machine."""
    base, *_ = comparison.arms
    own = sorted({case.path for case in comparison.cases.values() if case.path in comparison.own.paths(case)})
    repository, places = session.gate_judge.tools.repository, session.settings.project.test_paths
    tests = {"conftest.py", *(case.path for case in session.cases.values())}
    changed = list(map(Path, repository.changed(base.revision) if repository and base.revision else ()))
    shared = [str(p) for p in changed if tests & {p.name, p.as_posix()} or any(map(p.is_relative_to, places))]
    by_both = [path for path in shared if path not in own]
    modules = [str(p) for p in changed if p.suffix == ".py" and str(p) not in shared] if base.mode == "overlay" else []
    if own or by_both or modules:
        each = f"; each runs its own {first_of(own, 3)}" if own else ""
        each += f"; each runs its own {first_of(modules, 3)} where a test imports it" if modules else ""
        both = f"; both read the head's {first_of(by_both, 3)}" if by_both else ""
        return f"the package is the same in both builds{each}{both}"
    edits = session.gate_judge.environment_edits.text()
    return f"base and head hold the same code: {edits or 'only the machine, or a file that both read, can differ'}"
