"""Files that are replaced whole, and what writers leave that were killed."""

from __future__ import annotations

import os
import time
from pathlib import Path

from pytest_perfgate.adapters.system.files import write_atomically


def test_what_a_killed_writer_left_goes_with_the_next_write(tmp_path: Path) -> None:
    """It lies beside committed files: nobody may find it in a commit."""
    path = tmp_path / "test_k.py.yaml"
    old, young = tmp_path / ".test_k.py.yaml.abc.new", tmp_path / ".test_k.py.yaml.def.new"
    other = tmp_path / ".other.yaml.abc.new"
    for one in (old, young, other):
        one.write_text("half")
    for one in (old, other):
        os.utime(one, (time.time() - 3600, time.time() - 3600))
    write_atomically(path, b"whole")
    assert path.read_bytes() == b"whole"
    assert sorted(one.name for one in tmp_path.iterdir()) == [other.name, young.name, path.name]
