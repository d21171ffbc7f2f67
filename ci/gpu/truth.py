"""What the device's own records say of each call, by torch's profiler in a process of its own.

CUPTI serves one subscriber a process: after torch's profiler ours would find it taken.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from ci.gpu.calls import Call, calls
from ci.gpu.card import watched_clocks

TRIED = (65536, 4096, 512, 64, 8)
"""Bytes of buffers that are looked at where the proof fails."""
HUNG = "torch's profiler did not end"
REPEATS = 40
WARM_S = 0.3
SCRIPT = str(Path(__file__).resolve().parents[1] / "gpu-check")
_WORK = frozenset({"kernel", "gpu_memcpy", "gpu_memset"})


def truths(clocks: str, timeout_s: float = 80.0) -> tuple[dict[str, float], str]:
    """Return the nanoseconds by name of a call, and why there are none, or not all."""
    try:
        done = subprocess.run(
            [sys.executable, SCRIPT, "--truth", "--clocks", clocks],
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return {}, f"{HUNG} within {timeout_s:.0f} s"
    try:
        answer = json.loads(done.stdout.strip().splitlines()[-1])
    except (ValueError, IndexError):
        return {}, (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1][:300]
    return answer["ns"], "; ".join(answer["why"])[:300]


def proof_failure(timeout_s: float = 40.0) -> str:
    """Return why CUPTI's counter of lost records is not to be trusted here; the check may end its own process."""
    try:
        done = subprocess.run(
            [sys.executable, SCRIPT, "--proof"], capture_output=True, text=True, timeout=timeout_s, check=False
        )
    except subprocess.TimeoutExpired:
        return f"the proof did not end within {timeout_s:.0f} s"
    reason = "; ".join(done.stderr.strip().splitlines()[-len(TRIED) - 1 :])[-400:]
    if done.returncode < 0:
        return f"the proof died of signal {-done.returncode}{f': {reason}' if reason else ''}"
    return reason or "no reason given" if done.returncode else ""


def run_proof(torch: Any, runtime: Any) -> None:
    """Prove the counter; if that fails, the last line of the errors is the reason."""
    from pytest_perfgate.adapters.bindings.cuda_driver import CudaDriver
    from pytest_perfgate.adapters.bindings.cupti import BUFFER, CuptiRecorder, prove
    from pytest_perfgate.model.errors import PerfgateError

    torch.zeros(1, device="cuda")
    runtime.synchronize()
    recorder, touch = CuptiRecorder(), CudaDriver().touch
    try:
        with recorder.opened(BUFFER):
            try:
                prove(recorder, touch)
            except PerfgateError:
                for size in TRIED:
                    print(lost_in(recorder, size, touch), file=sys.stderr, flush=True)
                raise
    except PerfgateError as error:
        raise SystemExit(error.what) from error


def lost_in(recorder: Any, size: int, touch: Call, times: int = 200) -> str:
    """Return what becomes of some records in buffers of this size, to find buffers that prove the counter."""
    recorder._size = size  # noqa: SLF001 - as the proof itself sets it
    for _ in range(times):
        touch()
    try:
        came = len(recorder.drain())
        return f"{size} B: {came} of {times} came, {recorder.dropped()} counted as lost"
    except Exception as error:
        return f"{size} B: {type(error).__name__}: {error}"


def run_truth(check: Any) -> None:
    """Print one line of JSON; a call that cannot be profiled loses its own figure, a spoiled card all of them."""
    torch = check.runtime_module()
    result: dict[str, Any] = {"ns": {}, "why": []}
    torch.zeros(1, device="cuda")
    with watched_clocks(check) as problems:
        for name, call in calls(torch):
            try:
                result["ns"][name] = profiled(torch, call)
            except Exception as error:  # noqa: PERF203 - a handful of calls
                result["why"].append(f"{name}: {type(error).__name__}: {error}")
    print(json.dumps({"ns": {}, "why": problems} if problems else result))


def profiled(torch: Any, call: Call) -> float:
    """Return the median over calls on a warm device."""
    from torch.profiler import ProfilerActivity, profile

    begun = time.monotonic()
    while time.monotonic() - begun < WARM_S:
        call()
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
        for _ in range(REPEATS):
            call()
        torch.cuda.synchronize()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        profiler.export_chrome_trace(str(path))
        return per_call(json.loads(path.read_text(encoding="utf-8"))["traceEvents"])


def per_call(events: list[dict[str, Any]], repeats: int = REPEATS) -> float:
    """Return nanoseconds from a call's first start to its last end; torch may lose the first records of a session."""
    work = sorted((e["ts"], e["ts"] + e["dur"]) for e in events if e.get("ph") == "X" and e.get("cat") in _WORK)
    each = max(1, round(len(work) / repeats))
    whole = len(work) // each
    if 2 * whole < repeats:
        raise ValueError(f"{len(work)} records of {repeats} calls")
    work = work[len(work) - whole * each :]
    made = (work[at : at + each] for at in range(0, len(work), each))
    return 1e3 * median(max(end for _, end in one) - one[0][0] for one in made)
