from __future__ import annotations

from pytest_perfgate.core.judge.against_revision import foreign_modules, same_code
from pytest_perfgate.model.verdict import Arm

ARM = Arm(
    name="base",
    revision="abc",
    tree="def",
    dirty=False,
    mode="overlay",
    python="python",
    launch=(),
    environment=(),
    cwd="/",
    digest="0",
    root="/arms/base",
    modules=("pkg",),
)
OWN, OTHER = ("/arms/base/pkg/a.py", "1"), ("/home/pkg/a.py", "2")


def test_an_arm_loads_its_own_files_and_some_of_them() -> None:
    assert foreign_modules(ARM, [OWN]) is None
    strange = foreign_modules(ARM, [OWN, *[OTHER] * 7])
    assert strange is not None
    assert (strange.code, strange.retry) == ("arm-foreign-module", False)
    said = "the base arm loaded files of the package under test that are not its own: /home/pkg/a.py"
    assert strange.what == f"{said} and 6 more"
    alone = foreign_modules(ARM, [OTHER])
    assert alone is not None
    assert alone.what == said
    assert strange.evidence == (("arm", "base"), ("belongs below", "/arms/base"), *[("loaded", OTHER[0])] * 5)
    nothing = foreign_modules(ARM, [])
    assert nothing is not None
    assert (nothing.what, nothing.retry) == ("the base arm loaded no module of the package under test (pkg)", False)
    assert foreign_modules(ARM, [("/arms/base2/pkg/a.py", "1")]) is not None


def test_the_same_contents_are_the_same_code() -> None:
    assert same_code([("a", "1"), ("b", "2")], [("x", "2"), ("y", "1")])
    assert not same_code([("a", "1")], [("a", "2")])
    assert not same_code([], [])
