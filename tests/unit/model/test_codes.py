from __future__ import annotations

import ast
import re
from pathlib import Path

from pytest_perfgate.model import codes, errors
from pytest_perfgate.model.codes import Family

PACKAGE = Path(codes.__file__).parents[2]


def test_names_and_exits_are_unique() -> None:
    names = [code.name for table in errors.tables() for code in table]
    assert len(names) == len(set(names))
    exits = [family.exit for family in Family]
    assert len(exits) == len(set(exits))
    assert not set(exits) & {0, 1, 3, 4}


def stated_codes() -> set[str]:
    """Return the codes that the package gives: raised, and by ``code=`` as text or as the name of a constant."""
    constants, arguments = {}, []
    for path in PACKAGE.rglob("*.py"):
        # one tree at a time: with all of them in memory, looking for garbage takes most of the time
        tree = ast.parse(path.read_text(encoding="utf-8"))
        assignments = [node for node in tree.body if isinstance(node, ast.Assign)]
        constants |= {name.id: one.value for one in assignments for name in one.targets if isinstance(name, ast.Name)}
        for node in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
            raises = isinstance(node.func, ast.Name) and node.func.id in {"PerfgateError", "Problem"}
            arguments += node.args[: int(raises)]
            arguments += [word.value for word in node.keywords if word.arg == "code"]
    values = (constants.get(one.id) if isinstance(one, ast.Name) else one for one in arguments)
    return {one.value for one in values if isinstance(one, ast.Constant) and one.value}


def test_every_code_that_is_stated_is_in_the_table() -> None:
    stated = stated_codes()
    assert stated - set(errors.codes()) == set()
    assert {"nsys-silent", "throttled", "limit-unit"} <= stated


def test_every_code_of_the_table_is_used() -> None:
    sources = [path for path in PACKAGE.rglob("*.py") if path.parent.name != "codes"]
    sources.append(PACKAGE.parent / "perfgate_presence.py")  # which loads nothing of the package
    quoted = {
        c for path in sources for c in re.findall(r"""["'[]([a-z0-9-]+)["'\]]""", path.read_text(encoding="utf-8"))
    }
    assert set(errors.codes()) - quoted == set()


def test_every_code_says_what_happened_and_what_to_do_next() -> None:
    for code in errors.codes().values():
        assert code.title, code.name
        assert code.fix, code.name
