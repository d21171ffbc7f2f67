"""What is held against a real GPU over several processes: a suite against itself, the gate, other libraries, ncu."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from ci.gpu.card import under_bar, watched_clocks
from ci.gpu.ending import end
from ci.gpu.parts import NO_TIME, Check, Row, fitting
from pytest_perfgate.app.instrument import keyed
from pytest_perfgate.model.errors import PerfgateError

CASES, ROUNDS, LEAST_ROUNDS = 40, 5, 3
SUITE_S = 30.0
"""What the example's suite may take in three rounds."""
MISSED, GRAIN_S = 0.3, 2.0
"""How far an announced duration may be off; seconds are told whole, and lines are heard a moment later."""
LISTEN_S = 0.2
Heard = list[tuple[float, str]]
"""Lines of a program, each with the seconds since it began."""
ROOT = Path(__file__).resolve().parents[2]
PLUGIN = "pytest_perfgate.plugin"
NEEDED = ("msgspec", "yaml", "numpy", "pytest")
"""What a run of the gate imports."""
SCRIPT = str(ROOT / "ci" / "gpu-check")

SETTINGS = {
    ".gitignore": ".perfgate/\n__pycache__/\n",
    "pyproject.toml": """
        [tool.pytest.ini_options]
        pythonpath = ["."]

        [tool.perfgate]
        devices = ["*"]
        budget = "200 ms"
        """,
}
"""Files of a project of which two builds are made. Nothing is installed: the machine may lack pip and a network."""


def same(check: Check) -> Iterator[Row]:
    """Compare a suite of 40 with itself over fresh processes, and count the cases that shift by more than 3 %."""
    rounds: list[list[list[float]]] = []
    spoilt: list[str] = []
    begun = time.monotonic()
    for number in range(ROUNDS):
        if number and time.monotonic() + (time.monotonic() - begun) / number > check.ends:
            break
        try:
            runs = [suite(check.plan.clocks.value) for _ in range(2)]
        except (RuntimeError, ValueError, IndexError, subprocess.TimeoutExpired) as error:
            yield {"what": f"round {number + 1}", "refused": type(error).__name__, "why": str(error)[-300:]}
            break
        problems = [why for one_run in runs for why in one_run.problems]
        shifts = [b / a - 1 for a, b in zip(*(one_run.medians for one_run in runs), strict=True)]
        row: Row = {"what": f"round {number + 1}", "median": median(shifts), "widest": max(map(abs, shifts))}
        yield {**row, "invalid": problems} if problems else row
        spoilt += problems
        if not problems:
            rounds.append([one_run.medians for one_run in runs])
    if spoilt and len(rounds) < LEAST_ROUNDS:
        yield under_bar({"what": "A/A", "rounds": len(rounds)}, "same", False, spoilt)
        return
    if len(rounds) < LEAST_ROUNDS:
        yield {"what": "A/A", "refused": "too few", "why": f"{len(rounds)} rounds of at least {LEAST_ROUNDS}"}
        return
    alarms = 0
    for case in range(CASES):
        alarms += median(second[case] / first[case] - 1 for first, second in rounds) > 0.03
    bound = 1 - 0.05 ** (1 / CASES) if not alarms else None
    yield {
        "what": "A/A",
        "cases": CASES,
        "rounds": len(rounds),
        "alarms": alarms,
        "bound_95": bound,
        "bar": "same",
        "held": alarms == 0,
    }


class Run(NamedTuple):
    """One process of the suite, and what spoiled it."""

    medians: list[float]
    problems: list[str]


def suite(clocks: str) -> Run:
    """Return the medians of 40 products, in a process of their own."""
    done = subprocess.run(
        [sys.executable, SCRIPT, "--suite", "--clocks", clocks],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"a process of the suite ended with {done.returncode}: {done.stderr.strip()[-300:]}")
    return Run(**json.loads(done.stdout.splitlines()[-1]))


def run_suite(check: Check) -> None:
    """Print the medians of 40 products; the card settles with the first, since 40 waits for it would take the time."""
    torch = check.runtime_module()
    plan = replace(check.plan, budget_ns=40e6, warmup_ns=10e6)
    torch.randn(1, device="cuda")
    medians: list[float] = []
    timer = None
    with watched_clocks(check) as problems:
        for case in range(CASES):
            a = torch.randn(1024 + 64 * case, 2048, device="cuda")
            if timer is None:
                timer = fitting(check, lambda a=a: a @ a.T, plan)
                plan = replace(plan, warmup_ns=0.0)
            medians.append(median(timer.measure(lambda a=a: a @ a.T, plan, check.runtime).durations))
    print(json.dumps(Run(medians, problems)._asdict()))


