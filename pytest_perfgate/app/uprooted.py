"""A project whose root is another one than at the merge base: its lines of before lie where nothing looks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from pytest_perfgate.app.gate import Court
from pytest_perfgate.core.gate.policy import chosen
from pytest_perfgate.core.gate.reasons import reasoned
from pytest_perfgate.core.gate.uprooted import forerunner
from pytest_perfgate.core.render.plural import plural
from pytest_perfgate.core.render.quantity import quantity
from pytest_perfgate.model.baseline import Baseline
from pytest_perfgate.model.quantity import Dimension
from pytest_perfgate.model.verdict import CaseReport, SuiteNote

_ENDING = ".py.yaml"


def any_lines(court: Court, revision: str) -> bool:
    """Whether a revision has accepted lines of this project."""
    store = court.tools.baselines
    return store is not None and any(store.paths(device, revision) for device in store.devices())


def uprooted_lines(court: Court, reports: Sequence[CaseReport]) -> Iterable[SuiteNote]:
    """In CI each line that came with the change and is slower than where the project lay before."""
    base, repository = court.accepted.base.commit, court.tools.repository
    new = [(r.baseline, r.key.path) for r in reports if r.baseline is not None and not r.baseline.local]
    if not court.context.policy.ci or not base or repository is None or not new or any_lines(court, base):
        return
    names = tuple(_edited(court, base, new))
    if names:
        text = (
            f"{plural(len(names), 'line')} of this change judged in place of those of the merge base, which lie where "
            "this root was not: move them as they are, or accept with a reason"
        )
        effect = chosen(court.context.policy, "baseless")
        yield SuiteNote(kind="uprooted", effect=effect, text=text, names=names)


def _edited(court: Court, base: str, new: Iterable[tuple[Baseline, str]]) -> Iterator[str]:
    repository = court.tools.repository
    assert repository is not None
    files, below = repository.elsewhere(base, _ENDING), repository.below()
    read: dict[tuple[str, str], Mapping[str, Baseline]] = {}
    for line, path in new:
        at = (line.device, path)
        if at not in read:
            file = forerunner(files, *at, below)
            read[at] = _lines(court, *at, repository.show(base, file) if file else None)
        then = read[at].get(str(line.key))
        if then is not None and line.time > then.time and not reasoned(line, then):
            was, now = (quantity(one.time, Dimension.TIME) for one in (then, line))
            yield f"{line.key}: {was} -> {now}"


def _lines(court: Court, device: str, path: str, text: str | None) -> Mapping[str, Baseline]:
    store = court.tools.baselines
    return store.parsed(text, device, path) if text is not None and store is not None else {}
