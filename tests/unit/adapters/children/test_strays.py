"""Children whose parent is gone, on a ``/proc`` of the test's own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_perfgate.adapters.children.channel import PARENT, stray_children


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


BUSY = """
import signal, sys, time
from pytest_perfgate.adapters.children.channel import end_with_parent
def ended(*given):
    print("put back", flush=True)
    sys.exit()
signal.signal(signal.SIGTERM, ended)
end_with_parent()
print("busy", flush=True)
time.sleep(60)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="Linux alone tells a child that its parent is gone")
def test_a_child_in_a_long_call_ends_with_its_parent() -> None:
    parent = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {BUSY!r}], start_new_session=True)"
    with subprocess.Popen([sys.executable, "-c", parent], stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        assert run.stdout.readline() == "busy\n"
        os.kill(run.pid, signal.SIGKILL)
        assert run.stdout.read() == "put back\n"