def gate(check: Check, out: Path) -> Iterator[Row]:
    """Run the example's suite through the gate: measure, accept, and compare with that in new processes."""
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        yield {"what": "the gate", "refused": "not installed", "why": f"no {', '.join(missing)} here"}
        return
    project = out / "gate"
    shutil.rmtree(project, ignore_errors=True)
    shutil.copytree(ROOT / "examples" / "torch_kernels", project)
    settings = project / "pyproject.toml"
    settings.write_text(settings.read_text(encoding="utf-8") + "rounds = 3\n", encoding="utf-8")
    pytest = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:randomly", "-q", "--perfgate=full"]
    pytest += ["--perfgate-clocks", check.plan.clocks.value]
    accept = [sys.executable, "-c", "import sys; from pytest_perfgate.cli import main; sys.exit(main())", "accept"]
    steps = (
        ("measured", [*pytest, "--perfgate-policy", "missing=record"]),
        ("accepted", [*accept, "--new", "--reason", "first run on this device"]),
        ("held against itself", [*pytest, "--perfgate-policy", "missing=fail"]),
    )
    env = surroundings(out)
    for name, command in steps:
        log = out / f"gate-{name.replace(' ', '-')}.txt"
        begun = time.monotonic()
        heard: Heard = []
        code, output = run_logged(command, log, check.ends - time.monotonic(), heard, cwd=project, env=env)
        took = time.monotonic() - begun
        if code is None:
            row = {"what": name, "refused": "no time", "why": last_line(output), "s": took}
            yield late(row, "suite", SUITE_S) if name == "measured" else row
            break
        summary = counted(output) if name == "accepted" else last_line(output)
        row = {"what": name, "exit": code, "s": took, "said": summary}
        row |= {} if name == "accepted" else Counter(verdict.outcome.value for _, verdict in judged(project))
        yield under_bar(row, "gate", code == 0)
        if name == "measured":
            yield {"what": "its time", "s": took, "bar": "suite", "held": code == 0 and took <= SUITE_S}
        yield from announced_s(name, heard, learnt=name != "measured")
    made = project / "baselines"
    if made.is_dir():
        shutil.copytree(made, out / "baselines", dirs_exist_ok=True)
    yield accepted(check, sorted(path.relative_to(made) for path in made.rglob("*.yaml")))


def announced_s(name: str, heard: Heard, *, learnt: bool) -> Iterator[Row]:
    """Yield how long a run said that measuring would take, and the time left in later rounds, beside the real times.

    The first run of a checkout can only guess at its beginning; from its second round on no run may.
    """
    last = max((number for number, (_, line) in enumerate(heard) if foretold_s(line) is not None), default=0)
    measured = next((at for at, line in heard[last + 1 :] if not line.startswith("perfgate: round ")), 0.0)
    for at, line in heard[: last + 1]:
        stated_s, came = foretold_s(line), measured - at
        if stated_s is None:
            continue
        later = re.search(r"round (?:[2-9]|\d\d+) of", line)
        row: Row = {"what": f"{name}, {'what is left' if later else 'as announced'}", "s": stated_s, "came": came}
        good = abs(stated_s - came) <= max(MISSED * came, GRAIN_S)
        yield under_bar(row, "costs", good) if later or (learnt and "first guess" not in line) else row


def foretold_s(text: str) -> float | None:
    """Return seconds from ``4 tests, 3 rounds, about 1 min 10 s`` or ``round 2 of 3, test 1 of 4, about 9 s left``."""
    match = re.search(r"rounds?\b.*?, about (?:(\d+) min )?(\d+) s", text)
    return 60.0 * int(match[1] or 0) + int(match[2]) if match else None


def late(row: Row, bar: str, most_s: float) -> Row:
    """Return the row of work that was ended: missed if it had the time of its bar, else not shown."""
    return under_bar(row, bar, False) if row["s"] > most_s else row


def accepted(check: Check, files: Sequence[Path]) -> Row:
    """Return a row on the baselines of this card: without a GPU in its own process, the example uses the processor."""
    key = keyed(check.runtime.device(), check.plan).key
    row: Row = {"what": "baselines", "device": key, "files": list(map(str, files))}
    return {**row, "bar": "gate", "held": bool(files) and {file.parts[0] for file in files} == {key}}


