"""What the change does to its own tests."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from pytest_perfgate.core.changes.fixtures import CONFTEST, PACKAGE, Texts, fixture_sources, is_above
from pytest_perfgate.core.changes.limits import TIGHTER, relaxed, reworked
from pytest_perfgate.core.changes.source import marks_of
from pytest_perfgate.core.changes.tests import Successor, function_of, successors
from pytest_perfgate.core.judge.acceptance import loosened
from pytest_perfgate.core.judge.accepted_line import reasoned, widened
from pytest_perfgate.core.judge.policy import effect
from pytest_perfgate.core.metric_kinds import by_name
from pytest_perfgate.core.render.words import plural, quantity, signed
from pytest_perfgate.model.plan import Case, CaseKey, Effect, Limit, Mode, Outcome, parse_case_key
from pytest_perfgate.model.ports import Repository
from pytest_perfgate.model.values import Dimension, value
from pytest_perfgate.model.verdict import CaseReport, SuiteNote

if TYPE_CHECKING:
    from pytest_perfgate.app.judge import GateJudge
    from pytest_perfgate.core.judge.suite import Suite
    from pytest_perfgate.model.measurement import Baseline

_ANY = ("",)

_USED = "usefixtures"


def fixture_parts(gate_judge: GateJudge, reports: Sequence[CaseReport]) -> Iterable[SuiteNote]:
    """One note in CI with each file once: tests that read as before may measure something else, or hold less."""
    change = edits(gate_judge, since(gate_judge))
    if change is None:
        return
    tests: dict[str, set[str]] = defaultdict(set)
    for report in reports:
        if held(gate_judge, report):
            tests[report.key.path].add(function_of(report.key.test)[0])
    changed = (change.texts(_ANY) or {}) if tests else {}  # that git does not answer, another note says
    if changed.keys() <= tests.keys():
        return
    texts = change.repository.touched(NOTHING, WORDS) or {}
    taking = {path: (texts[path][1] or "", of) for path, of in tests.items() if path in texts}
    names = fixture_sources(taking, changed, _standing(change.repository, taking, changed), _around_all(gate_judge))
    if names:
        text = (
            f"{plural(len(names), 'file')} edited {change.since} that gated tests take fixtures, helpers, marks or"
            " parameters from: they may measure something else, or hold less"
        )
        parts_text = tuple(f"{path}: {', '.join(parts)}" for path, parts in names.items())
        yield SuiteNote(kind="borrowed", effect=Effect.WARN, text=text, names=parts_text)


def _standing(repository: Repository, tests: Collection[str], changed: Texts) -> Mapping[str, str]:
    """Conftests and packages above these tests as they are now; read where the change edits what they could import."""
    current = {path: now for path, (_, now) in changed.items() if now is not None and _stands(path, tests)}
    if changed.keys() <= {*tests, *current}:
        return {}
    folders = {parent for path in tests for parent in PurePosixPath(path).parents}
    possible = {str(folder / name) for folder in folders for name in (CONFTEST, PACKAGE)} - changed.keys()
    there = possible.intersection(repository.files("HEAD", ".")) if possible else ()
    texts = {path: repository.show("HEAD", path) or "" for path in there if _stands(path, tests)}
    return {**current, **texts}


def _stands(path: str, tests: Iterable[str]) -> bool:
    return any(is_above(path, test) for test in tests)


def _around_all(gate_judge: GateJudge) -> Collection[str]:
    """Fixtures that the settings of pytest put around every test."""
    settings = gate_judge.tools.settings("")
    plugins = (json.loads(text) for key, text in settings.items() if key.endswith(f": {_USED}"))
    return {word for one in plugins for word in (one if isinstance(one, list) else str(one).split())}


WORDS = ("perfgate", "benchmark")
"""What the file of a gated test says: the marker, or one of the fixtures."""

NOTHING = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
"""Git's name for a tree without files: every file is other than there."""

_LETTERS = 10


@value
class Edits:
    """What became of files since a commit."""

    base: str
    repository: Repository

    @property
    def since(self) -> str:
        """The commit, as a sentence names it."""
        return f"since {self.base[:_LETTERS]}"

    def texts(self, words: Sequence[str]) -> Mapping[str, tuple[str | None, str | None]] | None:
        """What files with one of these words were and are; nothing where git does not answer."""
        return self.repository.touched(self.base, words)

    def unknown(self, kind: str, what: str) -> SuiteNote:
        """That git did not answer, and what is not known for it."""
        text = f"which {what} changed {self.since} is not known: git did not answer for the files"
        return SuiteNote(kind=kind, effect=Effect.WARN, text=text)


def edits(gate_judge: GateJudge, base: str) -> Edits | None:
    """Those since this commit; none on a laptop, nor where no commit or no repository can be asked."""
    repository = gate_judge.tools.repository
    if not gate_judge.context.policy.ci or not base or repository is None:
        return None
    return Edits(base=base, repository=repository)


