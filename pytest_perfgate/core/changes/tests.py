"""Tests that were renamed, moved or removed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from pytest_perfgate.core.changes.fixtures import Texts, collectable
from pytest_perfgate.core.changes.marks import marked
from pytest_perfgate.core.changes.source import bodies_of, tree_of
from pytest_perfgate.model.errors import nearest
from pytest_perfgate.model.plan import CaseKey, Reach
from pytest_perfgate.model.values import grouped, value

if TYPE_CHECKING:
    from pytest_perfgate.model.measurement import Baseline


def same_bodies(then: str, now: str) -> dict[str, str]:
    """Return each function that is gone from a file, with the only new function of the same body."""
    # A body of several functions is not unique; a file that does not parse has no functions.
    before, after = bodies_of(then), bodies_of(now)
    removed = {name: body for name, body in before.items() if name not in after}
    new = {name: body for name, body in after.items() if name not in before}
    times = Counter(removed.values()), Counter(new.values())
    marked = {body: name for name, body in new.items() if times[1][body] == 1}
    return {name: marked[body] for name, body in removed.items() if times[0][body] == 1 and body in marked}


def same_function(then: str, now: str, function: str) -> bool:
    """Return whether a function, named with its class, has the same body in two files."""
    body = bodies_of(then).get(function)
    return body is not None and body == bodies_of(now).get(function)


def renamed_nodes(removed: Iterable[str], new: Iterable[str], names: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield removed node ids, with those of the same parameters under the new name of their function."""
    present = set(new)
    for node in removed:
        path, _, test = node.partition("::")
        name, rest = _function_of(test)
        match = f"{path}::{names.get(name, '')}{rest}"
        if match in present:
            yield node, match


def _function_of(test: str) -> tuple[str, str]:
    """Return ``Class::test`` and what follows it: parameters, the name of a call."""
    name = test.partition("#")[0].partition("[")[0]
    return name, test.removeprefix(name)


def is_new(then: str | None, now: str, nodeid: str) -> bool:
    """Return whether a test is new in this version of its file; a renamed test with the same content is not."""
    if then is None:
        return True
    existing = {*bodies_of(then), *same_bodies(then, now).values()}
    return tree_of(then) is not None and CaseKey(nodeid=nodeid).function in bodies_of(now).keys() - existing


_Pair = tuple[str, str]


def rename_candidates(
    removed: Sequence[str], new: Sequence[str], names: Mapping[str, str] | None = None
) -> Iterator[_Pair]:
    """Yield the possible new name of each removed test; each new test is used once at most."""
    # ``names`` are functions known to be renamed, and come first; then tests of the same family, then those of another
    # function with the same parameters, then any of a similar name.
    renamed = dict(renamed_nodes(removed, new, names or {}))
    yield from renamed.items()
    used = set(renamed.values())
    lost, added = [name for name in removed if name not in renamed], [name for name in new if name not in used]
    for among in (_family, _parallel, lambda new: lambda _: new):
        paired = dict(_paired(lost, added, among(added)))
        yield from paired.items()
        used = set(paired.values())
        lost, added = [name for name in lost if name not in paired], [name for name in added if name not in used]


def _paired(lost: Sequence[str], candidates: Sequence[str], among: Callable[[str], Iterable[str]]) -> Iterator[_Pair]:
    """Pair each lost test with the most similar remaining candidate."""
    free = set(candidates)
    for name in lost:
        match = _most_similar(name, [candidate for candidate in among(name) if candidate in free])
        if match:
            free.remove(match)
            yield name, match


def _most_similar(name: str, new: Sequence[str]) -> str:
    """Return the new test with the most similar own name, without the path; "" if none is similar."""
    tests: dict[str, str] = {}
    path, _, own_name = name.partition("::")
    for test in sorted(new, key=lambda test: test.partition("::")[0] != path):  # those of its own file first
        tests.setdefault(test.partition("::")[2], test)
    return next((tests[nearest_name] for nearest_name in nearest(own_name, tests)), "")