def run_logged(
    command: list[str], log: Path, left_s: float, heard: Heard | None = None, **options: Any
) -> tuple[int | None, str]:
    """Return a program's exit code and output; after its time, end it with its children: the code is None.

    Its lines are heard as they come, each with the seconds since it began.
    """
    with log.open("w", encoding="utf-8") as stream:
        process = subprocess.Popen(
            command, stdout=stream, stderr=subprocess.STDOUT, text=True, start_new_session=True, **options
        )
        begun = time.monotonic()
        ends = begun + max(1.0, left_s)
        code, lines = None, 0
        try:
            while code is None and time.monotonic() < ends:
                with suppress(subprocess.TimeoutExpired):
                    code = process.wait(timeout=min(LISTEN_S, ends - time.monotonic()))
                if heard is not None:
                    new = log.read_text(encoding="utf-8", errors="replace").splitlines()[lines:]
                    heard += [(time.monotonic() - begun, line) for line in new]
                    lines += len(new)
        except BaseException:
            end(process)
            raise
        if code is None:
            end(process)
            stream.write(f"\ntook longer than the {left_s:.0f} s that were left\n")
    return code, log.read_text(encoding="utf-8", errors="replace")


def judged(project: Path) -> Iterator[tuple[str, Any]]:
    """Yield (case, verdict) of the newest record."""
    from pytest_perfgate.adapters.stores.records import read_record

    records = sorted((project / ".perfgate" / "records").glob("*.json"), key=os.path.getmtime)
    for case in read_record(records[-1]).cases if records else ():
        for verdict in case.verdicts:
            yield case.key.nodeid, verdict


def surroundings(out: Path) -> dict[str, str]:
    """Return the environment of a pytest that has our plugin, installed or not, with that of this process."""
    env = {key: text for key, text in os.environ.items() if key not in {"CI", "GITHUB_ACTIONS"}}
    places = [str(ROOT), *([str(plugin_metadata(out / "site"))] if not installed() else []), env.get("PYTHONPATH", "")]
    return {**env, "PYTHONUNBUFFERED": "1", "PYTHONPATH": os.pathsep.join(place for place in places if place)}


def installed() -> bool:
    """Return whether pytest finds our plugin by itself."""
    return any(point.value == PLUGIN for point in metadata.entry_points(group="pytest11"))


def plugin_metadata(site: Path) -> Path:
    """Create and return a folder that tells pytest of the plugin in this checkout, as an installation would."""
    metadata = site / "pytest_perfgate-0.dist-info"
    metadata.mkdir(parents=True, exist_ok=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: pytest-perfgate\nVersion: 0\n", encoding="utf-8")
    (metadata / "entry_points.txt").write_text(f"[pytest11]\nperfgate = {PLUGIN}\n", encoding="utf-8")
    return site


def last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1][:200] if lines else ""


def counted(text: str) -> str:
    """Return the line of ``perfgate accept`` that counts, ``5 accepted``; hints follow it. "" if there is none."""
    lines = [line for line in text.splitlines() if line.partition(" ")[2].startswith("accepted")]
    return lines[-1] if lines else ""


def libraries(check: Check) -> Iterator[Row]:
    """Yield one copy by events for each other installed library, beside torch's own."""
    from pytest_perfgate.adapters.runtimes.cuda import CudaCoreRuntime, CupyRuntime

    for runtime, copy in ((CupyRuntime(), cupy_copy), (CudaCoreRuntime(), cuda_core_copy)):
        availability = runtime.availability()
        if not availability.usable:
            yield {"what": runtime.name, "refused": "not here", "why": availability.why}
            continue
        for name in ("events", "graph"):
            if time.monotonic() > check.ends:
                yield {"what": runtime.name, "timer": name, "refused": NO_TIME, "why": "the time of this part is over"}
                return
            try:
                call = copy()
                with watched_clocks(check, runtime) as problems:
                    samples = check.timers[name].measure(call, check.plan, runtime)
            except PerfgateError as error:
                yield {"what": runtime.name, "timer": name, "refused": error.code.name, "why": error.what}
                continue
            except Exception as error:
                yield {"what": runtime.name, "timer": name, "refused": type(error).__name__, "why": str(error)[:300]}
                continue
            row: Row = {"what": runtime.name, "timer": name, "ns": median(samples.durations)}
            row["n"] = len(samples.durations)
            yield {**row, "invalid": problems} if problems else row


def cupy_copy():
    """Return a copy of numbers from numpy, which needs neither cuRAND nor a compiler."""
    import cupy
    import numpy as np

    source = cupy.asarray(np.random.default_rng(0).standard_normal(16 << 20, dtype=np.float32))
    target = cupy.empty_like(source)
    return lambda: cupy.copyto(target, source)


def cuda_core_copy():
    from pytest_perfgate.adapters.runtimes.cuda import cuda_core

    device = cuda_core().Device()
    device.set_current()
    stream = device.create_stream()
    source, target = (device.allocate(64 << 20, stream=stream) for _ in range(2))
    return lambda: target.copy_from(source, stream=stream)
