"""Parts that run by name, since a whole run leaves them no time: a capped product, the examples, forks."""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from ci.gpu.builds import committed, pytest, write_project
from ci.gpu.card import Row, under_bar
from ci.gpu.parts import NO_TIME, Check
from ci.gpu.processes import ROOT, SETTINGS, judged, last_line, run_logged, surroundings
from pytest_perfgate.app.compare_arms import ROUND
from pytest_perfgate.model.verdict import PairedRound
from pytest_perfgate.wiring import calibration_path, read_values

LEAST = 15
"""Pairs of each kind by which forks are compared with fresh processes."""
JUDGING_S = 75.0
"""Kept of the part's time for the end of a round, drawing suites and printing."""
SUITES = ("triton_kernels", "cuda_extension", "cupy_kernels", "nvbench", "compiled_kernels")
"""The last one compiles for minutes."""
BUILD_S = 120.0
"""The longest build of an extension: without it its suite says that it is not built, and the others go on."""
NVCC = Path("/usr/local/cuda/bin/nvcc")
"""Where torch's builds look for it too: it is not always on the PATH."""
NOTHING_COLLECTED = 5
FILES: Mapping[str, str] = {
    **SETTINGS,
    "products/__init__.py": """
        import torch

        HERE = "cuda" if torch.cuda.is_available() else "cpu"
        WIDE = 4096
        DEEP = {"changed": 4096, "unchanged": 4096}

        def inputs(kernel):
            deep = DEEP[kernel]
            return [torch.randn(*shape, device=HERE).to(torch.bfloat16) for shape in ((WIDE, deep), (deep, WIDE))]

        def product(a, b):
            return torch.mm(a, b)
        """,
    "test_products.py": """
        import products
        import pytest

        @pytest.mark.perfgate("slowdown <= 3%")
        @pytest.mark.parametrize("kernel", ["changed", "unchanged"])
        def test_product(perfgate, kernel):
            perfgate(products.product, *products.inputs(kernel))
        """,
}
DEEPER = ('"changed": 4096', '"changed": 4304')
"""Five percent more to multiply."""


def capped(check: Check, out: Path) -> Iterator[Row]:
    """Compare two products at the card's power limit with the commit before; one has 5 % more to do."""
    project = write_project(out / "capped", FILES)
    if why := committed(project, "base"):
        yield {"what": "two builds of a product", "refused": "no repository", "why": why}
        return
    source = project / "products" / "__init__.py"
    source.write_text(source.read_text(encoding="utf-8").replace(*DEEPER), encoding="utf-8")
    committed(project, "deeper")
    command = [*pytest(check), "--perfgate-against", "HEAD~1"]
    begun = time.monotonic()
    code, text = run_logged(
        command, out / "capped.txt", check.ends - time.monotonic(), cwd=project, env=surroundings(out)
    )
    took = time.monotonic() - begun
    if code is None:
        yield {"what": "two builds of a product", "refused": "no time", "why": text[-200:], "s": took}
        return
    verdicts = {name.rpartition("[")[2].rstrip("]"): verdict for name, verdict in judged(project)}
    row: Row = {"what": "two builds of a product", "s": took}
    for name, verdict in verdicts.items():
        row |= {name: verdict.outcome.value, f"{name}, shift": verdict.sentence}
        row |= {f"{name}, power": power} if (power := dict(verdict.evidence).get("power")) else {}
    if "changed, power" not in row:
        yield {**row, "refused": "below the limit", "why": "the card did not hold the clock down; the log says more"}
        return
    outcomes = [row.get(name) for name in ("changed", "unchanged")]
    yield under_bar(row, "capped", outcomes == ["regressed", "passed"])


