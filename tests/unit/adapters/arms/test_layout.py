from __future__ import annotations

from pathlib import Path

from pytest_perfgate.adapters.arms.layout import only_tests


def test_a_checkout_of_tests_alone_has_no_package(tmp_path: Path) -> None:
    for name in ("test_sums.py", "conftest.py", "bench.py", "NOTES.md"):
        (tmp_path / name).touch()
    assert only_tests(tmp_path, ["bench.py"])
    assert not only_tests(tmp_path, [])
    (tmp_path / "native").mkdir()
    (tmp_path / "native" / "sums.c").touch()
    assert not only_tests(tmp_path, ["bench.py"])
