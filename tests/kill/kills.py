"""What is killed, at any moment, and what must be true afterwards: nothing accepted is lost, nothing is left behind."""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from functools import cache, partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from random import Random
from typing import NamedTuple
from unittest import mock

from pytest_perfgate.adapters.children.channel import PARENT
from pytest_perfgate.adapters.devices.clock_locks import ClockLock, read_locks
from pytest_perfgate.adapters.devices.clocks import NvmlClocks
from pytest_perfgate.adapters.stores.baseline_merge import merge_files
from pytest_perfgate.adapters.stores.baseline_text import parse_entries
from pytest_perfgate.adapters.stores.baselines import Baselines
from pytest_perfgate.adapters.stores.history import SqliteHistory
from pytest_perfgate.adapters.stores.postgres import PostgresHistory
from pytest_perfgate.adapters.stores.records import read_record
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.measurement import Baseline, HistoryEntry
from pytest_perfgate.model.plan import CaseKey
from pytest_perfgate.model.ports import HistoryStore
from tests import postgres_server
from tests.drivers import clock_scenarios
from tests.plugin.forked import forked

ROOT = Path(__file__).resolve().parents[2]
DEVICE, FILE = "NVIDIA-H200", "tests/test_k.py"
CASES = 20
WAIT_S = 120.0


class Killed(NamedTuple):
    """What came of one kill."""

    busy: bool
    """Whether it was at work: one that came too late says nothing."""
    faults: tuple[str, ...] = ()


Scenario = Callable[[Random, Path], Killed]


Work = Callable[[Callable[[int], None]], None]
"""What says with a number which step is done."""


