"""Gated tests that the change under test edits, and whose accepted lines it leaves as they were."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pytest_perfgate.app.edits import WORDS, edits
from pytest_perfgate.app.gate import Court
from pytest_perfgate.core.gate.reasons import reasoned
from pytest_perfgate.core.gate.reworked import reworked
from pytest_perfgate.core.render.plural import plural
from pytest_perfgate.model.limit import Effect
from pytest_perfgate.model.plan import CaseKey
from pytest_perfgate.model.verdict import CaseReport, SuiteNote


def reworked_tests(court: Court, reports: Sequence[CaseReport]) -> Iterable[SuiteNote]:
    """One note in CI: such a test may measure something else than what was accepted."""
    changed = edits(court, since(court))
    found = [report for report in reports if held(court, report)]
    if changed is None or not found:
        return
    texts = changed.texts(WORDS)
    if texts is None:
        yield changed.unknown("reworked", "gated tests")
        return
    names = tuple(_names(court, found, texts))
    if names:
        tests = plural(len(names), "gated test")
        stayed = "and both arms ran them as they are now" if court.revision else "the accepted lines are not"
        text = f"{tests} edited {changed.since}, {stayed}: they may measure something else"
        yield SuiteNote(kind="reworked", effect=Effect.WARN, text=text, names=names)


def _names(
    court: Court, held: Iterable[CaseReport], texts: Mapping[str, tuple[str | None, str | None]]
) -> Iterable[str]:
    """Each test once, with what differs of it; one that moved is held against the file that it came from."""
    came = {now: CaseKey(nodeid=then).path for then, now in court.accepted.moved.items()}
    apart: dict[tuple[str, str], Mapping[str, tuple[str, ...]]] = {}
    found: dict[str, tuple[str, ...]] = {}
    for report in held:
        key = report.key
        pair = (came.get(str(key), key.path), key.path)
        if pair[1] not in texts:
            continue
        if pair not in apart:
            then, now = texts.get(pair[0], (None, None))[0], texts[pair[1]][1]
            apart[pair] = reworked(then or "", now or "")
        test = key.test.partition("#")[0].partition("[")[0]
        found[f"{key.path}::{test}"] = apart[pair].get(test, ())
    return [f"{name}: {', '.join(parts)}" for name, parts in sorted(found.items()) if parts]


def since(court: Court) -> str:
    """What a gated test is held against: the revision that the user named, else the one whose lines judge."""
    return court.revision or court.accepted.base.commit


def held(court: Court, report: CaseReport) -> bool:
    """Whether a committed line of before judged it, or would have, and no reason of this change speaks for another.

    Against a revision: whether both arms ran the test as it is now, or it was not measured at all.
    """
    paired = court.paired.get(report.key)
    if report.measurement is None:
        return bool(court.revision) or _lined(court, report.key)
    if paired is not None and paired.revision:
        return not paired.own_file
    then, edited = court.accepted.judging(report.measurement)
    if then is None or then.local or court.accepted.came_with(report.measurement):
        return False
    return edited is None or not reasoned(edited, then)


def _lined(court: Court, key: CaseKey) -> bool:
    """Whether a test that was not measured, such as by ``pytest.xfail`` in its body, has such a line on any device."""
    store = court.tools.baselines
    for device in store.devices() if store is not None else ():
        then, now = court.accepted.then_and_now(device, key.path)
        mine = [line for line in then.values() if line.key.nodeid == key.nodeid and not line.local]
        if any(not reasoned(now.get(str(line.key), line), line) for line in mine):
            return True
    return False
