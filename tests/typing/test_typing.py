"""What is public is typed: mypy, as strict as it gets, takes right uses and refuses each wrong one."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, blocks

HERE = Path(__file__).parent
WRONG = HERE / "wrong.py"
_ERROR = re.compile(r"^(?P<file>[^:]+):(?P<line>\d+): error: .*\[(?P<code>[\w-]+)\]$", re.MULTILINE)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The typed test of the page on the fixture."""
    (block,) = (block for block in blocks(ROOT / "docs" / "fixture.md") if block.value == "test_typed.py")
    path = tmp_path_factory.mktemp("page") / "typed.py"
    path.write_text(block.text, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def faults(page: Path) -> Counter[tuple[str, int, str]]:
    """What mypy says of all files, by file, line and code; one run, because each takes a second."""
    files = [HERE / "gated.py", HERE / "plugin.py", WRONG, page]
    command = [sys.executable, "-m", "mypy", "--config-file", "pyproject.toml", *map(str, files)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    faults = Counter((Path(e["file"]).name, int(e["line"]), e["code"]) for e in _ERROR.finditer(done.stdout))
    assert f"Found {faults.total()} errors in 1 file (checked {len(files)} source files)" in done.stdout, done.stdout
    return faults


def test_right_uses_pass(faults: Counter[tuple[str, int, str]]) -> None:
    assert [fault for fault in faults if fault[0] != WRONG.name] == []


def test_each_wrong_use_is_refused_for_its_reason(faults: Counter[tuple[str, int, str]]) -> None:
    lines = enumerate(WRONG.read_text(encoding="utf-8").splitlines(), 1)
    marked = ((number, line.partition("# refused: ")[2]) for number, line in lines)
    wanted = Counter((WRONG.name, number, code) for number, code in marked if code)
    assert wanted.total() >= 15
    assert faults == wanted
