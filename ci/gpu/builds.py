"""What a user waits for: two builds of tiny kernels decided, and the verdicts of ten runs of unchanged code."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from ci.gpu.card import under_bar
from ci.gpu.parts import Check, Row
from ci.gpu.processes import SETTINGS, counted, judged, late, run_logged, surroundings

MOST_S, LEAST_DECIDED = 60.0, 0.95
"""What deciding two tiny kernels may take, and the share of verdicts on unchanged code that decide."""
RUNS, LEAST_VERDICTS, ACCEPTED_RUNS = 10, 100, 4
"""Runs of unchanged code, the verdicts that they must give, and the runs that are accepted before."""
RUN, TOTAL, NOT_COMPARED = "a run", "verdicts on unchanged code", "not compared"
ACCEPTED, EDIT = "accepted", "\nRUN = "
DECIDED = frozenset({"passed", "moved", "improved"})
"""What a verdict on unchanged code may say and be an answer; a regression is one too, and a false one."""
FILES: Mapping[str, str] = {
    **SETTINGS,
    "tinykernels/__init__.py": """
        import torch

        HERE = "cuda" if torch.cuda.is_available() else "cpu"
        SIZES = [(1 << 20) + (step << 18) for step in range(5)]

        def inputs(size):
            return torch.ones(2, 2 * size, device=HERE)

        def doubled(rows, size):
            torch.mul(rows[0, :size], 2.0, out=rows[1, :size])

        def clamped(rows, size):
            torch.clamp(rows[0, :size], 0.0, 1.0, out=rows[1, :size])
        """,
    "test_tiny.py": """
        import pytest
        import tinykernels

        @pytest.mark.perfgate("slowdown <= 3%")
        @pytest.mark.parametrize("size", tinykernels.SIZES)
        @pytest.mark.parametrize("kernel", ["doubled", "clamped"])
        def test_kernel(perfgate, kernel, size):
            rows = tinykernels.inputs(size)
            perfgate(getattr(tinykernels, kernel), rows, size)
        """,
}
# A kernel of two microseconds is half launch: a quarter more to do takes it a tenth longer.
SLOWER = ("torch.mul(rows[0, :size]", "size = size + size // 4\n    torch.mul(rows[0, :size]")
FIRST = str(1 << 20)


def builds(check: Check, out: Path) -> Iterator[Row]:
    """Compare two tiny kernels, one a tenth slower, with the commit before; yield both decisions and the time."""
    project = write_project(out / "builds")
    if why := committed(project, "base"):
        yield {"what": "two builds", "refused": "no repository", "why": why}
        return
    edit(project)
    committed(project, "slower")
    command = [*pytest(check), "--perfgate-against", "HEAD~1", "-k", FIRST]
    begun = time.monotonic()
    code, text = run_logged(
        command, out / "builds.txt", check.ends - time.monotonic(), cwd=project, env=surroundings(out)
    )
    took = time.monotonic() - begun
    if code is None:
        yield late({"what": "two builds", "refused": "no time", "why": text[-200:], "s": took}, "builds", MOST_S)
        return
    judged_cases = {name.rpartition("[")[2].rstrip("]"): verdict for name, verdict in judged(project)}
    outcomes = {name: verdict.outcome.value for name, verdict in judged_cases.items()}
    row: Row = {"what": "two builds of two kernels", "s": took, **outcomes}
    row |= {f"{name}, shift": verdict.sentence for name, verdict in judged_cases.items()}
    expected = sorted(outcomes.values()) == ["passed", "regressed"] and outcomes[f"doubled-{FIRST}"] == "regressed"
    yield under_bar(row, "builds", expected and took <= MOST_S)


def repeat(check: Check, out: Path) -> Iterator[Row]:
    """Accept four runs of ten kernels, then run these ten times, each time with an edit that changes nothing.

    Without an edit the code is the accepted code, and no verdict would be needed. Four accepted runs show how far
    runs lie apart, so that two builds are needed only for what the accepted times cannot decide. A later call goes on
    with the project of an earlier one, whose runs are accepted.
    """
    project, message, begun = out / "repeat", "", time.monotonic()
    earlier = subjects(project)
    if not earlier and (why := committed(write_project(project), "base")):
        yield {"what": "ten runs", "refused": "no repository", "why": why}
        return
    env = surroundings(out)
    accept = [sys.executable, "-c", "import sys; from pytest_perfgate.cli import main; sys.exit(main())", "accept"]
    for number in range(1 + sum(subject.endswith(ACCEPTED) for subject in earlier), ACCEPTED_RUNS + 1):
        log = out / f"repeat-accepted-{number}.txt"
        code, text = run_logged(pytest(check), log, check.ends - time.monotonic(), cwd=project, env=env)
        option = "--add" if number > 1 else "--new"
        log = out / f"repeat-accept-{number}.txt"
        accepted, message = run_logged([*accept, option, "--reason", f"run {number}"], log, 60, cwd=project, env=env)
        if code is None or accepted:
            yield {"what": f"accepted run {number}", "refused": "not accepted", "why": (text + message)[-300:]}
        if code is None or (accepted and number == 1):
            return
        committed(project, f"run {number} {ACCEPTED}")
    last = counted(message) or "in an earlier call"
    yield {"what": f"{ACCEPTED_RUNS} runs accepted", "s": time.monotonic() - begun, "last": last}
    source = project / "tinykernels" / "__init__.py"
    plain = source.read_text(encoding="utf-8").partition(EDIT)[0]
    first = 1 + sum(subject.startswith("edit ") for subject in earlier)
    for number in range(first, first + RUNS):
        begun = time.monotonic()
        source.write_text(f"{plain}{EDIT}{number}\n", encoding="utf-8")
        committed(project, f"edit {number}")
        log = out / f"repeat-{number}.txt"
        code, text = run_logged(pytest(check), log, check.ends - time.monotonic(), cwd=project, env=env)
        if code is None:
            yield {"what": f"run {number}", "refused": "no time", "why": text[-200:]}
            return
        yield {"what": RUN, "s": time.monotonic() - begun, **outcomes(project)}


def subjects(project: Path) -> list[str]:
    """Return what the commits of a project say that an earlier call began; empty without one."""
    if not (project / ".git").is_dir():
        return []
    words = ["git", "log", "--format=%s"]
    return subprocess.run(words, cwd=project, capture_output=True, text=True, check=False).stdout.splitlines()


def outcomes(project: Path) -> Counter[str]:
    """Return the outcomes of the newest record; one that compared nothing is no answer."""
    return Counter(
        verdict.outcome.value if verdict.metric is not None else NOT_COMPARED for _, verdict in judged(project)
    )


def continued(earlier: Sequence[Row], rows: Sequence[Row]) -> list[Row]:
    """Return the runs of unchanged code so far, also those of earlier calls, and all their verdicts."""
    all_rows = [*(row for row in earlier if row["what"] == RUN), *(row for row in rows if row["what"] != TOTAL)]
    counts = Counter[str]()
    for row in all_rows:
        counts.update({name: row[name] for name in row.keys() - {"what", "s"}} if row["what"] == RUN else {})
    total = sum(counts.values())
    decided = sum(counts[outcome] for outcome in DECIDED) / max(total, 1)
    row: Row = {"what": TOTAL, "verdicts": total, "decided": decided, **counts}
    if total < LEAST_VERDICTS and not counts["regressed"]:
        return [*all_rows, {**row, "refused": "too few", "why": f"{LEAST_VERDICTS} are asked for: run it again"}]
    return [*all_rows, under_bar(row, "repeat", decided >= LEAST_DECIDED and not counts["regressed"])]


def write_project(project: Path, files: Mapping[str, str] | None = None) -> Path:
    for name, text in (FILES if files is None else files).items():
        path = project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text).lstrip(), encoding="utf-8")
    return project


def edit(project: Path) -> None:
    path = project / "tinykernels" / "__init__.py"
    path.write_text(path.read_text(encoding="utf-8").replace(*SLOWER), encoding="utf-8")


def committed(project: Path, message: str) -> str:
    """Commit everything; return why that failed, or ""."""
    who = ["-c", "user.name=gpu-check", "-c", "user.email=gpu-check@localhost"]
    for words in (["init", "-q"], ["add", "-A"], [*who, "commit", "-q", "--allow-empty", "-m", message]):
        try:
            done = subprocess.run(["git", *words], cwd=project, capture_output=True, text=True, check=False)
        except OSError as fault:
            return str(fault)
        if done.returncode:
            return done.stderr.strip()
    return ""


def pytest(check: Check) -> list[str]:
    words = [
        "-p",
        "no:cacheprovider",
        "-p",
        "no:randomly",
        "-q",
        "--perfgate=full",
        "--perfgate-policy",
        "missing=record",
    ]
    return [sys.executable, "-m", "pytest", *words, "--perfgate-clocks", check.plan.clocks.value]
