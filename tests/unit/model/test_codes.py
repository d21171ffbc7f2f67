from __future__ import annotations

import re
from pathlib import Path

from pytest_perfgate.model import codes, errors
from pytest_perfgate.model.codes import Family

PACKAGE = Path(codes.__file__).parents[2]
RAISED = re.compile(r'(?:PerfgateError|Problem)\(\s*(?:code=)?"([a-z0-9-]+)"')


def test_names_and_exits_are_unique() -> None:
    names = [code.name for table in errors.tables() for code in table]
    assert len(names) == len(set(names))
    exits = [family.exit for family in Family]
    assert len(exits) == len(set(exits))
    assert not set(exits) & {0, 1, 3, 4}


def test_every_code_that_is_raised_is_in_the_table() -> None:
    raised = {c for path in PACKAGE.rglob("*.py") for c in RAISED.findall(path.read_text(encoding="utf-8"))}
    assert raised <= set(errors.codes())


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