def _forked(rng: Random, work: Work, longest_s: float, *, begun: bool = False, ends: bool = False) -> tuple[bool, int]:
    """Whether a child at work was killed within so many seconds, and the last step that it said was done.

    The seconds are from its start, or from its first step; one that ends by itself is waited for.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        with contextlib.suppress(BaseException):
            work(lambda step: (os.write(writing, b"%09d" % step), None)[1])
        os._exit(0)
    os.close(writing)
    if begun:
        select.select([reading], [], [], WAIT_S)
    if not ends:
        time.sleep(rng.uniform(0, longest_s))
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    data = b""
    while select.select([reading], [], [], 1)[0]:
        part = os.read(reading, 1 << 16)
        if not part:
            break
        data += part
    os.close(reading)
    return os.WIFSIGNALED(status), int(data[-9:] or b"0")


def _line(number: int, time_ns: float) -> Baseline:
    return Baseline(key=CaseKey(nodeid=f"{FILE}::test_{number}"), device=DEVICE, time=time_ns, commit="c0ffee", why="w")


def _time(step: int) -> float:
    """One that a line holds in its five digits."""
    return 1e6 + 1e3 * step


def acceptance(rng: Random, folder: Path) -> Killed:
    """Accepting writes a line after the other, again and again, until it is killed."""
    store = Baselines(folder, (DEVICE,))
    store.write([_line(number, 1e6) for number in range(CASES)])

    def accept(done: Callable[[int], None]) -> None:
        for step in range(1, 10_000):
            store.write([_line(step % CASES, _time(step))])
            done(step)

    busy, last = _forked(rng, accept, 0.08)
    lines = store.read(DEVICE, FILE)
    faults = [] if len(lines) == CASES else [f"{CASES - len(lines)} lines are lost"]
    for step in range(max(1, last - CASES + 1), last + 1):
        accepted_ns = lines[f"{FILE}::test_{step % CASES}"].time if f"{FILE}::test_{step % CASES}" in lines else 0.0
        if round(accepted_ns) not in (_time(step), _time(step + CASES)):
            faults.append(f"what step {step} accepted is lost: {accepted_ns:,.0f}")
    return Killed(busy, (*faults, *_again(lambda: store.write([_line(0, 5.0)]))))


def history(rng: Random, folder: Path) -> Killed:
    """Runs are appended until it is killed: those that were said to be written are there."""
    return _appending(rng, SqliteHistory(folder / ".perfgate" / "history.db"), "a")


def history_on_a_server(rng: Random, folder: Path) -> Killed:
    """The same with a server of PostgreSQL, which lives on."""
    here = _server()
    return _appending(rng, PostgresHistory(here.address), f"{folder.name} {rng.random()}", here.settle)


def _appending(rng: Random, store: HistoryStore, name: str, settle: Callable[[], None] = lambda: None) -> Killed:
    busy, last = _forked(rng, lambda done: _append(store, name, done), 0.08)
    settle()
    return Killed(busy, _kept(store, name, last))


def _append(store: HistoryStore, name: str, done: Callable[[int], None]) -> None:
    """One run after the other, each with three runs."""
    for step in range(1, 10_000):
        store.append(_of_run(name, step))
        done(step)


def _of_run(name: str, step: int) -> list[HistoryEntry]:
    keys = (CaseKey(nodeid=f"{FILE}::test_{name}[{n}]") for n in range(3))
    return [HistoryEntry(key=key, device=DEVICE, time=float(step), when="", run=f"{name}.{step}") for key in keys]


def _kept(store: HistoryStore, name: str, last: int) -> tuple[str, ...]:
    """What is lost, there twice or by half, of so many runs; one more may be there, of which nobody was told."""
    there = [[s.time for s in store.read(entry.key, DEVICE)] for entry in _of_run(name, 0)]
    whole = [float(step) for step in range(1, len(there[0]) + 1)]
    faults = [] if there == [whole] * 3 and last <= len(whole) <= last + 1 else [f"{last} written, there: {there}"]
    again = [store.append(_of_run(name, step)) for step in range(1, len(whole) + 1)]
    faults += [f"counted twice: {again}"] if any(again) else []
    return (*faults, *_again(lambda: store.append(_of_run(name, 10**6))))


def server(rng: Random, folder: Path) -> Killed:
    """The server is killed under a writer: what it confirmed is there when it is back."""
    name, here, confirmed, ended = f"{folder.name} {rng.random()}", _server(), [0], threading.Event()

    def write() -> None:
        with contextlib.suppress(PerfgateError):
            _append(PostgresHistory(here.address), name, lambda step: confirmed.__setitem__(0, step))
        ended.set()

    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    time.sleep(rng.uniform(0, 0.3))
    busy = not ended.is_set()
    here.stop(kill=True)
    writer.join(WAIT_S)
    here.start()
    faults = () if ended.is_set() else ("the writer did not end",)
    return Killed(busy, (*faults, *_kept(PostgresHistory(here.address), name, confirmed[0])))


@cache
def _server() -> postgres_server.Server:
    """One for all kills, stopped with this process."""
    stack = contextlib.ExitStack()
    atexit.register(stack.close)
    return stack.enter_context(postgres_server.served())


def merging(rng: Random, folder: Path) -> Killed:
    """The merge driver leaves our file as it was, or merged; never a part of it."""
    texts = {}
    for name, changed in (("base", ()), ("ours", (1,)), ("theirs", (2, 3))):
        store = Baselines(folder / name, (DEVICE,))
        store.write([_line(n, 2e6 if n in changed else 1e6) for n in range(300)])
        texts[name] = store.path(DEVICE, FILE)
    base, ours, theirs = texts["base"], texts["ours"], texts["theirs"]

    def merge(done: Callable[[int], None]) -> None:
        for step in range(1, 10_000):
            merge_files(base, ours, theirs, "b.yaml")
            done(step)

    busy, _ = _forked(rng, merge, 0.08)
    entries = parse_entries(ours.read_text(encoding="utf-8"), place="ours", device=DEVICE)
    faults = [] if len(entries) == 300 else [f"{len(entries)} of 300 lines are left"]
    return Killed(busy, (*faults, *_again(lambda: merge_files(base, ours, theirs, "b.yaml"))))


def _again(call: Callable[[], object]) -> tuple[str, ...]:
    """The same once more, by somebody else, and soon."""
    began = time.monotonic()
    try:
        call()
    except Exception as fault:  # whatever it is, it is what the kill left
        return (f"the next one fails: {type(fault).__name__}: {fault}",)
    took = time.monotonic() - began
    return (f"the next one waits {took:.0f} s",) if took > 25 else ()


def locking(rng: Random, folder: Path) -> Killed:
    """Clocks are locked and put back again and again: whoever comes next puts them back, and none is left without a name.

    Moments at which no lock is on file leave nothing to put back: they are looked at too, and another one is drawn.
    """
    library, faults = _made_driver(), []
    locks = folder / "locks"

    def again_and_again(done: Callable[[int], None]) -> None:
        for step in range(1, 10_000):
            with NvmlClocks().hold(clock_scenarios.card(), clock_scenarios.LOCK):
                time.sleep(0.005)
            done(step)

    for _ in range(20):
        busy, _ = _forked(rng, _on(library, locks, again_and_again), 0.15, begun=True)
        stale = [lock.stale for lock in _locks_in(locks)]
        faults += ["a lock of a dead process is not stale"] * stale.count(False)
        _, last = _forked(rng, _on(library, locks, partial(_next_one, locked=bool(stale))), 0, ends=True)
        faults += [] if last else [f"the next run does not lock and put back what {len(stale)} locks left"]
        faults += ["a lock is left"] * len(_locks_in(locks))
        if busy and stale:
            return Killed(True, tuple(faults))
    return Killed(False, tuple(faults))


def _next_one(done: Callable[[int], None], *, locked: bool) -> None:
    """The next process on that card, whose clocks are as the killed one left them."""
    driver = clock_scenarios.Library()
    driver.locked = 1500 if locked else 0
    region = clock_scenarios.region(clock_scenarios.LOCK, least=1)
    if (region["owner"], region["after"], region["left"]) == (True, 0, 0) and region["locked"]:
        done(1)


def _on(library: Path, locks: Path, work: Work) -> Work:
    """The work in a process that has loaded the made driver, which whoever asks for a driver is then given."""

    def there(done: Callable[[int], None]) -> None:
        os.environ["PERFGATE_LOCKS"] = str(locks)
        ctypes.CDLL(str(library))
        work(done)

    return there


def _locks_in(folder: Path) -> tuple[ClockLock, ...]:
    with mock.patch.dict(os.environ, {"PERFGATE_LOCKS": str(folder)}):
        return read_locks()


@cache
def _made_driver() -> Path:
    """A management library of our own making; what asks for one is imported once for all kills."""
    import_module("pynvml")
    folder = Path(tempfile.mkdtemp(prefix="perfgate-kill-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    library = folder / "libnvidia-ml.so.1"
    named = f"-Wl,-soname,{library.name}"
    subprocess.run(["gcc", "-shared", "-fPIC", "-w", named, "-o", library, ROOT / "tests/drivers/nvml.c"], check=True)
    return library


TESTS = """
import subprocess, sys, pytest