def suites(check: Check, out: Path) -> Iterator[Row]:
    """Run each suite of examples/ in one fresh process; a suite says itself what it lacks here."""
    for name in SUITES:
        project = out / "suites" / name
        shutil.rmtree(project, ignore_errors=True)
        shutil.copytree(ROOT / "examples" / name, project)
        env, logs = surroundings(out), out / f"suite-{name}"
        if (project / "setup.py").exists() and (shutil.which("nvcc") or NVCC.exists()):
            build = [sys.executable, "setup.py", "build_ext", "--inplace"]
            most_s = min(BUILD_S, check.ends - time.monotonic())
            run_logged(build, logs.with_suffix(".build.txt"), most_s, cwd=project, env=env)
            env["PYTHONPATH"] = f"{project}:{env['PYTHONPATH']}"
        begun = time.monotonic()
        command = [*pytest(check), "--perfgate-rounds", "1", "-rs"]
        code, output = run_logged(command, logs.with_suffix(".txt"), check.ends - begun, cwd=project, env=env)
        row: Row = {"what": name, "s": time.monotonic() - begun}
        if code is None:
            yield {**row, "refused": "no time", "why": last_line(output)}
            return
        if code == NOTHING_COLLECTED:
            skipped = [line for line in output.splitlines() if line.startswith("SKIPPED")]
            yield {**row, "refused": "skipped", "why": "; ".join(skipped) or last_line(output)}
            continue
        row |= {"exit": code, "said": last_line(output)}
        for case, verdict in judged(project):
            row[case] = "; ".join(
                [*([row[case]] if case in row else []), f"{verdict.limit.text} {verdict.outcome.value}"]
            )
        yield {**row, "bar": "suites", "held": code == 0}


def forks(check: Check, out: Path) -> Iterator[Row]:
    """Compare the scatter of pairs of fresh processes and of forks, with unchanged code; a later call adds pairs."""
    from pytest_perfgate.core.judge.calibration import FORKED  # here: the process of every part imports this module
    from pytest_perfgate.plugin.calibrating import NOT_FORKED

    project = write_project(out / "forks", {**FILES, "test_softmax.py": SOFTMAX})
    seconds = check.ends - time.monotonic() - JUDGING_S
    if seconds <= 0:
        yield {"what": "pairs of forks", "refused": NO_TIME, "why": f"judging them takes {JUDGING_S:.0f} s"}
        return
    command = [sys.executable, "-c", "import sys; from pytest_perfgate.cli import main; sys.exit(main())"]
    command += ["calibrate", "--json", "--scaled-only", "--suites", "20", "--minutes", f"{seconds / 60:.2f}"]
    command += ["--pytest", f"-p no:randomly --perfgate-clocks {check.plan.clocks.value}"]
    log = out / "forks.txt"
    code, output = run_logged(command, log, check.ends - time.monotonic(), cwd=project, env=surroundings(out))
    try:
        facts, _ = json.JSONDecoder().raw_decode(output[f"\n{output}".find("\n{") :])
    except ValueError:
        yield {"what": "pairs of forks", "refused": f"exit code {code}", "why": last_line(output)}
        return
    if error := facts.get("error"):
        yield {"what": "pairs of forks", "refused": error["code"], "why": error["what"]}
        return
    for one in facts["forks"]:
        yield {"what": one["test"], **one, "would be forked": one["forked"] <= one["fresh"]}
    row: Row = {kind: played(project, phase) for kind, phase in (("fresh", ROUND), ("forked", FORKED))}
    enough = min(row.values()) >= LEAST
    if refusals := [line.partition(NOT_FORKED)[2] for line in output.splitlines() if NOT_FORKED in line]:
        row["why"] = refusals[0]
    elif not enough:
        yield {"what": "pairs of both kinds", **row, "refused": "too few", "why": f"{LEAST} of each are asked for"}
        return
    yield under_bar({"what": "pairs of both kinds", **row}, "forks", enough)


def played(project: Path, phase: str) -> int:
    """Return the number of rounds of one kind that a calibration stored."""
    rounds = read_values(calibration_path(project), PairedRound)
    return len({one.number for one in rounds if one.phase == phase and not one.trouble})


SOFTMAX = """
    import pytest
    import torch
    from products import HERE

    @pytest.mark.perfgate("slowdown <= 3%")
    def test_softmax(perfgate):
        perfgate(torch.softmax, torch.randn(4096, 4096, device=HERE), 1)
    """
