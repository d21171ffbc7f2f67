"""What ci/mutate tries: every change once, each another program, annotations left alone, and which tests can see it."""

from __future__ import annotations

import ast

from ci.mutation.afresh import everything_from, modules
from ci.mutation.mutants import ROOT, Home, broken

SOURCE = """
LEAST: int = 2

def outer(a: Literal[1], b=3):
    def inner():
        return a + 1
    return inner() if a < b and not b else max(a, b)

@cached
def second():
    return "text" + name
"""


def every(source: str) -> list[tuple[str, int, Home | None, str]]:
    mutants, number = [], 0
    while (done := broken(source, number)[1]) is not None:
        mutants.append((*done, ast.unparse(broken(source, number)[0])))
        number += 1
    return mutants


def test_every_change_is_another_program_and_knows_its_function() -> None:
    mutants = every(SOURCE)
    texts = [text for *_, text in mutants]
    assert len(set(texts)) == len(texts)
    assert ast.unparse(ast.parse(SOURCE)) not in texts
    outer = ("outer", 4)
    assert [(kind, line, home) for kind, line, home, _ in mutants] == [
        ("constant", 2, None),
        ("constant", 4, None),
        ("arithmetic", 6, outer),
        ("constant", 6, outer),
        ("branches", 7, outer),
        ("and/or", 7, outer),
        ("half", 7, outer),
        ("half", 7, outer),
        ("comparison", 7, outer),
        ("not", 7, outer),
        ("min/max", 7, outer),
    ]
    assert all("Literal[1]" in text and "'text' + name" in text for text in texts)


def test_a_condition_is_broken_as_a_whole_and_in_each_of_its_parts() -> None:
    mutants = every("while left and here() and x > 1:\n    pass\nif here():\n    y = [z for z in left if z if z > 1]\n")
    texts = [text for kind, _, _, text in mutants if kind in {"half", "condition"}]
    for line in ("while here() and x > 1:", "while left and x > 1:", "while left and here():", "if not here():",
                 "    y = [z for z in left if not z if z > 1]"):  # fmt: skip
        assert sum(line in text.splitlines() for text in texts) == 1, line
    assert len(texts) == 5


def test_a_file_leads_to_what_it_imports_and_the_wiring_to_everything() -> None:
    rounds, tests, wiring = (
        everything_from(ROOT / f"{path}.py")
        for path in (
            "pytest_perfgate/core/judge/rounds",
            "tests/unit/core/stats/test_inference",
            "pytest_perfgate/wiring/__init__",
        )
    )
    assert {"pytest_perfgate.core.stats.inference", "pytest_perfgate.core.stats.summary"} <= rounds
    assert "pytest_perfgate.core.judge.judge" not in rounds
    assert "pytest_perfgate.core.stats.inference" in tests
    assert "pytest_perfgate.core.judge.rounds" not in tests
    assert wiring == frozenset(modules())
