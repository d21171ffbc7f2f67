"""What a change does to folders, settings and committed artefacts, and the table of all checks of a change."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_perfgate.app.changed_tests import (
    ANY,
    ASKING,
    NOTHING,
    WORDS,
    Check,
    Differences,
    JudgedChange,
    compared_revision,
    fixture_parts,
    improved,
    loosened_lines,
    merge_base,
    newly_marked,
    relaxed_limits,
    renamed_lines,
    reworked_tests,
    widened_lines,
)
from pytest_perfgate.app.compare_arms import ROUND, Comparison, captures_of, untimed_in
from pytest_perfgate.core.changes.limits import changed, same_program, same_test
from pytest_perfgate.core.changes.marks import requirements
from pytest_perfgate.core.changes.own_files import edited_modules, may_be_read
from pytest_perfgate.core.changes.tests import GONE, absent, hidden
from pytest_perfgate.core.render.words import plural, quantity
from pytest_perfgate.model.plan import Case, CaseKey, Effect
from pytest_perfgate.model.project import DEPENDENCIES, earlier_file
from pytest_perfgate.model.values import Dimension

if TYPE_CHECKING:
    from pytest_perfgate.app.judge import GateJudge
    from pytest_perfgate.model.measurement import Baseline
    from pytest_perfgate.model.ports import Repository
    from pytest_perfgate.model.verdict import Paired

FOLDER = ".perfgate"

_UNNAMED = (".pyc", ".pyo", ".so", ".pyd", ".dll", ".dylib", ".pth", "sitecustomize.py", "usercustomize.py")
"""Files that Python may load in place of a source, or at its start."""
_LIBRARY = re.compile(r"^(?!.*\.(?:abi3|cpython-|pypy)).*\.so[.\d]*$")  # no module of Python


def tracked_files(change: JudgedChange) -> Differences:
    """Return committed files of ``.perfgate``: the change could have written the history and local baselines there."""
    repository = change.gate_judge.tools.repository
    paths = repository.files("HEAD", FOLDER) if repository is not None else ()
    return Differences(names=tuple(path for path in paths if path != f"{FOLDER}/.gitignore"))


def binary_files(change: JudgedChange) -> Differences:
    """Return changed files that Python loads, but that do not show their content in a review of sources."""
    files = {path for path in change.repository.changed(change.base) if path.endswith(_UNNAMED)}
    return Differences(names=tuple(sorted(files.intersection(change.repository.files("HEAD", ".") if files else ()))))


_HIDING = ("collect_ignore", "pytest_ignore_collect", "pytest_collect", "pytest_pycollect")  # to leave out files


def absent_tests(change: JudgedChange) -> Differences:
    """Return tests that only a named revision has, which were not compared; else those that the change hides."""
    suite, touched = change.suite, change.repository.touched
    if not suite.complete or suite.reach.unknown:
        return Differences()
    texts = touched(change.base, WORDS) or {}
    hides = any(path.rpartition("/")[2] == "conftest.py" for path in touched(change.base, _HIDING) or {})
    if hides:
        texts = {**{path: (now, now) for path, (_, now) in (touched(NOTHING, WORDS) or {}).items()}, **texts}
    present = suite.collected | suite.deselected
    if change.gate_judge.revision:
        return Differences(names=tuple(sorted(absent(texts, present, suite.reach))))
    lined = {line.key.nodeid.partition("[")[0] for line in (*suite.baselines, *suite.gone)}  # other notes name these
    present |= suite.skipped.keys()
    return Differences(names=tuple(sorted(hidden(texts, present, suite.reach, hides=hides, lined=lined))))


def weaker_limits(change: JudgedChange) -> Differences:
    """Return the limits and settings that the change removes or alters; of a deleted test its own note is enough."""
    stated = relaxed_limits(change)
    if not any(name.endswith(" -> none") for name in stated.names) or change.gate_judge.revision:
        return stated
    gone = {name.partition(": ")[0] for name in absent_tests(change).names if name.endswith(GONE)}
    return relaxed_limits(change, gone) if gone else stated


def changed_requirements(change: JudgedChange) -> Differences:
    """Return the declared dependencies that the change adds or removes."""
    then, now = _settings(change)
    return Differences(names=requirements(then.get(DEPENDENCIES, "[]"), now.get(DEPENDENCIES, "[]")))


def changed_settings(change: JudgedChange) -> Differences:
    """Return the settings that the change edits; it is judged by the edited ones."""
    then, now = ({key: text for key, text in settings.items() if key != DEPENDENCIES} for settings in _settings(change))
    names = changed(then, now)
    return Differences(names=names if names and (then or any_lines(change.gate_judge, change.base)) else ())


def _settings(change: JudgedChange) -> tuple[Mapping[str, str], Mapping[str, str]]:
    return change.gate_judge.tools.settings(change.base), change.gate_judge.tools.settings("")


def any_lines(gate_judge: GateJudge, revision: str) -> bool:
    """Return whether a revision has accepted lines of this project."""
    store = gate_judge.tools.baselines
    return store is not None and any(store.paths(device, revision) for device in store.devices())


def moved_root_lines(change: JudgedChange) -> Differences:
    """Return lines that came with the change and are slower than those of the project's earlier folder."""
    new = [(r.baseline, r.key.path) for r in change.reports if r.baseline is not None and not r.baseline.local]
    if not new or any_lines(change.gate_judge, change.base):
        return Differences()
    return Differences(names=tuple(_edited(change.gate_judge, change.base, new)))


