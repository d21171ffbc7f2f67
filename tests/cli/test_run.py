from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_perfgate.cli import run as command

TESTS = "def test_plain():\n    pass\n\n\ndef test_wrong():\n    assert False\n"


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--json", "-q", "-k", "plain"], 0),
        (["-q", "-k", "wrong"], 1),
        (["-q", "-k", "nothing"], 4),
        (["--no-such-option"], 2),
    ],
)
def test_pytest_gets_its_words_and_the_code_is_ours(tmp_path: Path, words: list[str], code: int) -> None:
    (tmp_path / "test_it.py").write_text(TESTS)
    line = [
        sys.executable,
        "-c",
        "import sys; from pytest_perfgate.cli import main; sys.exit(main(sys.argv[1:]))",
        "run",
    ]
    done = subprocess.run(
        [*line, *words, "-p", "no:cacheprovider"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == code, done.stdout + done.stderr
    if "--json" in words:
        assert json.loads(done.stdout) == {"exit": 0, "pytest": 0, "record": None}
        assert "1 passed" in done.stderr


@pytest.mark.parametrize(("status", "code"), [(0, 0), (1, 1), (2, 130), (3, 14), (4, 2), (5, 4)])
def test_without_a_record_pytest_decides(status: int, code: int) -> None:
    assert command._code(status, None) == code
