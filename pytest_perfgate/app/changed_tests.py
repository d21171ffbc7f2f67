"""Checks of what a change does to its own tests and lines; `changed_project` has the table of all checks."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from pytest_perfgate.core.changes.fixtures import CONFTEST, PACKAGE, Texts, fixture_sources, is_above, marks_of
from pytest_perfgate.core.changes.limits import TIGHTER, relaxed, reworked
from pytest_perfgate.core.changes.marks import marked
from pytest_perfgate.core.changes.tests import Successor, is_new, successors
from pytest_perfgate.core.judge.acceptance import loosened
from pytest_perfgate.core.judge.policy import effect
from pytest_perfgate.core.metric_kinds import by_name
from pytest_perfgate.core.render.words import detectable, quantity, signed
from pytest_perfgate.model.measurement import DIRTY, short_commit
from pytest_perfgate.model.plan import Case, CaseKey, Effect, Limit, Mode, Outcome, parse_case_key
from pytest_perfgate.model.values import Better, Dimension, first_of, value
from pytest_perfgate.model.verdict import CaseReport, SuiteNote

if TYPE_CHECKING:
    from pytest_perfgate.app.judge import GateJudge
    from pytest_perfgate.core.judge.suite import Suite
    from pytest_perfgate.model.measurement import Baseline
    from pytest_perfgate.model.ports import Repository

WORDS = ("perfgate", "benchmark")
"""Words in the file of a gated test: the marker, or one of the fixtures."""

ASKING = (*WORDS, "limits")
"""Words in a file that changes limits, or excuses a test from requesting the fixture."""

ANY = ("",)  # matches every file
NOTHING = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"  # git's name for the empty tree, from which every file differs

_LETTERS = 10
_PLUGIN = re.compile(r"""-p["',\s]*(?!no:)([A-Za-z_][\w.]*)""")  # in the words of ``addopts``


class GitFailed(Exception):
    """Raised when git does not answer for the files of a change."""


@value
class JudgedChange:
    """A run, and the commit that a check compares its files with."""

    gate_judge: GateJudge
    cases: Mapping[str, Case]
    reports: Sequence[CaseReport]
    suite: Suite
    base: str = ""
    words: Sequence[str] = ()

    @property
    def repository(self) -> Repository:
        """Git of the project; only checks that name a commit use it."""
        repository = self.gate_judge.tools.repository
        assert repository is not None
        return repository

    @property
    def commit(self) -> str:
        """The commit, as a sentence names it."""
        return self.base[:_LETTERS]

    def texts(self) -> Texts:
        """Return the files with one of the words, at the commit and now."""
        texts = self.repository.touched(self.base, self.words)
        if texts is None:
            raise GitFailed
        return texts


@value
class Differences:
    """The differences that a check found."""

    names: tuple[str, ...] = ()
    harmless: bool = False  # whether none of them lets more pass than before


def warning(_: GateJudge) -> Effect:
    """Return the effect of a note that no policy sets."""
    return Effect.WARN


@value
class Check:
    """One kind of note on what a change does: what is read, how it is compared, and how it is worded."""

    kind: str
    compare: Callable[[JudgedChange], Differences]
    sentence: Callable[[JudgedChange, int], str]
    """Returns the sentence of a check, from the change and the number of names."""
    against: Callable[[GateJudge], str] | None = None
    """Returns the commit to compare with; "" gives no note. None if the check needs no commit."""
    read: Sequence[str] = ()
    """Words that select the files to read of both commits."""
    unknown: str = ""
    """The subject that is unknown if git does not answer; "" if another check reports it."""
    ci: bool = True
    """Whether the check runs only in CI."""
    effect: Callable[[GateJudge], Effect] = warning


def change_notes(check: Check, change: JudgedChange) -> Iterator[SuiteNote]:
    """Run one check, and yield a note if it finds differences or git does not answer."""
    gate_judge = change.gate_judge
    if check.ci and not gate_judge.context.policy.ci:
        return
    if check.against is not None:
        change = replace(change, base=check.against(gate_judge), words=check.read)
        if not change.base or gate_judge.tools.repository is None:
            return
    try:
        differences = check.compare(change)
    except GitFailed:
        if check.unknown:
            text = f"unknown which {check.unknown} changed since {change.commit}: git did not answer for the files"
            yield SuiteNote(kind=check.kind, effect=Effect.WARN, text=text)
        return
    if differences.names:
        effect = Effect.PASS if differences.harmless else check.effect(gate_judge)
        text = check.sentence(change, len(differences.names))
        yield SuiteNote(kind=check.kind, effect=effect, text=text, names=differences.names)