def _edited(gate_judge: GateJudge, base: str, new: Iterable[tuple[Baseline, str]]) -> Iterator[str]:
    repository, store = gate_judge.tools.repository, gate_judge.tools.baselines
    assert repository is not None
    files, below = repository.elsewhere(base, ".py.yaml"), repository.below()
    read: dict[tuple[str, str], Mapping[str, Baseline]] = {}
    for line, path in new:
        at = (line.device, path)
        if at not in read:
            file = earlier_file(files, *at, below)
            text = repository.show(base, file) if file else None
            read[at] = store.parsed(text, *at) if text is not None and store is not None else {}
        then = read[at].get(str(line.key))
        if then is not None and line.time > then.time and not line.explains(then):
            was, now = (quantity(baseline.time, Dimension.TIME) for baseline in (then, line))
            yield f"{line.key}: {was} -> {now}"


CHANGES = (
    Check(
        kind="committed", compare=tracked_files, effect=lambda _: Effect.FAIL,
        sentence=lambda _, n: f"{plural(n, 'file')} under {FOLDER}/ {'is' if n == 1 else 'are'} committed: perfgate "
        f"trusts that folder as this machine's own; git rm -r --cached {FOLDER}",
    ),
    Check(
        kind="binary", against=compared_revision, compare=binary_files,
        sentence=lambda change, n: f"{plural(n, 'file')} committed since {change.commit} that Python may load "
        "instead of a source file, or at start-up",
    ),
    Check(
        kind="uprooted", against=merge_base, compare=moved_root_lines,
        effect=lambda gate_judge: gate_judge.context.policy.effect("no_base"),
        sentence=lambda _, n: f"{plural(n, 'line')} of this change judged instead of the merge base's lines, "
        "which are under another root: move them unchanged, or accept with a reason",
    ),
    Check(
        kind="dependencies", against=merge_base, compare=changed_requirements,
        sentence=lambda change, _: f"declared dependencies changed since {change.commit}; base and head share "
        "the packages installed now, so only accepted times can show what they cost",
    ),
    Check(
        kind="settings", against=merge_base, compare=changed_settings,
        sentence=lambda change, n: f"{plural(n, 'setting')} changed since {change.commit}; this run used the new ones",
    ),
    Check(
        kind="absent", against=lambda gate_judge: gate_judge.revision, ci=False, compare=absent_tests,
        sentence=lambda change, n: f"{plural(n, 'gated test')} only in {change.commit}, not compared",
    ),
    Check(
        kind="removed", against=lambda judge: "" if judge.revision else merge_base(judge), compare=absent_tests,
        sentence=lambda change, n: f"{plural(n, 'gated test')} of {change.commit} not collected any more",
    ),
    Check(
        kind="newly marked", against=merge_base, read=WORDS, compare=newly_marked,
        sentence=lambda change, n: f"{plural(n, 'accepted test')} deselected; marks edited since {change.commit}",
    ),
    Check(
        kind="limits", against=merge_base, read=ASKING, unknown="limits of tests", compare=weaker_limits,
        sentence=lambda change, n: f"{plural(n, 'limit or setting', 'limits or settings')} of tests changed since "
        f"{change.commit}; this run used the new ones",
    ),
    Check(
        kind="reworked", against=compared_revision, read=WORDS, unknown="gated tests", compare=reworked_tests,
        sentence=lambda change, n: f"{plural(n, 'gated test')} edited since {change.commit}, "
        f"{'and both builds ran the new ones' if change.gate_judge.revision else 'with earlier limits and lines'}: "
        "they may measure something else",
    ),
    Check(
        kind="borrowed", against=compared_revision, read=ANY, compare=fixture_parts,
        sentence=lambda change, n: f"{plural(n, 'file')} edited since {change.commit} with fixtures, helpers, "
        "data, marks or parameters of gated tests: these may measure something else, or check less",
    ),
    Check(
        kind="loosened", ci=False, compare=loosened_lines, effect=improved,
        sentence=lambda _, n: f"{plural(n, 'line')} of this change accepted as slower than measured: accept the "
        "measured time",
    ),
    Check(
        kind="widened", ci=False, compare=widened_lines, effect=improved,
        sentence=lambda _, n: f"{plural(n, 'line')} of this change would check less than before, without a reason",
    ),
    Check(
        kind="renamed", compare=renamed_lines,
        sentence=lambda _, n: ("1 test seems renamed and is judged by its new line, not by the older one" if n == 1
        else f"{n} tests seem renamed and are judged by their new lines, not by the older ones"),
    ),
)  # fmt: skip
"""All checks of a change, in the order of their notes."""


