from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_perfgate.cli import run as command
from tests.plugin.projects import OUTSIDE

MAIN = "import sys; from pytest_perfgate.cli import main; sys.exit(main(sys.argv[1:]))"
TESTS = "def test_plain():\n    pass\n\n\ndef test_wrong():\n    assert False\n"


def ran(root: Path, *words: str, ci: bool = False) -> subprocess.CompletedProcess[str]:
    env = {name: text for name, text in os.environ.items() if name not in OUTSIDE and name != "PYTEST_ADDOPTS"}
    env |= {"CI": "1"} if ci else {}
    line = [sys.executable, "-c", MAIN, "run", *words, "-p", "no:cacheprovider"]
    return subprocess.run(line, cwd=root, env=env, capture_output=True, text=True, check=False)


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
    done = ran(tmp_path, *words)
    assert done.returncode == code, done.stdout + done.stderr
    if "--json" in words:
        assert json.loads(done.stdout) == {"exit": 0, "pytest": 0, "record": None}
        assert "1 passed" in done.stderr


@pytest.mark.parametrize(("status", "code"), [(0, 0), (1, 1), (2, 130), (3, 14), (4, 2), (5, 4)])
def test_without_a_record_pytest_decides(status: int, code: int) -> None:
    assert command._code(status, None) == code


@pytest.mark.parametrize("kept", [True, False], ids=["baselines", "none"])
@pytest.mark.parametrize(
    "option", ["--collect-only", "--fixtures", "--markers", "--help", "--setup-only", "--setup-plan"]
)
def test_in_ci_a_listing_of_the_settings_measured_nothing(tmp_path: Path, option: str, *, kept: bool) -> None:
    (tmp_path / "test_it.py").write_text("def test_gated(perfgate):\n    perfgate(int)\n")
    (tmp_path / "pytest.ini").write_text(f"[pytest]\naddopts = {option}\n")
    if kept:
        (tmp_path / "baselines").mkdir()
    done = ran(tmp_path, ci=True)
    assert done.returncode == 4, done.stdout + done.stderr
    assert "nothing was measured: " in done.stderr
    assert (f"{option} stands in addopts, and no word of the command asks for it  [run-listed]" in done.stderr) == kept
    assert ran(tmp_path).returncode == 0, "on a laptop it lists"
    assert ran(tmp_path, option, ci=True).returncode == 0, "somebody asked for it"


def test_in_ci_a_run_without_a_gated_test_has_kept_nothing(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(TESTS)
    assert ran(tmp_path, "-k", "plain", ci=True).returncode == 4
    assert ran(tmp_path, "-k", "wrong", ci=True).returncode == 1


def test_the_options_that_list_are_known_before_their_module_is() -> None:
    from pytest_perfgate.plugin import _LISTING
    from pytest_perfgate.plugin.controller import LISTING

    assert tuple(LISTING) == _LISTING