def fixture_parts(change: JudgedChange) -> Differences:
    """Return each file that tests import parts from and that changed: unedited tests may now measure or check less."""
    gate_judge = change.gate_judge
    tests: dict[str, set[str]] = defaultdict(set)
    for report in change.reports:
        if judged_by_earlier(gate_judge, report):
            tests[report.key.path].add(report.key.function)
    changed = change.texts() if tests else {}
    for path in changed.keys() & tests.keys():  # a new test has no earlier limits
        then, now = changed[path]
        tests[path] = {name for name in tests[path] if not is_new(then, now or "", f"{path}::{name}")}
    data = [path for path in change.repository.changed(change.base) if not path.endswith(".py")] if tests else []
    naming = change.repository.touched(NOTHING, [PurePosixPath(path).name for path in data]) if data else {}
    if changed.keys() <= tests.keys() and not naming:
        return Differences()
    texts = change.repository.touched(NOTHING, WORDS) or {}
    taking = {path: (texts[path][1] or "", of) for path, of in tests.items() if path in texts}
    conftests, settings = _conftests(change.repository, taking, changed), gate_judge.tools.settings("")
    if plugins := _PLUGIN.findall(" ".join(text for key, text in settings.items() if key.endswith(": addopts"))):
        conftests[CONFTEST] = f"{conftests.get(CONFTEST, '')}\npytest_plugins = {plugins}\n"  # as a conftest loads them
    around = conftests, _around_all(settings)
    names = fixture_sources(taking, changed, *around)
    sources = {place: now or "" for place, (_, now) in (naming or {}).items()}
    renamed = {place: (reduce(_renamed, data, now), now) for place, now in sources.items()}
    used = sources.keys() & {*tests, *fixture_sources(taking, renamed, *around)}
    for path in data:  # an edit of data counts where an edit of its name would
        versions = {place: (_renamed(sources[place], path), sources[place]) for place in sorted(used)}
        edits = {place: (then, now) for place, (then, now) in versions.items() if then != now}
        own = [place for place, both in edits.items() if place in tests and _differ(*both, tests[place])]
        if places := (*own, *fixture_sources(taking, edits, *around)):
            names[path] = (f"named in {first_of(places, 3)}",)
    return Differences(names=tuple(f"{path}: {', '.join(parts)}" for path, parts in names.items()))


def _renamed(text: str, path: str) -> str:
    """Return a text that names another file where a string in it ends with the name of this one."""
    name = PurePosixPath(path).name
    return re.sub(rf"""(?<![\w.-]){re.escape(name)}(?=["'])""", "another", text) if name in text else text


def _differ(then: str, now: str, tests: Collection[str]) -> bool:
    """Return whether any of these tests, or of their marks, means something else in two versions of a file."""
    edited = {*reworked(then, now), *dict(marked(then).items() ^ marked(now).items())}
    return not edited.isdisjoint(tests)


def _conftests(repository: Repository, tests: Collection[str], changed: Texts) -> dict[str, str]:
    """Return the conftests and packages above these tests as they are now."""
    current = {path: now for path, (_, now) in changed.items() if now is not None and _is_above_any(path, tests)}
    folders = {parent for path in tests for parent in PurePosixPath(path).parents}
    possible = {str(folder / name) for folder in folders for name in (CONFTEST, PACKAGE)} - changed.keys()
    there = possible.intersection(repository.files("HEAD", ".")) if possible else ()
    texts = {path: repository.show("HEAD", path) or "" for path in there if _is_above_any(path, tests)}
    return {**current, **texts}


def _is_above_any(path: str, tests: Iterable[str]) -> bool:
    return any(is_above(path, test) for test in tests)


def _around_all(settings: Mapping[str, str]) -> Collection[str]:
    """Return the fixtures that pytest's settings apply to every test."""
    plugins = (json.loads(text) for key, text in settings.items() if key.endswith(": usefixtures"))
    return {word for plugin in plugins for word in (plugin if isinstance(plugin, list) else str(plugin).split())}


def relaxed_limits(change: JudgedChange, gone: Container[str] = ()) -> Differences:
    """Return the limits and settings that the change removes or alters, except those of tests that are ``gone``."""
    gate_judge = change.gate_judge
    kinds, limits = gate_judge.tools.kinds, _project_limits(change.cases.values())
    weakened = relaxed(change.texts(), kinds, gate_judge.merged, limits)
    ranks = {name: rank for name, rank in weakened.items() if name.partition(": ")[0].partition("[")[0] not in gone}
    return Differences(names=tuple(ranks), harmless={*ranks.values()} == {TIGHTER})


def _project_limits(cases: Iterable[Case]) -> dict[str, list[tuple[Limit, ...]]]:
    """Return the limits that the project gives to the tests of the run, without those of the command line."""
    limits: dict[str, list[tuple[Limit, ...]]] = {}
    for case in cases:
        ways = limits.setdefault(case.nodeid.partition("[")[0], [])
        if case.limits not in ways and not any(limit.source == "command line" for limit in case.limits):
            ways.append(case.limits)
    return limits


