"""Children that are forked from one that has collected: real processes, a CUDA driver of our own making."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import pytest

from pytest_perfgate.adapters.children.spawn import LocalChild, LocalSpawner
from pytest_perfgate.app.measure import conversation
from pytest_perfgate.app.spread import PRELOADED
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.plan import Case, Plan
from pytest_perfgate.model.protocol import START, ChildJob, ChildSpec, Collected, Finished
from tests.plugin.forked import inherited

SUITE = """
import ctypes
import os

CUDA = ctypes.CDLL("libcuda.so.1")
ANSWERS = {name: hash(name) for name in "ab"}


def context():
    CUDA.cuInit(0)
    CUDA.cuDevicePrimaryCtxRetain(ctypes.byref(ctypes.c_void_p()), 0)


def test_kernel(perfgate):
    context()
    perfgate.note("hash", ANSWERS["a"])
    perfgate.note("nvml", os.environ["PYTORCH_NVML_BASED_CUDA_CHECK"])
    perfgate(lambda: CUDA.cuCtxSynchronize())


def test_crash(perfgate):
    context()
    print("about to crash", flush=True)
    os.abort()


def test_long(perfgate):
    import time

    perfgate(lambda: time.sleep(60))
"""
PLAN = Plan(budget_ns=2e6, warmup_ns=1e5, min_samples=3, max_samples=5)
HOW = "fork of preload 1: PYTORCH_NVML_BASED_CUDA_CHECK=1"


def job(*names: str, **more) -> ChildJob:
    cases = tuple(Case(nodeid=f"test_s.py::{name}", limits=(), plan=PLAN) for name in names)
    return ChildJob(cases=cases, **more)


class Suite:
    """A project of one file, and the children that were started on it."""

    def __init__(self, root: Path, drivers: Path) -> None:
        self.root, self.log, self.children = root, root / "cuda.log", []
        self.env = {**inherited(), **PRELOADED, "LD_LIBRARY_PATH": str(drivers), "FAKE_CUDA_LOG": str(self.log)}
        self.env |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONHASHSEED": "7"}

    def preload(self, text: str = SUITE, **env: str) -> LocalChild:
        (self.root / "test_s.py").write_text(text)
        words = ("-q", "-p", "pytest_perfgate.plugin", "-p", "no:cacheprovider", str(self.root / "test_s.py"))
        spec = ChildSpec(
            argv=words,
            python=(sys.executable, "-m", "pytest"),
            cwd=self.root,
            env=tuple({**self.env, **env}.items()),
            label="the head build",
        )
        child = LocalSpawner().spawn(spec)
        self.children.append(child)
        child.send(job("test_kernel", "test_crash", "test_long", preload=True))
        assert isinstance(child.receive(60), Collected), child.tail()
        return child

    def fork(self, preload: LocalChild) -> LocalChild:
        self.children.insert(0, preload.fork())
        return self.children[0]

    def calls(self, name: str) -> list[str]:
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        return [line.split()[1] for line in lines if line.startswith(name)]


@pytest.fixture
def suite(tmp_path, drivers):
    suite = Suite(tmp_path, drivers)
    yield suite
    for child in suite.children:
        child.close()


def kernel(fork: LocalChild) -> Finished:
    messages = list(conversation(fork, job("test_kernel", start=HOW), 60))
    done = next(one for one in messages if isinstance(one, Finished))
    assert done.outcome == "passed", done.text
    return done


def has_ended(pid: int) -> bool:
    """Whether a process ends in time; a zombie has ended."""
    until = time.monotonic() + 20
    while time.monotonic() < until:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return True
        if state in "ZX":
            return True
        time.sleep(0.05)
    return False


def test_forks_make_their_contexts_themselves_and_share_the_hash_seed(suite) -> None:
    preload = suite.preload()
    assert suite.calls("") == [], "importing and collecting called no driver"
    first, second = suite.fork(preload), suite.fork(preload)
    done = [kernel(first), kernel(second)]
    notes = [dict(one.captures[0].identity.notes) for one in done]
    assert notes[0] == notes[1] != {}, "one interpreter's hashes"
    assert notes[0]["nvml"] == "1"
    contexts = suite.calls("context")
    assert len(set(contexts)) == 2, "a measurement also looks up the context that its call uses"
    assert str(preload._process.pid) not in {*contexts, *suite.calls("init")}
    assert [dict(one.captures[0].samples[0].notes)[START] for one in done] == [HOW] * 2


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("import threading, time; threading.Thread(target=time.sleep, args=(60,), daemon=True).start()", "2 threads"),
        ("CUDA.cuInit(0)", "initialised CUDA"),
    ],
    ids=["a second thread", "a driver at work"],
)
def test_what_a_fork_would_break_is_refused_with_a_reason(suite, line: str, message: str) -> None:
    preload = suite.preload(SUITE.replace("ANSWERS =", f"{line}\nANSWERS ="))
    with pytest.raises(PerfgateError) as refused:
        suite.fork(preload)
    assert refused.value.code.name == "child-start"
    assert message in refused.value.what


def test_a_fork_that_crashes_says_how_and_leaves_the_preload_to_the_next(suite) -> None:
    preload = suite.preload()
    crashing = suite.fork(preload)
    with pytest.raises(PerfgateError) as crash:
        list(conversation(crashing, job("test_crash"), 60))
    assert crash.value.code.name == "child-crashed"
    assert "SIGABRT" in crash.value.what
    assert kernel(suite.fork(preload)).captures


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_preload_that_is_killed_leaves_no_child(suite, how) -> None:
    preload = suite.preload()
    idle, busy = suite.fork(preload), suite.fork(preload)
    messages = conversation(busy, job("test_long"), 60)
    while not isinstance(next(messages), Collected):
        """Until it stands before its test."""
    os.kill(preload._process.pid, how)
    assert has_ended(idle._process.pid)
    assert has_ended(busy._process.pid)
    with pytest.raises(PerfgateError) as lost:
        preload.fork()
    assert lost.value.code.name == "child-crashed"


def test_a_preload_that_is_closed_ends_with_its_forks(suite) -> None:
    preload = suite.preload()
    fork = suite.fork(preload)
    preload.close()
    assert has_ended(fork._process.pid)
    fork.close()
