"""Files of each build in app/compare_arms: what an arm loads, and tests that the base runs from its own files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pytest_perfgate.app.changed_project import base_errors, with_files
from pytest_perfgate.app.compare_arms import Comparison
from pytest_perfgate.core.changes.own_files import Versions
from pytest_perfgate.core.judge.rounds import Design
from pytest_perfgate.model.plan import CaseKey, Decision
from tests.unit.app.scripted_pairs import (
    PROOF,
    World,
    arm,
    cases,
    compared,
    heard,
    slower,
    staged,
)


def test_an_arm_that_loaded_the_others_files_is_a_problem_of_every_verdict() -> None:
    world = World(time=slower("", 0.0), modules={"base": (("/head/kern.py", "2"),), "head": (("/head/kern.py", "2"),)})
    comparison, results, _ = compared(world)
    assert {problem.code for paired in results.values() for problem in paired.problems} == {"arm-foreign-module"}
    assert {one.number for one in comparison.rounds} == {0}, "further rounds would decide nothing"


def test_where_neither_arm_loads_anything_of_the_package_there_is_nothing_to_tell_them_apart_by(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "helper.py").write_text("1")
    nothing = {"base": (), "head": ()}
    same = dict.fromkeys(nothing, (("tests/helper.py", "1"),))
    for neighbours, content, bare, code in [
        (same, ("x", "x"), True, True),
        (same, ("x", "y"), True, False),
        ({**same, "head": (("tests/helper.py", "2"),)}, ("x", "x"), False, False),
    ]:
        world = World(time=slower("", 0.06), modules=nothing, beside=neighbours)
        comparison, results, _ = compared(world, content=content)
        assert comparison.problems == {}
        assert (bool(comparison.outside), {paired.same for paired in results.values()}) == (bare, {code})
        calls = {CaseKey(nodeid=f"t.py::test_{at}"): one for at, one in results.items()}
        completed = with_files(calls, comparison, ("t.py",), tmp_path, None)
        edited = ("tests/helper.py",) if bare else ()
        assert {(paired.outside, paired.edited) for paired in completed.values()} == {(bare, edited)}


def test_one_arm_alone_that_loads_nothing_of_the_package_is_still_a_problem() -> None:
    comparison, results, _ = compared(World(time=slower("", 0.0), modules={"base": (), "head": PROOF["head"]}))
    assert comparison.outside == set()
    assert {len(paired.problems) for paired in results.values()} == {1}


FILES = "def test_0(): return 1\ndef test_1(): return 1\n"
EDITED = FILES.replace("def test_1(): return 1", "def test_1(): return 2\ndef test_2(): return 3")


def versions(then: str, now: str, conftests: tuple[str | None, str] = (None, "")) -> Versions:
    return lambda path: {"t.py": (then, now), "conftest.py": conftests}[path]


def test_a_file_that_the_base_arm_cannot_collect_is_its_own_there_for_tests_that_it_has() -> None:
    lost = {"t.py::test_0", "t.py::test_1", "t.py::test_2"}
    world = World(
        time=slower("0", 0.06), modules=PROOF, missing={"base": lost}, errors=("t.py: ImportError: no new",), own=True
    )
    stage = replace(staged(world, [], []), texts=versions(FILES, EDITED))
    comparison = Comparison((arm("base"), arm("head")), cases(3), stage, Design())
    results = with_files(heard(comparison), comparison, (), Path(), None)
    decided = {key.nodeid[-1]: (paired.decision, paired.own_file, paired.own_test) for key, paired in results.items()}
    why = "cannot collect this test file as it is here (ImportError: no new), and ran its own test file"
    assert decided == {"0": (Decision.SLOWER, why, False), "1": (Decision.NOT_SLOWER, why, True)}
    assert comparison.problems == {}
    message = "the base build could not collect it: t.py: ImportError: no new"
    assert comparison.troubles() == {"t.py::test_2": message}


@pytest.mark.parametrize(
    ("raises", "expected", "trouble"),
    [
        ({("base", "1", True)}, {"0": ("", False), "1": ("fails at this test as it is here", True)}, {}),
        (
            {("base", "1", True), ("base", "1", False)},
            {"0": ("", False)},
            {"1": "base: failed: call: TypeError: exact"},
        ),
        ({("head", "1", True)}, {"0": ("", False)}, {"1": "head: failed: call: TypeError: exact"}),
    ],
)
def test_a_test_that_raises_in_the_base_arm_alone_is_run_there_from_its_own_file(raises, expected, trouble) -> None:
    world = World(time=slower("1", 0.06), modules=PROOF)
    world.raises = {(side, f"t.py::test_{test}", heads) for side, test, heads in raises}
    stage = replace(staged(world, [], []), texts=versions(FILES, EDITED))
    comparison = Comparison((arm("base"), arm("head")), cases(2), stage, Design())
    results = with_files(heard(comparison), comparison, (), Path(), None)
    own_files = {
        key.nodeid[-1]: (paired.own_file.partition(" (")[0], paired.own_test) for key, paired in results.items()
    }
    assert own_files == expected
    assert {nodeid[-1]: text for nodeid, text in comparison.troubles().items()} == trouble
    assert {nodeid[-1] for nodeid in base_errors(comparison)} == {
        one for one in trouble if trouble[one].startswith("base")
    }
    if "1" in expected:
        assert {key.nodeid[-1]: paired.decision for key, paired in results.items()}["1"] is Decision.SLOWER


LOADING = "its last output:\n  conftest.py:1: in <module>\nE   {error}\n"
THEN, NOW = "import pytest\n", "import pytest\nfrom pk.new import size\ndef other(): return size\n"


def test_a_conftest_that_the_base_cannot_load_is_its_own_there() -> None:
    world = World(time=slower("1", 0.06), modules=PROOF, unloadable=LOADING.format(error="ImportError: no new"))
    stage = replace(staged(world, [], []), texts=versions(FILES, FILES, (THEN, NOW)))
    comparison = Comparison((arm("base"), arm("head")), cases(2), stage, Design())
    results = with_files(heard(comparison), comparison, (), Path(), None)
    why = "cannot start with a conftest.py as it is here (ImportError: no new), and ran its own conftest.py"
    assert {(key.nodeid[-1], one.decision, one.own_file, one.own_test) for key, one in results.items()} == {
        ("0", Decision.NOT_SLOWER, why, False), ("1", Decision.SLOWER, why, False),
    }  # fmt: skip
    assert comparison.troubles() == comparison.problems == {}
    first, *later = world.begun
    assert [seed for seed, _ in later].count(first[0]) == 3, "only the first round starts twice"


@pytest.mark.parametrize(
    ("error", "setting"),
    [
        ("OSError: no file", ""),
        ("ModuleNotFoundError: No module named 'beside'", "list its folder in [tool.perfgate]: in 'projects'"),
    ],
)
def test_a_conftest_that_cannot_be_loaded_and_is_not_edited_leaves_its_tests_open(error: str, setting: str) -> None:
    world = World(time=slower("1", 0.0), modules=PROOF, unloadable=LOADING.format(error=error))
    stage = replace(staged(world, [], []), texts=versions(FILES, EDITED, (THEN, THEN)))
    comparison = Comparison((arm("base"), arm("head")), cases(2), stage, Design())
    assert heard(comparison) == {}
    assert len(world.spawned) == 2
    assert all(error in why and setting in why for why in comparison.troubles().values())
    assert setting or not any("[tool.perfgate]" in why for why in comparison.troubles().values())


def test_a_fixture_that_raises_in_the_base_alone_is_its_own_there() -> None:
    world = World(time=slower("1", 0.06), modules=PROOF, raises={("base", "t.py::test_1", True)})
    stage = replace(staged(world, [], []), texts=versions(FILES, FILES, (THEN, NOW)))
    comparison = Comparison((arm("base"), arm("head")), cases(2), stage, Design())
    results = with_files(heard(comparison), comparison, (), Path(), None)
    why = "fails at this test as it is here (call: TypeError: exact), and ran its own conftest.py"
    assert {key.nodeid[-1]: one.own_file for key, one in results.items()} == {"0": "", "1": why}


SAME = {side: ((f"/{side}/kern.py", "1"),) for side in ("base", "head")}
IMPORTS = "from kernels import kernel\ndef test_0(perfgate): perfgate(kernel)\ndef test_1(perfgate): perfgate(kernel)\n"
KERNEL = "def kernel(): return 1\ndef test_0(perfgate): perfgate(kernel)\ndef test_1(perfgate): perfgate(sum, [1])\n"


def test_an_edited_module_beside_a_test_runs_in_the_version_of_each_build() -> None:
    """A checkout has its own modules anyway."""
    beside = dict.fromkeys(SAME, (("t.py", "1"), ("kernels.py", "1"), ("conftest.py", "1")))
    files = {"t.py": (IMPORTS, IMPORTS), "kernels.py": ("def kernel(): return 1", "def kernel(): return 2")}
    for mode, why in [("overlay", "has another kernels.py, and ran its own kernels.py"), ("worktree", "")]:
        world = World(time=slower("1", 0.06), modules=SAME, beside=beside)
        stage = replace(staged(world, [], []), texts=lambda path: files.get(path, (None, "")))
        arms = tuple(replace(arm(name), content="x", mode=mode) for name in SAME)
        comparison = Comparison((arms[0], arms[1]), cases(2), stage, replace(Design(), clears_same=True))
        results = with_files(heard(comparison), comparison, ("t.py",), Path(), None)
        decision = Decision.SLOWER if why else Decision.NOT_SLOWER
        assert {(one.own_file, one.shared) for one in results.values()} == {(why, ())}
        assert results[CaseKey(nodeid="t.py::test_1")].decision is decision
        assert (len(comparison.rounds) > 2) is bool(why), "the same code needs one round of each test"
        again = Comparison(comparison.arms, cases(2), stage, comparison.design)
        again.resume(comparison.rounds)
        assert heard(again)[CaseKey(nodeid="t.py::test_1")].decision is decision, "a run that was cut short goes on"
        assert {again.own.reason(nodeid) for nodeid in again.cases} == {why}


@pytest.mark.parametrize(("modules", "content"), [(SAME, "x"), (dict.fromkeys(SAME, ()), "y")], ids=["same", "bare"])
def test_a_kernel_of_the_test_file_runs_in_the_version_of_each_build(
    modules: dict[str, tuple[tuple[str, str], ...]], content: str
) -> None:
    """Where both builds have the same package, or the test loads nothing of it."""
    world = World(time=slower("0", 0.06), modules=modules)
    stage = replace(staged(world, [], []), texts=versions(KERNEL, KERNEL.replace("return 1", "return 2")))
    arms = replace(arm("base"), content="x"), replace(arm("head"), content=content)
    comparison = Comparison(arms, cases(2), stage, Design())
    results = with_files(heard(comparison), comparison, ("t.py",), Path(), None)
    own = {key.nodeid[-1]: (one.decision, one.own_file, one.same, one.edited) for key, one in results.items()}
    why = "has another kernel in t.py, and ran its own test file"
    assert own["0"] == (Decision.SLOWER, why, False, ())
    assert own["1"][1:3] == ("", content == "x")
    numbers = [round_.number for round_ in comparison.rounds if round_.nodeid == "t.py::test_0"]
    assert numbers == list(range(len(numbers))), "a round of the head's file in both builds is replaced"


def test_a_test_file_of_each_build_may_import_other_modules_of_the_package() -> None:
    """The change takes an import of the package away from the kernel, and its tests stay comparable."""
    world = World(time=slower("0", 0.06), modules={**SAME, "head": ()})
    stage = replace(staged(world, [], []), texts=versions(KERNEL, KERNEL.replace("return 1", "return 2")))
    arms = replace(arm("base"), content="x"), replace(arm("head"), content="x")
    comparison = Comparison(arms, cases(1), stage, Design())
    (paired,) = heard(comparison).values()
    assert (paired.decision, comparison.problems, comparison.same) == (Decision.SLOWER, {}, True)


def test_a_test_that_differs_in_the_base_is_not_called_faster() -> None:
    world = World(time=slower("1", -0.3), modules=PROOF, raises={("base", "t.py::test_1", True)})
    stage = replace(staged(world, [], []), texts=versions(FILES, EDITED))
    comparison = Comparison((arm("base"), arm("head")), cases(2), stage, Design())
    pairs = heard(comparison)
    results = with_files(pairs, comparison, (), Path(), None)
    (key,) = (key for key in results if key.nodeid.endswith("1"))
    assert (pairs[key].faster, results[key].faster, results[key].own_test) == (True, False, True)


def test_a_test_that_is_missing_beside_the_base_s_own_conftest_says_so() -> None:
    world = World(time=slower("1", 0.06), modules=PROOF, unloadable=LOADING.format(error="ImportError: no new"))
    world.missing = {"base": {"t.py::test_1"}}
    stage = replace(staged(world, [], []), texts=versions(FILES, FILES, (THEN, NOW)))
    comparison = Comparison((arm("base"), arm("head")), cases(2), stage, Design())
    heard(comparison)
    why = "it cannot start with a conftest.py as it is here (ImportError: no new), and ran its own conftest.py"
    assert comparison.troubles() == {"t.py::test_1": f"the base build could not collect it: {why}"}


def test_a_test_that_raises_in_both_versions_of_one_file_has_no_other_to_be_tried_with() -> None:
    world = World(time=slower("1", 0.0), modules=PROOF, raises={("base", "t.py::test_1", True)})
    stage = replace(staged(world, [], []), texts=versions(FILES, FILES))
    comparison = Comparison((arm("base"), arm("head")), cases(2), stage, Design())
    heard(comparison)
    assert comparison.troubles() == {"t.py::test_1": "base: failed: call: TypeError: exact"}
    assert len(world.spawned) == 2 * 7
    assert base_errors(comparison) == {}, "the change does not edit it: that the base fails is no matter of its file"


@pytest.mark.parametrize(
    ("modules", "bare", "same"),
    [({"base": ()}, True, True), ({side: (("/k.py", "1"),) for side in PROOF}, False, True), (PROOF, False, False)],
)
def test_what_finished_rounds_loaded_is_taken_up_with_them(
    modules: dict[str, tuple[tuple[str, str], ...]], bare: bool, same: bool
) -> None:
    """Their tests may run no more, and a helper that the change edits is still read by both builds."""
    helper = (("tests/helper.py", "1"),)
    world = World(time=slower("", 0.0), modules=modules, beside={"base": helper, "head": helper})
    first, *_ = compared(world, content=("x", "x"))
    again = Comparison(first.arms, cases(3), staged(world, [], []), Design())
    again.resume(first.rounds)
    assert again.loaded == {f"t.py::test_{n}": ("tests/helper.py",) for n in range(3)}
    assert again.outside == ({*again.loaded} if bare else set())
    assert again.same is same


def test_rounds_of_an_arm_that_was_not_itself_are_not_kept() -> None:
    world = World(time=slower("", 0.0), modules={"base": PROOF["head"], "head": PROOF["head"]})
    counts: list[int] = []
    comparison = Comparison((arm("base"), arm("head")), cases(1), staged(world, [], counts), Design())
    heard(comparison)
    assert counts == []


def test_the_same_code_on_both_sides_is_known() -> None:
    same = {"base": (("/base/kern.py", "1"),), "head": (("/head/kern.py", "1"),)}
    for content, modules, expected in [
        (("x", "x"), same, True),
        (("x", "y"), same, False),
        (("", ""), same, False),
        (("x", "x"), PROOF, False),
    ]:
        _, results, _ = compared(World(time=slower("", 0.06), modules=modules), content=content)
        assert {paired.same for paired in results.values()} == {expected}
        _, results, _ = compared(World(time=slower("", -0.5), modules=modules), content=content)
        assert {paired.faster for paired in results.values()} == {not expected}, "the same code is no faster"
