"""Files as cases: held against accepted lines, accepted, remembered, compared."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from pytest_perfgate.cli import main
from tests.kernels import listed_once
from tests.tools import needs_tools

__all__ = ["listed_once"]

pytestmark = needs_tools

CUBINS = Path(__file__).parents[1] / "artifacts" / "cubins"
TILE, COPY = CUBINS / "attention_tile.sm_90.cubin", CUBINS / "copy.sm_90.cubin"


class Files:
    """A project with a cubin and no tests."""

    def __init__(self, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.root, self._capsys = root, capsys
        (root / "pyproject.toml").write_text('[tool.perfgate]\ndevices = ["sm_*"]\n', encoding="utf-8")
        (root / "code").mkdir()
        self.write(TILE)

    def write(self, cubin: Path) -> None:
        (self.root / "code" / "k.cubin").write_bytes(cubin.read_bytes())

    def says(self, *words: str) -> tuple[int, str]:
        code = main([*words, *(["--root", str(self.root)] if words[0] != "compare" else [])])
        return code, "".join(self._capsys.readouterr())

    def check(self, *limits: str, more: tuple[str, ...] = ()) -> tuple[int, str]:
        return self.says("check", str(self.root / "code" / "k.cubin"), *limits, "--baseline", *more)

    @property
    def line(self) -> Path:
        return self.root / "baselines" / "sm_90" / "code" / "k.cubin.yaml"


@pytest.fixture
def files(
    listed_once: None, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Files:
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.chdir(tmp_path)
    return Files(tmp_path, capsys)


LIMITS = ("change(registers) <= 0", "change(spills) <= 0")


def test_a_file_is_accepted_held_and_remembered(files: Files) -> None:
    code, text = files.check(*LIMITS, "registers <= 128")
    assert (code, "UNBASELINED" in text, "1 passed" in text) == (4, True, True)
    assert files.says("accept", "--new")[0] == 0
    assert "'registers(arch=sm_90, kernel=attention_tile)': 80" in files.line.read_text(encoding="utf-8")
    assert files.check(*LIMITS)[0] == 0

    written = files.line.read_text(encoding="utf-8")
    files.line.write_text(written.replace("': 80,", "': 78,"), encoding="utf-8")
    code, text = files.check(*LIMITS)
    named = "change(registers) <= 0 (arch=sm_90, kernel=attention_tile): worse than accepted: 78 -> 80, +2"
    assert (code, named in text) == (1, True)
    assert files.says("accept", "code/k.cubin")[0] != 0, "worse without a reason"
    assert files.says("accept", "code/k.cubin", "--reason", "more tiles")[0] == 0
    assert 'why: "more tiles"' in files.line.read_text(encoding="utf-8")

    code, text = files.says("history", "code/k.cubin")
    assert (code, "accepted: 80" in text, text.count("  80") >= 3) == (0, True, True)
    lines = json.loads(files.says("history", "code/k.cubin", "--json")[1])
    assert [len(one["runs"]) for one in lines] == [3]
    assert "| registers(arch=sm_90, kernel=attention_tile) | 78 -> 80 | +2 |" in files.says("devlog")[1]
    assert "k.cubin::file" in files.says("history")[1]


def test_a_kernel_that_is_gone_fails(files: Files) -> None:
    files.check(*LIMITS)
    files.says("accept")
    files.write(COPY)
    code, text = files.check(*LIMITS)
    assert (code, "is missing now" in text) == (4, True)
    assert files.says("accept", "--reason", "renamed")[0] == 0
    assert "attention_tile" not in files.line.read_text(encoding="utf-8")
    assert files.check(*LIMITS)[0] == 0


def test_a_case_may_be_named(files: Files) -> None:
    files.check(*LIMITS, more=("--case", "kernels/tile"))
    files.says("accept")
    assert (files.root / "baselines" / "sm_90" / "kernels" / "tile.yaml").is_file()


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("check", str(TILE), "change(registers) <= 0"), "limit-missing"),
        (("check", str(TILE), "registers <= 128", "--baseline", "--case", "a"), "limit-missing"),
        (("check", str(TILE), "change(registers) <= 0", "--baseline"), "command-usage"),
    ],
)
def test_what_cannot_be_held_is_refused(files: Files, words: tuple[str, ...], code: str) -> None:
    exit_code, text = files.says(*words)
    assert exit_code != 0
    assert f"[{code}]" in text


@pytest.mark.parametrize(
    ("limit", "before", "after", "code"),
    [
        ("change(registers) <= 0", TILE, TILE, 0),
        ("change(count(HMMA)) == 0", TILE, TILE, 0),
        ("change(registers) <= 0", TILE, COPY, 4),
    ],
)
def test_two_files_are_compared_by_the_same_sentences(
    files: Files, limit: str, before: Path, after: Path, code: int
) -> None:
    after = Path(shutil.copy(after, files.root / "after.cubin"))
    exit_code, text = files.says("compare", str(before), str(after), limit)
    assert exit_code == code
    assert "perfgate accept" not in text