def reworked_tests(change: JudgedChange) -> Differences:
    """Return the tests that the change edits, since they may measure something else than was accepted."""
    edited = [report for report in change.reports if judged_by_earlier(change.gate_judge, report)]
    return Differences(names=tuple(_edited_tests(change.gate_judge, edited, change.texts())) if edited else ())


def _edited_tests(gate_judge: GateJudge, reports: Iterable[CaseReport], texts: Texts) -> Iterable[str]:
    """Return each edited test once, with its differences; a moved test is compared with the file that it came from."""
    came = {now: CaseKey(nodeid=then).path for then, now in gate_judge.accepted.moved.items()}
    differences: dict[tuple[str, str], Mapping[str, tuple[str, ...]]] = {}
    names: dict[str, tuple[str, ...]] = {}
    for report in reports:
        key = report.key
        pair = (came.get(str(key), key.path), key.path)
        if pair[1] not in texts:
            continue
        if pair not in differences:
            then, now = texts.get(pair[0], (None, None))[0], texts[pair[1]][1]
            differences[pair] = reworked(then or "", now or "")
        test = key.test.partition("#")[0].partition("[")[0]
        names[f"{key.path}::{test}"] = differences[pair].get(test, ())
    return [f"{name}: {', '.join(parts)}" for name, parts in sorted(names.items()) if parts]


def merge_base(gate_judge: GateJudge) -> str:
    return gate_judge.accepted.base.commit


def compared_revision(gate_judge: GateJudge) -> str:
    """Return the revision that tests are compared with: the one the user named, else the one whose lines judge."""
    return gate_judge.revision or gate_judge.accepted.base.commit


def judged_by_earlier(gate_judge: GateJudge, report: CaseReport) -> bool:
    """Return whether an earlier committed line judged the case, or would have, and this change gives no reason anew.

    Without a committed line: whether both arms ran the test as it is now, or a limit on the figure itself judged it.
    A test that was not measured counts too. Against a revision: whether both arms ran it as it is now.
    """
    from pytest_perfgate.core.judge.suite import needs_line

    paired = gate_judge.paired.get(report.key)
    if report.measurement is None:
        return bool(gate_judge.revision) or gate_judge.accepted.is_unexplained(report.key)
    if paired is not None and paired.revision:
        return not paired.own_test
    then, edited = gate_judge.accepted.judging(report.measurement)
    if then is None or then.local:
        together = paired is not None and not paired.own_file
        return together or any(not needs_line(verdict.limit) for verdict in report.verdicts)
    return not gate_judge.accepted.is_new_line(report.measurement) and (edited is None or not edited.explains(then))


def improved(gate_judge: GateJudge) -> Effect:
    """Return the effect of a line that demands less than is measured."""
    return effect(Outcome.IMPROVED, gate_judge.context.policy, gate_judge.context.mode)


def loosened_lines(change: JudgedChange) -> Differences:
    """Return the edited lines that are slower than what is measured."""
    edits = ((report, loosened(then, now, report.measurement)) for report, then, now in _edits(change))
    return Differences(names=tuple(f"{report.key}: {sentence}" for report, sentence in edits if sentence))


def widened_lines(change: JudgedChange) -> Differences:
    """Return the edited lines that demand less in another way."""
    edits = ((report, widened(then, now)) for report, then, now in _edits(change))
    return Differences(names=tuple(f"{report.key}: {', '.join(parts)}" for report, parts in edits if parts))


def _edits(change: JudgedChange) -> Iterator[tuple[CaseReport, Baseline, Baseline]]:
    """Yield the lines that the change edits, in a full run; none if the policy passes them."""
    gate_judge = change.gate_judge
    if gate_judge.context.mode is not Mode.FULL or improved(gate_judge) is Effect.PASS:
        return
    for report in change.reports:
        if (edit := _edit(gate_judge, report)) is not None:
            yield (report, *edit)


def _edit(gate_judge: GateJudge, report: CaseReport) -> tuple[Baseline, Baseline] | None:
    """Return the judging line and its edited version, or None if the change does not edit it."""
    if report.measurement is None or report.problems:
        return None
    then, edited = gate_judge.accepted.judging(report.measurement)
    return (then, edited) if then is not None and edited is not None else None


def newly_marked(change: JudgedChange) -> Differences:
    """Return deselected tests with an accepted line whose marks the change edits."""
    deselected = {line.key.nodeid for line in change.suite.baselines} & change.suite.deselected
    if not deselected:
        return Differences()
    texts = change.texts()
    tests = {(key.path, key.test_id.partition("[")[0]) for key in map(parse_case_key, deselected) if key.path in texts}
    names = tuple(f"{path}::{test}" for path, test in sorted(tests) if _marks_differ(*texts[path], test))
    return Differences(names=names)