Show = Callable[[str], "str | None"]
"""Returns a file's text at the base, by its path from the root."""


def with_files(
    pairs: Mapping[CaseKey, Paired],
    comparison: Comparison,
    tests: Collection[str],
    root: Path,
    repository: Repository | None,
    baselines: str = "baselines",
) -> Mapping[CaseKey, Paired]:
    """Return the comparison's results with edited files that both arms share, and unshared test files.

    A call that one side did not time in every round is not among them.
    """
    from pytest_perfgate.app.lockstep import equal_times
    from pytest_perfgate.model.verdict import EQUAL_TIMES

    show: Show = partial(repository.show, comparison.arms[0].revision) if repository is not None else lambda _: None
    tables = [path for path in _tables(comparison, repository, baselines, root) if path not in tests]

    def with_shared_files(nodeid: str, paired: Paired) -> Paired:
        case, bare = comparison.cases[nodeid], nodeid in comparison.bare
        why = next((round_.own for round_ in comparison.rounds if round_.nodeid == nodeid and round_.own), "")
        another = bool(why) and comparison.own.differs(case)
        paired = replace(paired, own_file=why, own_test=another, faster=paired.faster and not another)
        loaded = comparison.beside.get(nodeid, ()) if bare or not paired.revision else ()
        own = {case.path, *comparison.own.paths(case)} if why else set()
        edited = tuple(path for path in edited_imports(case, loaded, tests, root, show) if path not in own)
        shared = tables if bare else dict.fromkeys((*edited, *tables))
        return replace(paired, bare=bare, edited=edited if bare else (), shared=tuple(shared))

    untimed = untimed_in(comparison.arms, comparison.rounds)
    results = {key: with_shared_files(key.nodeid, paired) for key, paired in pairs.items() if key not in untimed}
    equal = {key for key, sides in captures_of(comparison.rounds, ROUND).items() if equal_times(sides)}
    return {key: replace(one, shared=(EQUAL_TIMES,)) if key in equal else one for key, one in results.items()}


def _tables(comparison: Comparison, repository: Repository | None, baselines: str, root: Path) -> Iterator[str]:
    """Yield other changed files that both arms read from the head: they share a folder, or the setting test_paths."""
    base, head = comparison.arms
    compiled = any(".so" in Path(path).name for files in comparison.beside.values() for path in files)  # by its path
    for path in repository.changed(base.revision) if repository is not None and base.revision else ():
        both = any(Path(path).is_relative_to(place) for place in comparison.stage.overlaid)
        if base.cwd == head.cwd:
            both = may_be_read(path, baselines, same=comparison.same or compiled) or _is_installed(root, path)
            both = both and not any(_copies(Path(arm.root), path) for arm in comparison.arms)
        if both:
            yield path


def _is_installed(root: Path, path: str) -> bool:
    """Return whether the environment has the head's file as a copy, of a package that no arm was built from."""
    sites = [Path(place) for place in sys.path if Path(place).name == "site-packages"]
    return any("" != _text(copy) == _text(root / path) for site in sites for copy in _copies(site, path))


def _copies(folder: Path, path: str) -> list[Path]:
    """Return the copies of a file that a folder has; an installed package has fewer parent folders."""
    parts = Path(path).parts
    return [copy for at in range(len(parts)) if (copy := folder / Path(*parts[at:])).exists()]


def base_errors(comparison: Comparison) -> dict[str, str]:
    """Return tests of edited files that only the base cannot run, in either version, with the error."""
    troubles, edited = comparison.troubles(), comparison.own.edited
    nodeids = (round_.nodeid for round_ in comparison.rounds if round_.base_alone)
    return {nodeid: troubles[nodeid] for nodeid in nodeids if edited(comparison.cases[nodeid])}


def edited_imports(case: Case, loaded: Sequence[str], tests: Iterable[str], root: Path, show: Show) -> tuple[str, ...]:
    """Return loaded files whose code differs at the base; other test files, and their new modules, are ignored."""
    test, others = case.nodeid.partition("::")[2].partition("[")[0], set(tests) - {case.path}
    old = (first := show(case.path)) is not None and same_test(first, _text(root / case.path), test)
    here = tuple((path, "", _text(root / path)) for path in (case.path, *loaded) if path.endswith(".py"))
    used = ("conftest.py", "__init__.py", ".so", *edited_modules(case.path, here)) if old else ("",)

    def differs(path: str) -> bool:
        then, now = show(path), _text(root / path)
        if path == case.path:
            return then is not None and not old
        if then is None:  # of a library, its sources are compared
            return (root / path).exists() and not _LIBRARY.search(path) and path.endswith(used)
        return not same_program(then, now)

    return tuple(path for path in loaded if path not in others and differs(path))


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