@pytest.fixture(scope="session", autouse=True)
def server():
    held = subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(120)"])
    yield
    held.terminate()
    held.wait()

@pytest.mark.perfgate("time <= 1s", "slowdown <= 500%")
@pytest.mark.parametrize("n", [1, 2, 3])
def test_sum(perfgate, n):
    perfgate(lambda: sum(range(500 * n)))
"""
SETTINGS = '[tool.perfgate]\ndevices = ["*"]\nbudget = "4 ms"\nwarmup = "1 ms"\nsamples = 5\nrounds = 2\n'
PYTEST = ("-m", "pytest", "-q", "-p", "pytest_perfgate.plugin", "-p", "no:cacheprovider", "--perfgate=full")


def project(folder: Path) -> None:
    """A project with accepted times, as a run begins."""
    if (folder / "test_k.py").exists():
        return
    (folder / "pyproject.toml").write_text(SETTINGS, encoding="utf-8")
    (folder / "test_k.py").write_text(TESTS, encoding="utf-8")
    for command in (("git", "init", "-q"), ("git", "add", "-A"), ("git", "-c", "user.name=a", "-c", "user.email=a@b",
                    "commit", "-qm", "a")):  # fmt: skip
        subprocess.run(command, cwd=folder, check=True)
    _ended(folder, *PYTEST)
    accept = "from pytest_perfgate.cli import main; raise SystemExit(main(['accept', '--new', '--reason', 'first']))"
    _ended(folder, "-c", accept)
    shutil.copytree(folder / "baselines", folder / "accepted")


def _environment() -> Mapping[str, str]:
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "PERFGATE_", "CI"))
    }
    return {**environment, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(ROOT)}


def _ended(folder: Path, *words: str) -> None:
    code, text = forked(words, folder, _environment(), children=True)
    if code:
        raise AssertionError(f"{words[-1]} ends with {code}:\n{text[-2000:]}")


def run(rng: Random, folder: Path, how: int = signal.SIGKILL) -> Killed:
    """A gated run is killed: its children end, and so does what they started; accepted times stay as they are."""
    project(folder)
    command = [sys.executable, *PYTEST]
    quiet = subprocess.DEVNULL
    running = subprocess.Popen(
        command, cwd=folder, env=_environment(), stdout=quiet, stderr=quiet, start_new_session=True
    )
    with contextlib.suppress(subprocess.TimeoutExpired):
        running.wait(timeout=rng.uniform(0.05, 3.0))
    busy = running.poll() is None
    if busy:
        running.send_signal(how)
    running.wait(timeout=WAIT_S)
    faults = [f"process {pid} is left" for pid in _left(running.pid)]
    for file in sorted((folder / "accepted").rglob("*")):
        now = folder / "baselines" / file.relative_to(folder / "accepted")
        if file.is_file() and (not now.is_file() or now.read_bytes() != file.read_bytes()):
            faults.append(f"the accepted {now.name} is another one")
    for record in (folder / ".perfgate" / "records").glob("*.json"):
        faults += [f"{record.name}: {text}" for text in _again(lambda record=record: read_record(record))]
    if rng.random() < 0.1:
        try:
            _ended(folder, *PYTEST)
        except AssertionError as fault:
            faults.append(f"the next run: {fault}")
    return Killed(busy, tuple(faults))


def _left(parent: int) -> list[int]:
    """Processes of a run that live on, children and what those started, once they had some time to end."""
    mark, until = f"{PARENT}={parent}".encode(), time.monotonic() + WAIT_S
    while (alive := [pid for pid in _processes() if _says(pid, mark)]) and time.monotonic() < until:
        time.sleep(0.05)
    return alive


def _processes() -> list[int]:
    return [int(place.name) for place in Path("/proc").glob("[0-9]*")]


def _says(pid: int, mark: bytes) -> bool:
    try:
        return mark in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return False


def terminated(rng: Random, folder: Path) -> Killed:
    """A gated run is told to end, as a CI does that runs out of time."""
    return run(rng, folder, signal.SIGTERM)


SCENARIOS: Mapping[str, Scenario] = {
    "a run, SIGKILL": run,
    "a run, SIGTERM": terminated,
    "accepting": acceptance,
    "appending to the history": history,
    "the merge driver": merging,
    **({"locking clocks, on a made driver": locking} if shutil.which("gcc") and find_spec("pynvml") else {}),
    **({} if postgres_server.missing() else {"appending to PostgreSQL": history_on_a_server, "PostgreSQL": server}),
}
