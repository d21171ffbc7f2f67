"""Which new test probably is one that is gone, under another name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from pytest_perfgate.core.gate.bodies import renamed_nodes
from pytest_perfgate.core.gate.family import family_of
from pytest_perfgate.core.gate.nearest import nearest
from pytest_perfgate.model.baseline import Baseline
from pytest_perfgate.model.plan import CaseKey
from pytest_perfgate.model.values import value


def twins(gone: Sequence[str], new: Sequence[str], names: Mapping[str, str] | None = None) -> Iterator[tuple[str, str]]:
    """What each may be called now; a new test was one of them at most, of its own family before any other.

    ``names`` are functions that are known to be called otherwise now, and come first.
    """
    orphans = []
    known = dict(renamed_nodes(gone, new, names or {}))
    yield from known.items()
    left = [name for name in new if name not in known.values()]
    for name in (name for name in gone if name not in known):
        if twin := _like(name, _family(name, left)):
            left.remove(twin)
            yield name, twin
        else:
            orphans.append(name)
    for name in orphans:
        if twin := _like(name, left):
            left.remove(twin)
            yield name, twin


def _like(name: str, new: list[str]) -> str:
    """The new test whose own name is nearest; the path before it is alike for all of a file. Empty where none is."""
    tests: dict[str, str] = {}
    for one in sorted(new, key=lambda one: one.partition("::")[0] != name.partition("::")[0]):
        tests.setdefault(one.partition("::")[2], one)
    return next((tests[near] for near in nearest(name.partition("::")[2], tests, 1)), "")


def _family(name: str, new: list[str]) -> list[str]:
    """New tests that differ in their parameters only."""
    family = family_of(CaseKey(nodeid=name))
    return [n for n in new if n.partition("[")[0] == family]


@value
class Heir:
    """A line that is new, in the place of one that is gone."""

    gone: Baseline
    new: Baseline

    @property
    def slower(self) -> float:
        """By how much; never for times that were measured differently."""
        theirs, ours = self.gone.identity, self.new.identity
        if theirs is not None and ours is not None and theirs.differences(ours):
            return 0.0
        return self.new.time / self.gone.time - 1


def heirs(
    gone: Iterable[Baseline], new: Iterable[Baseline], functions: Mapping[str, str] | None = None
) -> Iterator[Heir]:
    """New lines of a device, each with the line that it probably takes the place of."""
    old, fresh = ({(line.device, str(line.key)): line for line in lines} for lines in (gone, new))
    for device in sorted({device for device, _ in fresh}):
        before, after = (sorted(name for at, name in lines if at == device) for lines in (old, fresh))
        for was, now in twins(before, after, functions):
            yield Heir(gone=old[device, was], new=fresh[device, now])
