"""Which gated tests a run collected, selected and skipped."""

from __future__ import annotations

import os
import platform
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union

import pytest

from pytest_perfgate.core.judge.shards import foreign_split, place_of
from pytest_perfgate.core.judge.suite import LeftOut
from pytest_perfgate.core.limits.grammar import FAMILY_MEAN
from pytest_perfgate.core.limits.merge import unmatched
from pytest_perfgate.core.render.words import plural, printable
from pytest_perfgate.core.stats.costs import bare_name, costs_digest, divided, positions
from pytest_perfgate.model.errors import PerfgateError, proposal
from pytest_perfgate.model.plan import Effect, Mode, Reach
from pytest_perfgate.model.values import first_of
from pytest_perfgate.model.verdict import Shard, SuiteNote, Universe
from pytest_perfgate.plugin.options import STARTED_WITH

if TYPE_CHECKING:
    from pytest_perfgate.model.plan import Limit
    from pytest_perfgate.model.project import ConfigPattern
    from pytest_perfgate.plugin.state import SessionState, Settings

_DESELECTED = pytest.StashKey[set[str]]()

DIVISION = pytest.StashKey[Shard]()
"""The shard of this run, if ``--perfgate-shard`` divides it."""

_FILTERS = ("-k", "-m", "--deselect", "--ignore", "--lf", "--last-failed", "--sw", "--stepwise")


def deselected(config: pytest.Config) -> set[str]:
    """Return the gated tests that were found and deselected, also by workers; they do not count as dropped."""
    return config.stash.setdefault(_DESELECTED, set())


def division(config: pytest.Config) -> Shard | None:
    """Return the shard of this run, or None if it is not divided."""
    return config.stash.get(DIVISION, None)