_WORDS = (*WORDS, "limits")
"""What a file holds that asks for more or less than the project does, or excuses a test of asking for the fixture."""


def relaxed_limits(gate_judge: GateJudge, cases: Mapping[str, Case]) -> Iterable[SuiteNote]:
    """One note in CI for all of them: the change is judged by the limits that it leaves."""
    changed = edits(gate_judge, gate_judge.accepted.base.commit)
    if changed is None:
        return
    texts = changed.texts(_WORDS)
    if texts is None:
        yield changed.unknown("limits", "limits of tests")
        return
    weakened = relaxed(texts, gate_judge.tools.kinds or by_name(), gate_judge.merged, _asked(cases.values()))
    if weakened:
        text = f"{plural(len(weakened), 'limit or setting', 'limits or settings')} of tests changed {changed.since};"
        effect = Effect.PASS if {*weakened.values()} == {TIGHTER} else Effect.WARN
        yield SuiteNote(
            kind="limits", effect=effect, text=f"{text} this run was judged by the new", names=tuple(weakened)
        )


def _asked(cases: Iterable[Case]) -> dict[str, list[tuple[Limit, ...]]]:
    """What the tests of the run were asked by the project; a limit of the command line is none of it."""
    limits: dict[str, list[tuple[Limit, ...]]] = {}
    for case in cases:
        ways = limits.setdefault(case.nodeid.partition("[")[0], [])
        if case.limits not in ways and not any(limit.source == "command line" for limit in case.limits):
            ways.append(case.limits)
    return limits


def reworked_tests(gate_judge: GateJudge, reports: Sequence[CaseReport]) -> Iterable[SuiteNote]:
    """One note in CI: such a test may measure something else than what was accepted."""
    changed = edits(gate_judge, since(gate_judge))
    edited = [report for report in reports if held(gate_judge, report)]
    if changed is None or not edited:
        return
    texts = changed.texts(WORDS)
    if texts is None:
        yield changed.unknown("reworked", "gated tests")
        return
    names = tuple(_names(gate_judge, edited, texts))
    if names:
        tests = plural(len(names), "gated test")
        stayed = "and both arms ran them as they are now" if gate_judge.revision else "the accepted lines are not"
        text = f"{tests} edited {changed.since}, {stayed}: they may measure something else"
        yield SuiteNote(kind="reworked", effect=Effect.WARN, text=text, names=names)


def _names(
    gate_judge: GateJudge, held: Iterable[CaseReport], texts: Mapping[str, tuple[str | None, str | None]]
) -> Iterable[str]:
    """Each test once, with what differs of it; one that moved is held against the file that it came from."""
    came = {now: CaseKey(nodeid=then).path for then, now in gate_judge.accepted.moved.items()}
    apart: dict[tuple[str, str], Mapping[str, tuple[str, ...]]] = {}
    names: dict[str, tuple[str, ...]] = {}
    for report in held:
        key = report.key
        pair = (came.get(str(key), key.path), key.path)
        if pair[1] not in texts:
            continue
        if pair not in apart:
            then, now = texts.get(pair[0], (None, None))[0], texts[pair[1]][1]
            apart[pair] = reworked(then or "", now or "")
        test = key.test.partition("#")[0].partition("[")[0]
        names[f"{key.path}::{test}"] = apart[pair].get(test, ())
    return [f"{name}: {', '.join(parts)}" for name, parts in sorted(names.items()) if parts]


def since(gate_judge: GateJudge) -> str:
    """What a gated test is held against: the revision that the user named, else the one whose lines judge."""
    return gate_judge.revision or gate_judge.accepted.base.commit


def held(gate_judge: GateJudge, report: CaseReport) -> bool:
    """Whether a committed line of before judged it, or would have, and no reason of this change speaks for another.

    Against a revision: whether both arms ran the test as it is now, or it was not measured at all.
    """
    paired = gate_judge.paired.get(report.key)
    if report.measurement is None:
        return bool(gate_judge.revision) or _lined(gate_judge, report.key)
    if paired is not None and paired.revision:
        return not paired.own_file
    then, edited = gate_judge.accepted.judging(report.measurement)
    if then is None or then.local or gate_judge.accepted.came_with(report.measurement):
        return False
    return edited is None or not reasoned(edited, then)


def _lined(gate_judge: GateJudge, key: CaseKey) -> bool:
    """Whether a test that was not measured, such as by ``pytest.xfail`` in its body, has such a line on any device."""
    store = gate_judge.tools.baselines
    for device in store.devices() if store is not None else ():
        then, now = gate_judge.accepted.then_and_now(device, key.path)
        mine = [line for line in then.values() if line.key.nodeid == key.nodeid and not line.local]
        if any(not reasoned(now.get(str(line.key), line), line) for line in mine):
            return True
    return False


