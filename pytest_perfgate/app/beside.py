"""Which files beside a test the change under test edits, where both arms take them from the head."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from pytest_perfgate.app.compare_arms import Comparison
from pytest_perfgate.app.duet import BASE
from pytest_perfgate.app.untimed import untimed_in
from pytest_perfgate.core.gate.beside import may_be_read, same_program, same_test
from pytest_perfgate.model.paired import Paired
from pytest_perfgate.model.plan import Case, CaseKey
from pytest_perfgate.model.ports import Repository

Show = Callable[[str], "str | None"]
"""A file's text at the base, by its path from the root."""


def with_files(
    found: Mapping[CaseKey, Paired],
    comparison: Comparison,
    tests: Collection[str],
    root: Path,
    repository: Repository | None,
    baselines: str = "baselines",
) -> Mapping[CaseKey, Paired]:
    """What came of a comparison, with what both arms did not share, or share though the change edits it.

    A call that a side did not time in every round is none of it.
    """
    show = partial(repository.show, comparison.arms[BASE].revision) if repository is not None else _nothing

    tables = tuple(_tables(comparison, repository, baselines)) if repository is not None else ()

    def told(nodeid: str, paired: Paired) -> Paired:
        why = next((one.own for one in comparison.rounds if one.nodeid == nodeid and one.own), "")
        another = bool(why) and comparison.own.another(comparison.cases[nodeid])
        paired = replace(paired, own_file=why, own_test=another)
        if nodeid not in comparison.bare:
            return replace(paired, shared=(*_modules(nodeid, paired), *tables))
        edited = edited_beside(comparison.cases[nodeid], comparison.bare[nodeid], tests, root, show)
        return replace(paired, bare=True, edited=edited)

    def _modules(nodeid: str, paired: Paired) -> Iterator[str]:
        """Those that a test has loaded: the user who names a revision asks what one version of it comes to."""
        case, loaded = comparison.cases[nodeid], () if paired.revision else comparison.beside.get(nodeid, ())
        edited = edited_beside(case, loaded, tests, root, show)
        return (path for path in edited if not (paired.own_file and path == case.path))

    untimed = untimed_in(comparison.arms, comparison.rounds)
    return {key: told(key.nodeid, paired) for key, paired in found.items() if key not in untimed}


def _tables(comparison: Comparison, repository: Repository, baselines: str) -> Iterator[str]:
    """Other files that changed and that neither arm holds: where arms run in one folder, both read what lies there."""
    base, head = comparison.arms
    if base.cwd != head.cwd or not base.revision:
        return
    for path in repository.changed(base.revision):
        if may_be_read(path, baselines) and not any(_holds(Path(arm.root), path) for arm in comparison.arms):
            yield path


def _holds(arm: Path, path: str) -> bool:
    """Whether an arm has a file of its own for this one: installed, it lies below fewer folders."""
    parts = Path(path).parts
    return any((arm / Path(*parts[at:])).exists() for at in range(len(parts)))


def unready(comparison: Comparison) -> dict[str, str]:
    """Tests of files that the change edits, which the base alone cannot run in either version, with what it said."""
    seen, edited = comparison.troubles(), comparison.own.edited
    found = (one.nodeid for one in comparison.rounds if one.base_alone)
    return {nodeid: seen[nodeid] for nodeid in found if edited(comparison.cases[nodeid])}


def _nothing(_: str) -> str | None:
    return None


def edited_beside(case: Case, loaded: Iterable[str], tests: Iterable[str], root: Path, show: Show) -> tuple[str, ...]:
    """Those of the files that a test had loaded which say something else at the base; other test files are not its."""
    return tuple(_edited(case, [path for path in loaded if path not in set(tests) - {case.path}], root, show))


def _edited(case: Case, paths: Iterable[str], root: Path, show: Show) -> Iterator[str]:
    test = case.nodeid.partition("::")[2].partition("[")[0]
    for path in paths:
        then, now = show(path), _text(root / path)
        if path == case.path:
            if then is not None and not same_test(then, now, test):
                yield path
        elif then is None:
            if (root / path).exists():
                yield path
        elif not same_program(then, now):
            yield path


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
