"""Which new test probably is one that is gone, under another name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from pytest_perfgate.core.gate.bodies import function_of, renamed_nodes
from pytest_perfgate.core.gate.family import family_of
from pytest_perfgate.core.gate.nearest import nearest
from pytest_perfgate.model.baseline import Baseline
from pytest_perfgate.model.plan import CaseKey
from pytest_perfgate.model.values import value

_Pair = tuple[str, str]


def twins(gone: Sequence[str], new: Sequence[str], names: Mapping[str, str] | None = None) -> Iterator[_Pair]:
    """What each may be called now; a new test was one of them at most.

    ``names`` are functions that are known to be called otherwise now, and come first; then those of the own family,
    those of another function with the same parameters, and any of a like name.
    """
    known = dict(renamed_nodes(gone, new, names or {}))
    yield from known.items()
    taken = set(known.values())
    lost, left = [name for name in gone if name not in known], [name for name in new if name not in taken]
    for among in (_family, _parallel, _any):
        paired = dict(_paired(lost, left, among(left)))
        yield from paired.items()
        taken = set(paired.values())
        lost, left = [name for name in lost if name not in paired], [name for name in left if name not in taken]


def _paired(lost: Sequence[str], left: Sequence[str], among: Callable[[str], Iterable[str]]) -> Iterator[_Pair]:
    """Each that is lost with the most like of those that it may be and that are left."""
    free = set(left)
    for name in lost:
        if twin := _like(name, [one for one in among(name) if one in free]):
            free.remove(twin)
            yield name, twin


def _like(name: str, new: Sequence[str]) -> str:
    """The new test whose own name is nearest; the path before it is alike for all of a file. Empty where none is."""
    tests: dict[str, str] = {}
    for one in sorted(new, key=lambda one: one.partition("::")[0] != name.partition("::")[0]):
        tests.setdefault(one.partition("::")[2], one)
    return next((tests[near] for near in nearest(name.partition("::")[2], tests, 1)), "")


def _family(new: Sequence[str]) -> Callable[[str], Iterable[str]]:
    """New tests that differ in their parameters only."""
    families = _grouped(new, lambda name: name.partition("[")[0])
    return lambda name: families.get(family_of(CaseKey(nodeid=name)), ())


def _parallel(new: Sequence[str]) -> Callable[[str], Iterable[str]]:
    """New tests of other functions with the same parameters and the same name of a call."""
    known = _grouped(new, _rest)
    return lambda name: known.get(_rest(name), ()) if _rest(name) else ()


def _any(new: Sequence[str]) -> Callable[[str], Iterable[str]]:
    return lambda _name: new


def _rest(name: str) -> str:
    return function_of(name.partition("::")[2])[1]


def _grouped(names: Iterable[str], mark: Callable[[str], str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name in names:
        found.setdefault(mark(name), []).append(name)
    return found


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