def divide(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep only the tests of this shard; those of the others are recorded as collected."""
    from pytest_perfgate.plugin import is_gated
    from pytest_perfgate.plugin.reporting import usage_errors
    from pytest_perfgate.plugin.state import Settings

    settings = Settings(config)
    gated = list(filter(is_gated, items))
    with usage_errors():
        if gated and settings.mode is not Mode.OFF:
            foreign_split(vars(config.option))
        if not config.option.perfgate_shard:
            return
        refuse_shard_of_change(config)
        place = place_of(config.option.perfgate_shard, _at_start(config))
        universe, bound = _collected(settings, gated)
        costs = _costs(settings)
    shards = divided([item.nodeid for item in items], place.total, costs, bound)
    chosen_items = [item for item in items if shards[item.nodeid] == place.number]
    before = set(deselected(config))
    if others := [item for item in items if shards[item.nodeid] != place.number]:
        config.hook.pytest_deselected(items=others)
    config.stash[_DESELECTED] = before  # tests of other shards do not count as deselected
    items[:] = chosen_items
    names = [nodeid for nodeid, _ in universe.cases]
    config.stash[DIVISION] = Shard(
        index=place.number,
        count=place.total,
        universe=universe,
        chosen=positions(names, {item.nodeid for item in chosen_items}),
        split=costs_digest(costs),
    )


def refuse_shard_of_change(config: pytest.Config) -> None:
    """Refuse a shard that is not from the command line or CI: a change could leave tests out."""
    shard = config.option.perfgate_shard
    if shard.strip() == "auto" or hasattr(config, "workerinput"):
        return
    words = [*map(str, config.invocation_params.args), *_at_start(config).get("PYTEST_ADDOPTS", "").split()]
    if not any(word.startswith("--perfgate-shard") for word in words):
        what = f"shard {shard} comes from addopts or a conftest, not from the command line"
        fix = "name it on the command line; in addopts write auto, which reads the variables of CI"
        raise PerfgateError("shard-unknown", what, fix=fix)


def _at_start(config: pytest.Config) -> Mapping[str, str]:
    """Return the environment before any conftest ran."""
    return config.stash.get(STARTED_WITH, None) or dict(os.environ)


def _collected(settings: Settings, gated: Sequence[pytest.Item]) -> tuple[Universe, frozenset[str]]:
    """Return every gated test with its limits, and the test families that a limit judges as a whole."""
    limits: dict[str, tuple[Limit, ...]] = {}
    for item in gated:
        try:
            limits[item.nodeid] = settings.collector.case(item).limits
        except PerfgateError:  # noqa: PERF203 - a wrong marker fails only its test, when it runs
            limits[item.nodeid] = ()
    whole = {bare_name(n) for n, some in limits.items() if any(limit.metric == FAMILY_MEAN for limit in some)}
    return Universe(cases=tuple(sorted(limits.items())), policy=settings.policy), frozenset(whole)


def _costs(settings: Settings) -> dict[str, float]:
    """Return the seconds that each test took, from the record that all shards were given."""
    source = settings.options.perfgate_shard_costs
    if not source:
        return {}
    from pytest_perfgate.wiring.stores import record_store

    report = record_store(settings.pytest.rootpath).read(source)
    costs = {name: cost for shard in report.shards for name, cost in shard.costs}
    if not costs:
        what = "it has no measuring time of any test"
        raise PerfgateError("record-unreadable", what, fix="name a record of a full run", place=source)
    return costs


def is_filtered(config: pytest.Config) -> bool:
    """Return whether the command line left tests out, so that the run is not of the whole suite."""
    option = config.option
    selected = [option.keyword, option.markexpr, option.deselect, option.ignore, option.ignore_glob]
    again = [getattr(option, name, False) for name in ("lf", "last_failed", "stepwise", "testmon")]
    return any(selected) or any(again) or bool(deselected(config)) or bool(_narrowing_arguments(config))


def left_out(config: pytest.Config) -> LeftOut:
    """Return which tests were left out, and whether the command line asked for that."""
    if any(str(word).startswith(_FILTERS) for word in config.invocation_params.args):
        return LeftOut(deselected=frozenset(deselected(config)), commanded=True)
    return LeftOut(deselected=frozenset(deselected(config)), reach=reach_of(config))


def reach_of(config: pytest.Config) -> Reach:
    """Return where tests were collected; ``-k`` and ``-m`` still collect them, ``--lf`` does not open their files."""
    option = config.option
    unknown = "--lf" if getattr(option, "lf", False) or getattr(option, "last_failed", False) else ""
    unknown = unknown or ("--pyargs" if getattr(option, "pyargs", False) else "")
    ignored = (*(option.ignore or ()), *(option.ignore_glob or ()))
    named = () if unknown else tuple(_place(config, text) for text in config.args)
    return Reach(
        beneath=() if "." in named else named,
        without=tuple(_place(config, str(path)) for path in ignored),
        unknown=unknown,
    )


def has_gate(root: Path, ci: Mapping[str, str]) -> bool:
    """Return whether a project has settings or baselines; one whose limits are all absolute keeps no baselines."""
    return _has_settings(root) or keeps_baselines(root, ci)


def keeps_baselines(root: Path, ci: Mapping[str, str]) -> bool:
    """Return whether a project has a folder of baselines, or had one before this change, by a quick look at git."""
    from pytest_perfgate.wiring.stores import kept_before

    folder = _folder(root)
    return (root / folder).is_dir() or kept_before(root, folder, ci)


def _has_settings(root: Path) -> bool:
    settings = root / "pyproject.toml"
    return settings.is_file() and b"tool.perfgate" in settings.read_bytes()


def _folder(root: Path) -> str:
    """Return the folder of baselines; settings are only read if pyproject.toml has some."""
    if not _has_settings(root):
        return "baselines"
    from pytest_perfgate.plugin.reporting import usage_errors
    from pytest_perfgate.wiring import configuration

    with usage_errors():
        return configuration(root).baselines


def _narrowing_arguments(config: pytest.Config) -> list[str]:
    """Return the arguments that select less than the project; none if they cover it, as its testpaths do."""
    if config.args_source is pytest.Config.ArgsSource.TESTPATHS:
        return []
    here, root = config.invocation_params.dir, config.rootpath
    arguments = {os.path.normpath(here / arg) for arg in config.args}
    whole = {os.path.normpath(root / path) for path in config.getini("testpaths")}
    return [] if str(root) in arguments or (whole and whole <= arguments) else list(config.args)


def _place(config: pytest.Config, text: str) -> str:
    """Return a path or node id of the command line relative to the root, as node ids are."""
    path, names, test = text.partition("::")
    absolute = config.invocation_params.dir / path
    try:
        place = Path(os.path.relpath(absolute, config.rootpath)).as_posix()
    except ValueError:  # another drive
        place = absolute.as_posix()
    return f"{place}{names}{test}"


def skip_reason(report: Union[pytest.TestReport, pytest.CollectReport]) -> str:
    """Return the reason of a skipped test or file in one line."""
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
    return printable(" ".join(reason.removeprefix("Skipped: ").split()))


def skipped_files(config: pytest.Config) -> Mapping[str, str]:
    """Return the files that skipped themselves during collection, with the reason."""
    reporter: Any = config.pluginmanager.get_plugin("terminalreporter")
    skipped = reporter.stats.get("skipped", []) if reporter is not None else []
    return {report.nodeid: skip_reason(report) for report in skipped if isinstance(report, pytest.CollectReport)}


def pattern_notes(session: SessionState, *, filtered: bool) -> tuple[SuiteNote, ...]:
    """Return a note on tables whose pattern matches no test, if the run was whole: otherwise it may match others."""
    if filtered or not session.complete:
        return ()
    part = division(session.settings.pytest)
    everywhere = [name for name, _ in part.universe.cases] if part is not None else []
    nodeids = {*session.cases, *session.faults, *everywhere}
    idle = unmatched(session.settings.project.tests, nodeids)
    if not idle:
        return ()
    hidden = first_of(sorted(skipped_files(session.settings.pytest)), 3)  # whose tests are unknown
    text = "patterns of [[tool.perfgate.tests]]: no gated test has a matching node id, so they have no effect"
    text += f"; {hidden} skipped as a whole, which may hide some" if hidden else ""
    names = tuple(f"{table.place}: {table.pattern!r}{_near(table, nodeids)}" for table in idle)
    effect = Effect.WARN if hidden else session.gate_judge.context.policy.effect("unmeasured")
    return (SuiteNote(kind="unmatched", effect=effect, text=text, names=names),)


def _near(table: ConfigPattern, nodeids: Collection[str]) -> str:
    near = proposal(table.pattern, sorted(nodeids))
    return f"; {near}" if near else ""


def shard_of(session: SessionState) -> Shard:
    """Return which part of a run this is, and on what machine; the whole run if it is not divided."""
    from pytest_perfgate.wiring.devices import device_here
    from pytest_perfgate.wiring.stores import environment_digest, repository

    config, environment = session.settings.pytest, session.gate_judge.tools.environment()
    shard = division(config)
    if shard is None:
        limits = {**dict.fromkeys(session.faults, ()), **{name: case.limits for name, case in session.cases.items()}}
        universe = Universe(cases=tuple(sorted(limits.items())), policy=session.settings.policy)
        shard = Shard(universe=universe, chosen=tuple(range(len(limits))))
    return replace(
        shard,
        run=session.run,
        host=platform.node(),
        device=device_here() if shard.count > 1 else "",
        changes=repository(config.rootpath).changes() if environment.dirty else "",
        facts=environment_digest(environment),
        costs=tuple((name, round(cost, 4)) for name, cost in sorted(session.costs.items())),
    )


def unread_notes(session: SessionState) -> Iterator[SuiteNote]:
    """Yield a note on settings in folders of gated tests below the root, which this run does not read."""
    folders = {folder for case in session.cases.values() for folder in Path(case.path).parents if folder.name}
    files = ((at, session.settings.pytest.rootpath / at / "pyproject.toml") for at in sorted(folders))
    texts = {at: b"\n" + file.read_bytes() for at, file in files if file.is_file() and os.access(file, os.R_OK)}
    tables = (b"\n[tool.perfgate]", b"\n[tool.perfgate.", b"\n[[tool.perfgate.")
    if own := [at for at, text in texts.items() if any(table in text for table in tables)]:
        step = f"cd {shlex.quote(own[0].as_posix())} && pytest"
        text = f"[tool.perfgate] of folders below the root is not read, nor are the baselines there; next: {step}"
        names = tuple(f"{at.as_posix()}/pyproject.toml" for at in own)
        yield SuiteNote(kind="unread", effect=Effect.WARN, text=text, names=names)


def unreported_notes(session: SessionState) -> tuple[SuiteNote, ...]:
    """Return one note on tests that were chosen and not run; it fails if a verdict would have, else by the policy."""
    lost = [nodeid for nodeid in session.cases if nodeid not in session.reported_tests]
    if not lost or not session.complete or session.mode is Mode.OFF:
        return ()
    why = "because a hook of a conftest or a plugin replaces pytest's own"
    failing = any(report.effect is Effect.FAIL for nodeid in lost for report in session.reports.get(nodeid, ()))
    return (
        SuiteNote(
            kind="unrun",
            effect=Effect.FAIL if failing else session.gate_judge.context.policy.effect("unmeasured"),
            text=f"{plural(len(lost), 'gated test')} chosen and not run, {why}: no test report has their verdict",
            names=tuple(name for nodeid in lost for name in _call_outcomes(session, nodeid)),
        ),
    )


def _call_outcomes(session: SessionState, nodeid: str) -> Iterator[str]:
    """Yield the outcome of each call of a test, or its name if it was not measured."""
    outcomes = [f"{report.key}: {report.worst.value}" for report in session.reports.get(nodeid, ())]
    yield from outcomes or [nodeid]
