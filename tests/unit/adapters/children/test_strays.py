"""Children whose parent is gone, on a ``/proc`` of the test's own."""

from __future__ import annotations

from pathlib import Path

from pytest_perfgate.adapters.children.strays import PARENT, stray_children


def process(folder: Path, pid: int, *environ: bytes) -> None:
    (folder / str(pid)).mkdir()
    (folder / str(pid) / "environ").write_bytes(b"\0".join((b"HOME=/root", *environ)))


def test_only_children_of_ours_without_a_parent_are_strays(tmp_path: Path) -> None:
    ours = PARENT.encode()
    process(tmp_path, 10)
    process(tmp_path, 11, ours + b"=10")
    process(tmp_path, 12, ours + b"=9")
    process(tmp_path, 13, ours + b"=garbage")
    process(tmp_path, 14, ours + b"X=9")
    (tmp_path / "15").mkdir()
    (tmp_path / "self").mkdir()
    assert stray_children(tmp_path) == (12,)
    assert stray_children(tmp_path / "none") == ()
