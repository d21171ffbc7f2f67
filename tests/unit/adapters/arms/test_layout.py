from __future__ import annotations

from pathlib import Path

from pytest_perfgate.adapters.arms.overlay import only_tests


def test_a_checkout_of_tests_alone_has_no_package(tmp_path: Path) -> None:
    for name in ("test_sums.py", "conftest.py", "bench.py", "NOTES.md"):
        (tmp_path / name).touch()
    assert only_tests(tmp_path, ["bench.py"])
    assert not only_tests(tmp_path, [])
    (tmp_path / "native").mkdir()
    (tmp_path / "native" / "sums.c").touch()
    assert not only_tests(tmp_path, ["bench.py"])


def test_an_arm_lies_in_the_folder_that_is_left_out_of_a_checkout(tmp_path: Path) -> None:
    arm = tmp_path / ".perfgate" / "arms" / "base"
    (arm / "deep").mkdir(parents=True)
    (arm / "deep" / "kernel.py").touch()
    assert not only_tests(arm, [])