def _marks_differ(then: str | None, now: str | None, test: str) -> bool:
    before, after = marks_of(then or "", test), marks_of(now or "", test)
    return None not in (before, after) and before != after


def renamed_lines(change: JudgedChange) -> Differences:
    """Return new lines that replace removed ones, the slowest first; harmless if none is slower."""
    pairs = sorted(_successors(change.gate_judge, change.reports), key=lambda successor: -successor.slower)
    slower = any(successor.slower > _least(successor, change.reports) for successor in pairs)
    return Differences(names=tuple(map(_successor_text, pairs)), harmless=not slower)


def renamed_cases(gate_judge: GateJudge, reports: Sequence[CaseReport]) -> frozenset[str]:
    """Return the removed cases that continue under another name; a note on their lines reports them."""
    pairs = ((successor.removed.key, successor.new.key) for successor in _successors(gate_judge, reports))
    return frozenset(str(removed) for removed, new in pairs if gate_judge.accepted.carried_on(removed, new))


def _successors(gate_judge: GateJudge, reports: Sequence[CaseReport]) -> Iterable[Successor]:
    files = {(r.measurement.device.key, r.key.path) for r in reports if r.measurement is not None}
    for device, path in sorted(files):
        then, now = gate_judge.accepted.then_and_now(device, path)
        removed = [line for key, line in then.items() if key not in now and not line.local]
        new = [line for key, line in now.items() if key not in then and not line.local]
        if removed and new:
            yield from successors(removed, new, gate_judge.accepted.renamed_in(path))


def _least(successor: Successor, reports: Sequence[CaseReport]) -> float:
    """Return the smallest slowdown that the new case's limit asks about, 0 if this run has no such limit."""
    verdicts = [v for report in reports if report.key == successor.new.key for v in report.verdicts]
    return min((v.limit.bound for v in verdicts if v.limit.metric == "slowdown" and v.limit.bound > 0), default=0.0)


def _successor_text(successor: Successor) -> str:
    was, now = (quantity(line.time, Dimension.TIME) for line in (successor.removed, successor.new))
    why = f'"{successor.new.why}"' if successor.new.why else "no reason"
    return f"{successor.removed.key} to {successor.new.key}: {was} -> {now}, {signed(successor.slower)}, {why}"


_KINDS = by_name()
_MUCH = 0.05  # scatter, or an undetectable slowdown, that a run on a quiet machine does not reach
_FAR = 2.0  # the ratio of new to old scatter that one further run may cause


def widened(then: Baseline, edited: Baseline) -> tuple[str, ...]:
    """Return how the edit widens the line, its time first if that differs too; empty if it has a reason of its own."""
    parts = () if edited.explains(then) else tuple(_widened(then, edited))
    times = [quantity(line.time, Dimension.TIME) for line in (then, edited)]
    return (f"time {' -> '.join(times)}", *parts) if parts and then.time != edited.time else parts


def _widened(then: Baseline, edited: Baseline) -> Iterator[str]:
    for name in ("scatter", "detects"):
        was, now = getattr(then, name), getattr(edited, name)
        if now > max(_MUCH, _FAR * was):
            yield f"{name} {detectable(was)} -> {detectable(now)}"
    if then.expires and (not edited.expires or edited.expires > then.expires):
        yield f"expires {then.expires} -> {edited.expires or 'never'}"
    yield from _loosened_figures(then, edited)
    clean = then.commit and not then.commit.endswith(DIRTY)
    if clean and edited.commit != then.commit and edited.time == then.time:
        yield f"commit {short_commit(then.commit, 7)} -> {short_commit(edited.commit, 7) or 'none'}"


def _loosened_figures(then: Baseline, edited: Baseline) -> Iterator[str]:
    """Yield accepted figures that are removed from the line, or have a worse value or more scatter."""
    for was in then.figures:
        now, earlier = edited.figure(was.name, was.labels), quantity(was.value, was.dimension)
        if now is None:
            yield f"{was.title} {earlier} -> gone"
            continue
        kind = _KINDS.get(was.name)
        worse = {Better.LOWER: now.value > was.value, Better.HIGHER: now.value < was.value}
        if worse.get(kind.better if kind else Better.NEITHER, now.value != was.value):
            yield f"{was.title} {earlier} -> {quantity(now.value, now.dimension)}"
        elif now.scatter > max(_MUCH, _FAR * was.scatter):
            yield f"scatter of {was.title} {detectable(was.scatter)} -> {detectable(now.scatter)}"
