from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_perfgate.cli import main
from pytest_perfgate.cli import run as command
from tests.cli.conftest import Done
from tests.plugin.forked import OUTSIDE, can_fork, forked

TESTS = "def test_plain():\n    pass\n\n\ndef test_wrong():\n    assert False\n"
Run = Callable[..., Done]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Run:
    """The command here; the pytest that it starts has our plugin alone, and is a fork where nothing reads the answer."""
    for name in (*OUTSIDE, "PYTEST_ADDOPTS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.chdir(tmp_path)
    started = command._status

    def status(words: list[str], *, to_stderr: bool) -> int:
        if to_stderr or not can_fork(os.environ):
            return started(words, to_stderr=to_stderr)
        code, printed = forked(words[1:], Path.cwd(), os.environ)
        sys.stderr.write(printed)
        return code

    monkeypatch.setattr(command, "_status", status)

    def ran(*words: str, ci: bool = False) -> Done:
        if ci:
            monkeypatch.setenv("CI", "1")
        else:
            monkeypatch.delenv("CI", raising=False)
        capfd.readouterr()
        try:
            code = main(["run", *words, "-p", "no:cacheprovider"])
        except SystemExit as ended:
            code = int(ended.code or 0)
        return Done(code, *capfd.readouterr())

    return ran


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--json", "-q", "-k", "plain"], 0),
        (["-q", "-k", "wrong"], 1),
        (["-q", "-k", "nothing"], 4),
        (["--no-such-option"], 2),
    ],
)
def test_pytest_gets_its_words_and_the_code_is_ours(tmp_path: Path, run: Run, words: list[str], code: int) -> None:
    (tmp_path / "test_it.py").write_text(TESTS)
    done = run(*words)
    assert done.code == code, done.out + done.err
    if "--json" in words:
        assert json.loads(done.out) == {"exit": 0, "pytest": 0, "record": None}
        assert "1 passed" in done.err


@pytest.mark.parametrize(("status", "code"), [(0, 0), (1, 1), (2, 130), (3, 14), (4, 2), (5, 4)])
def test_without_a_record_pytest_decides(status: int, code: int) -> None:
    assert command._code(status, None) == code


LISTINGS = ("--collect-only", "--fixtures", "--markers", "--help", "--setup-only", "--setup-plan")


def listing(folder: Path, option: str) -> None:
    (folder / "test_it.py").write_text("def test_gated(perfgate):\n    perfgate(int)\n")
    (folder / "pytest.ini").write_text(f"[pytest]\naddopts = {option}\n")


@pytest.mark.parametrize("option", LISTINGS)
def test_in_ci_a_listing_of_the_settings_measured_nothing(tmp_path: Path, run: Run, option: str) -> None:
    listing(tmp_path, option)
    (tmp_path / "baselines").mkdir()
    done = run(ci=True)
    assert done.code == 4, done.out + done.err
    assert "nothing was measured: " in done.err
    assert f"{option} stands in addopts, not on the command line  [run-listed]" in done.err
    assert option != LISTINGS[0] or run("--color=yes", ci=True).code == 4, "which asks for no --co"


def test_a_listing_without_baselines_on_a_laptop_or_on_request(tmp_path: Path, run: Run) -> None:
    listing(tmp_path, "--collect-only")
    done = run(ci=True)
    assert (done.code, "nothing was measured: " in done.err, "[run-listed]" in done.err) == (4, True, False)
    assert run().code == 0
    assert run("--collect-only", ci=True).code == 0


@pytest.mark.parametrize("option", LISTINGS)
def test_a_listing_on_request_has_its_word(option: str) -> None:
    assert command._lists(["-q", option])
    assert not command._lists(["-q", "tests", "-k", option.removeprefix("--")])


@pytest.mark.parametrize(
    ("word", "lists"),
    [
        *(("--co", True), ("--cache-show=cache/*", True), ("-VV", True), ("-h", True)),
        *(("--color=yes", False), ("--continue-on-collection-errors", False), ("--cov=kernels", False)),
    ],
)
def test_an_option_that_begins_like_a_listing_is_none(word: str, lists: bool) -> None:
    assert command._lists([word]) is lists


def test_in_ci_a_run_without_a_gated_test_has_kept_nothing(tmp_path: Path, run: Run) -> None:
    (tmp_path / "test_it.py").write_text(TESTS)
    assert run("-k", "plain", ci=True).code == run("-k", "plain", "--color=yes", ci=True).code == 4
    assert run("-k", "wrong", ci=True).code == 1


@pytest.mark.parametrize("addopts", ["--disable-plugin-autoload", "-p no:perfgate"])
def test_no_settings_take_the_gate_out_of_the_command(tmp_path: Path, run: Run, addopts: str) -> None:
    """pytest itself loads no plugin then, and its tests pass by a fixture of the project."""
    (tmp_path / "pytest.ini").write_text(f"[pytest]\naddopts = {addopts}\n")
    (tmp_path / "conftest.py").write_text("import pytest\n\n\n@pytest.fixture\ndef perfgate():\n    return print\n")
    (tmp_path / "test_it.py").write_text("def test_gated(perfgate):\n    perfgate(int)\n")
    done = run(ci=True)
    assert done.code == 4, done.out + done.err
    assert "NOT MEASURED" in done.err
    assert "1 passed" in run("-p", "no:perfgate", ci=True).err, "who runs it may"


def test_the_options_that_list_are_known_before_their_module_is() -> None:
    from pytest_perfgate.plugin import _LISTING
    from pytest_perfgate.plugin.controller import LISTING

    assert tuple(LISTING) == _LISTING


def test_a_record_counts_whatever_the_clock_of_its_disk_says(tmp_path: Path, run: Run) -> None:
    """A network drive has a clock of its own, and a clock may be set back while a run measures."""
    (tmp_path / "test_it.py").write_text("def test_gated(perfgate):\n    perfgate.record([1.0, 1.0], 'ms')\n")
    hook = "import os\n\ndef pytest_unconfigure(config):\n"
    loop = "    for path in config.rootpath.glob('.perfgate/records/*'):\n        os.utime(path, (0, 0))\n"
    (tmp_path / "conftest.py").write_text(hook + loop)
    assert json.loads(run("--perfgate=quick", "--json").out)["record"] is not None
    assert json.loads(run("--perfgate=quick", "--json", "-k", "nothing").out)["record"] is None