def _family(new: Sequence[str]) -> Callable[[str], Iterable[str]]:
    """Return a function that finds new tests that only differ in their parameters."""
    families = grouped(new, lambda name: name.partition("[")[0])
    return lambda name: families.get(CaseKey(nodeid=name).family, ())


def _parallel(new: Sequence[str]) -> Callable[[str], Iterable[str]]:
    """Return a function that finds new tests of other functions with the same parameters and call."""
    groups = grouped(new, _parameters_of)
    return lambda name: groups.get(_parameters_of(name), ()) if _parameters_of(name) else ()


def _parameters_of(name: str) -> str:
    return _function_of(name.partition("::")[2])[1]


@value
class Successor:
    """A new line and the removed line that it replaces."""

    removed: Baseline
    new: Baseline

    @property
    def slower(self) -> float:
        """Return how much slower it is; 0 for times that were measured differently."""
        theirs, ours = self.removed.identity, self.new.identity
        if theirs is not None and ours is not None and theirs.differences(ours):
            return 0.0
        return self.new.time / self.removed.time - 1


def successors(
    removed: Iterable[Baseline], new: Iterable[Baseline], functions: Mapping[str, str] | None = None
) -> Iterator[Successor]:
    """Yield new lines of a device, each with the removed line that it probably replaces."""
    old, fresh = ({(line.device, str(line.key)): line for line in lines} for lines in (removed, new))
    for device in sorted({device for device, _ in fresh}):
        before, after = (sorted(name for where, name in lines if where == device) for lines in (old, fresh))
        for was, now in rename_candidates(before, after, functions):
            yield Successor(removed=old[device, was], new=fresh[device, now])


def absent(texts: Texts, collected: frozenset[str], reach: Reach) -> Iterator[str]:
    """Yield removed or uncollected tests of these files, each with the reason; parameters are ignored."""
    here = {node.partition("[")[0] for node in collected}
    for path, (then, now) in texts.items():
        names, present = same_bodies(then or "", now or ""), marked(now or "")
        for test in dict.fromkeys(name.partition("#")[0].partition("[")[0] for name in marked(then or "")):
            node = f"{path}::{test}"
            if node in here or not reach.holds(node) or not test.rpartition("::")[2].startswith("test"):
                continue
            place = "here, and not collected" if test in present else "gone"
            yield f"{node}: {f'now {names[test]}' if test in names else place}"


GONE = "gone, or not gated any more"


def hidden(texts: Texts, collected: frozenset[str], reach: Reach, *, hides: bool, lined: set[str]) -> Iterator[str]:
    """Yield tests without a line that pytest collected before the change, and that it does not gate any more."""
    # Where no test of a file was collected, its conftest leaves it out on this machine, unless the change ``hides`` it.
    here = {node.partition("[")[0] for node in collected}
    files = {node.partition("::")[0] for node in collected}
    lost = {at: {t for t in collectable(then or "", at) if f"{at}::{t}" not in here} for at, (then, _) in texts.items()}
    tests = {path: sorted(lost[path] & marked(texts[path][0] or "").keys()) for path in texts if lost[path]}
    now = {path: marked(text or "") for path, (_, text) in texts.items()} if any(tests.values()) else {}
    for path, (then, text) in texts.items():
        names = same_bodies(then or "", text or "") if tests.get(path) else {}
        left_out = frozenset() if hides or path in files else collectable(text or "", path)
        for test in tests.get(path, ()):
            node, new = f"{path}::{test}", names.get(test, test)
            places = [path] if new in now[path] else [place for place in now if test in now[place]]
            after = [f"{place}::{new if place == path else test}" for place in places]
            outside = (after and new in left_out) or path in here or not reach.holds(node)
            if not outside and here.isdisjoint({node, *after}) and (after or node not in lined):
                place = after[0] if after and after[0] != node else "here"
                yield f"{node}: {f'{place}, and not collected' if after else GONE}"
