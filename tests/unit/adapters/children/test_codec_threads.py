"""Lanes of several devices hear their first children at once."""

from __future__ import annotations

import subprocess
import sys

FIRST_WORDS = """
import sys, threading
from pytest_perfgate.adapters.children.channel import decode_line
from pytest_perfgate.model.errors import PerfgateError

sys.setswitchinterval(1e-6)
lines = [b'{"kind": "%s", "body": {}}' % kind for kind in (b"Taken", b"Job", b"Hello", b"Finished", b"Measure")]
gate = threading.Barrier(8)

def hear(first):
    gate.wait()
    for line in lines[first:] + lines:
        try:
            decode_line(line)
        except PerfgateError:
            pass

threads = [threading.Thread(target=hear, args=(number % 5,)) for number in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""


def test_threads_that_decode_for_the_first_time_do_not_crash() -> None:
    """More than half of such processes ended in a segmentation fault of msgspec."""
    for _ in range(3):
        done = subprocess.run([sys.executable, "-c", FIRST_WORDS], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")