def loosened_lines(gate_judge: GateJudge, reports: Sequence[CaseReport]) -> Iterable[SuiteNote]:
    """A note for lines that are slower than what is measured, and one for those that hold less in another way."""
    if gate_judge.context.mode is not Mode.FULL:
        return
    done = effect(Outcome.IMPROVED, gate_judge.context.policy, gate_judge.context.mode)
    edits = [(report, *edit) for report in reports if (edit := _edit(gate_judge, report)) is not None]
    slower = [f"{r.key}: {sentence}" for r, then, now in edits if (sentence := loosened(then, now, r.measurement))]
    weaker = [f"{r.key}: {', '.join(parts)}" for r, then, now in edits if (parts := widened(then, now))]
    if slower and done is not Effect.PASS:
        text = f"{plural(len(slower), 'line')} of this change accepted as slower than measured: accept what is measured"
        yield SuiteNote(kind="loosened", effect=done, text=text, names=tuple(slower))
    if weaker and done is not Effect.PASS:
        text = f"{plural(len(weaker), 'line')} of this change would hold less than before, and no reason says why"
        yield SuiteNote(kind="widened", effect=done, text=text, names=tuple(weaker))


def _edit(gate_judge: GateJudge, report: CaseReport) -> tuple[Baseline, Baseline] | None:
    """The line that judges and what the change makes of it, where it edits it."""
    if report.measurement is None or report.problems:
        return None
    then, edited = gate_judge.accepted.judging(report.measurement)
    return (then, edited) if then is not None and edited is not None else None


def newly_marked(gate_judge: GateJudge, suite: Suite) -> Iterable[SuiteNote]:
    """One note in CI for all of them that have an accepted line."""
    changed = edits(gate_judge, gate_judge.accepted.base.commit)
    deselected = {line.key.nodeid for line in suite.baselines} & suite.deselected
    if not deselected or changed is None:
        return
    texts = changed.texts(WORDS) or {}  # that git does not answer, another note says
    tests = {(key.path, key.test_id.partition("[")[0]) for key in map(parse_case_key, deselected) if key.path in texts}
    names = tuple(f"{path}::{test}" for path, test in sorted(tests) if _edited(*texts[path], test))
    if names:
        text = f"{plural(len(names), 'accepted test')} deselected, and their marks are edited {changed.since}"
        yield SuiteNote(kind="newly marked", effect=Effect.WARN, text=text, names=names)


def _edited(then: str | None, now: str | None, test: str) -> bool:
    before, after = marks_of(then or "", test), marks_of(now or "", test)
    return None not in (before, after) and before != after


def renamed_lines(gate_judge: GateJudge, reports: Sequence[CaseReport]) -> Iterable[SuiteNote]:
    """One note in CI for all of them, the slowest first; it warns where one is slower than what it follows."""
    if not gate_judge.context.policy.ci:
        return
    successors = sorted(_successors(gate_judge, reports), key=lambda heir: -heir.slower)
    if successors:
        counted = "1 line is" if len(successors) == 1 else f"{len(successors)} lines are"
        text = f"{counted} new in this change and replaces a removed one: the new time is compared with itself"
        slower = any(heir.slower > _least(heir, reports) for heir in successors)
        effect = Effect.WARN if slower else Effect.PASS
        yield SuiteNote(kind="renamed", effect=effect, text=text, names=tuple(map(_said, successors)))


def followed(gate_judge: GateJudge, reports: Sequence[CaseReport]) -> frozenset[str]:
    """Cases that are gone and that go on under another name: the note on their lines tells of them."""
    on = (
        heir.gone
        for heir in _successors(gate_judge, reports)
        if gate_judge.accepted.carried_on(heir.gone.key, heir.new.key)
    )
    return frozenset(str(line.key) for line in on)


def _successors(gate_judge: GateJudge, reports: Sequence[CaseReport]) -> Iterable[Successor]:
    files = {(r.measurement.device.key, r.key.path) for r in reports if r.measurement is not None}
    for device, path in sorted(files):
        then, now = gate_judge.accepted.then_and_now(device, path)
        gone = [line for key, line in then.items() if key not in now and not line.local]
        new = [line for key, line in now.items() if key not in then and not line.local]
        if gone and new:
            yield from successors(gone, new, gate_judge.accepted.renamed_in(path))


def _least(heir: Successor, reports: Sequence[CaseReport]) -> float:
    """What the limit of the new case asks about; anything at all where this run has none."""
    verdicts = [v for report in reports if report.key == heir.new.key for v in report.verdicts]
    return min((v.limit.bound for v in verdicts if v.limit.metric == "slowdown" and v.limit.bound > 0), default=0.0)


def _said(heir: Successor) -> str:
    was, now = (quantity(line.time, Dimension.TIME) for line in (heir.gone, heir.new))
    why = f'"{heir.new.why}"' if heir.new.why else "no reason"
    return f"{heir.new.key} {now} after {heir.gone.key} {was}: {signed(heir.slower)}, {why}"
