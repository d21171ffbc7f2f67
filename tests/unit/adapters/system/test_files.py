"""Files: replaced whole, locked across processes, read at either end."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from pytest_perfgate.adapters.system import files
from pytest_perfgate.adapters.system.files import (
    exclusive,
    file_tail,
    first_bytes,
    is_locked,
    last_lines,
    locked,
    read_once,
    try_lock,
    write_atomically,
)
from pytest_perfgate.model.errors import PerfgateError

HOLDER = """
import os, sys
from pathlib import Path
from pytest_perfgate.adapters.system.files import (
    exclusive,
    file_tail,
    first_bytes,
    is_locked,
    last_lines,
    locked,
    try_lock,
    write_atomically,
)
with exclusive(Path(sys.argv[1])):
    print(os.getpid(), flush=True)
    sys.stdin.read()
"""
COUNTER = """
import sys
from pathlib import Path
from pytest_perfgate.adapters.system.files import (
    exclusive,
    file_tail,
    first_bytes,
    is_locked,
    last_lines,
    locked,
    try_lock,
    write_atomically,
)
lock, count = Path(sys.argv[1]), Path(sys.argv[2])
for _ in range(100):
    with exclusive(lock):
        number = int(count.read_text())
        count.write_text(str(number + 1))
"""


def holder(lock: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", HOLDER, str(lock)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline()
    return process


def test_a_living_owner_is_waited_for_and_named(tmp_path: Path) -> None:
    lock = tmp_path / "a.lock"
    with holder(lock) as owner:
        assert is_locked(lock)
        with pytest.raises(PerfgateError, match=f"process {owner.pid} ") as caught, exclusive(lock, patience_s=0.1):
            raise AssertionError
        assert caught.value.code.name == "arm-busy"
        owner.communicate("")
    assert not is_locked(lock)
    assert not lock.exists()


def test_the_lock_of_a_killed_owner_is_free(tmp_path: Path) -> None:
    lock = tmp_path / "a.lock"
    with holder(lock) as owner:
        owner.kill()
    assert lock.read_text() == str(owner.pid)
    assert not is_locked(lock)
    with exclusive(lock, patience_s=0.1):
        assert lock.read_text() == str(os.getpid())
    assert list(tmp_path.iterdir()) == []


def test_a_lock_whose_file_was_removed_is_taken_on_the_new_file(tmp_path: Path) -> None:
    lock = tmp_path / "a.lock"
    stale = os.open(lock, os.O_RDWR | os.O_CREAT)
    assert try_lock(stale)
    lock.unlink()
    with exclusive(lock, patience_s=0.1):
        assert is_locked(lock)
    os.close(stale)


def test_of_several_processes_one_at_a_time_has_it(tmp_path: Path) -> None:
    """The file is removed at each release, so that a waiter often holds the lock of a file that is gone."""
    count = tmp_path / "count"
    count.write_text("0")
    command = [sys.executable, "-c", COUNTER, str(tmp_path / "a.lock"), str(count)]
    processes = [subprocess.Popen(command) for _ in range(3)]
    assert [process.wait(600) for process in processes] == [0, 0, 0]
    assert count.read_text() == "300"


def test_a_missing_lock_is_free(tmp_path: Path) -> None:
    assert not is_locked(tmp_path / "none.lock")


def test_the_lock_of_a_project_s_file_lies_in_its_own_folder(tmp_path: Path) -> None:
    with locked(tmp_path, tmp_path / "a.yaml"):
        (lock,) = (tmp_path / ".perfgate" / "locks").iterdir()
        assert is_locked(lock)
        assert (tmp_path / ".perfgate" / ".gitignore").read_text().endswith("*\n"), "no command leaves files to commit"
    assert lock.exists()
    assert not is_locked(lock)


def test_a_project_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / ".perfgate").write_text("")
    with pytest.raises(PerfgateError) as caught, locked(tmp_path, tmp_path / "a.yaml"):
        raise AssertionError
    assert caught.value.code.name == "file-unwritable"


def test_a_file_is_replaced_whole_and_keeps_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "a.txt"
    write_atomically(path, b"one")
    path.chmod(0o640)
    write_atomically(path, b"two")
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"two", 0o640)
    assert [entry.name for entry in path.parent.iterdir()] == ["a.txt"]


def test_a_file_that_cannot_be_replaced_is_an_error_and_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    with pytest.raises(PerfgateError) as caught:
        write_atomically(tmp_path / "a", b"text")
    assert caught.value.code.name == "file-unwritable"
    assert [entry.name for entry in tmp_path.iterdir()] == ["a"]


def test_both_ends_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"head\n" + b"x" * 20_000 + b"\nlast \xff\n\n")
    assert first_bytes(path, 4) == b"head"
    assert file_tail(path, 1) == ("last \ufffd",)
    assert file_tail(tmp_path / "none", 1) == ()
    assert last_lines("a\nb\n" + "c" * 300, 2) == ("b", "c" * 240)


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


def test_files_are_read_again_only_where_they_changed(tmp_path: Path) -> None:
    reads: list[str] = []

    def read(paths: Sequence[Path], *options: str) -> str:
        reads.append(" ".join(path.read_text() if path.is_file() else path.name for path in paths))
        return " ".join([reads[-1], *options])

    one, two, folder = tmp_path / "one.bin", tmp_path / "two.bin", tmp_path
    once = read_once(read)
    for path in (one, two):
        path.write_text("1")
    for pair in ([one], [two], [one], [two]):
        assert once(pair) == "1"
    assert len(reads) == 2
    assert once([one], "-O3") == "1 -O3"
    two.write_text("22")
    assert (once([two]), once([two])) == ("22", "22")
    one.with_suffix(".json").write_text("{}")
    assert (once([one]), len(reads)) == ("1", 5)
    for _ in range(2):  # which of its files changed is not looked at
        assert once([folder]) == folder.name
    assert len(reads) == 7


def test_a_link_stays_and_its_file_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real/file")
    for text in (b"1", b"2"):
        write_atomically(tmp_path / "link", text)
        assert (tmp_path / "link").is_symlink()
        assert (tmp_path / "real" / "file").read_bytes() == text


def test_a_pipe_stays_and_gets_the_content(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    write_atomically(tmp_path / "pipe", b"whole")
    assert os.read(reader, 9) == b"whole"
    assert (tmp_path / "pipe").is_fifo()
    os.close(reader)


def test_a_stream_that_a_shell_appends_to_a_file_keeps_what_is_there(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("before\n")
    program = f"""
from pathlib import Path
from {files.__name__} import write_atomically
print("printed")
write_atomically(Path("/dev/stdout"), b"written\\n")
print("after")
"""
    with log.open("a") as appended:
        subprocess.run([sys.executable, "-c", program], stdout=appended, check=True)
    assert log.read_text().split() == ["before", "printed", "written", "after"]


def test_a_name_of_many_bytes_is_written(tmp_path: Path) -> None:
    path = tmp_path / ("\u6e2c" * 80 + ".yaml")
    write_atomically(path, b"1")
    assert path.read_bytes() == b"1"


def test_a_disk_without_locks_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(handle: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(files, "lock", refused)
    with pytest.raises(PerfgateError) as error, locked(tmp_path, tmp_path / "file"):
        raise AssertionError("not reached")
    assert error.value.code.name == "file-unwritable"
    assert error.value.fix != error.value.code.fix, "no disk to free"
    assert str(tmp_path) in error.value.place
