"""Small recordings of our own kernels on a real GPU: a trace with overlap, compiled kernels, a report of ncu."""

from __future__ import annotations

import gzip
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from ci.gpu.parts import Check, Row

LARGEST = 100_000
"""Bytes of a recording that may be committed."""
SOFTMAX = (
    "import torch\n"
    "rows = torch.randn(4096, 4096, device='cuda')\n"
    "for _ in range(3):\n"
    "    torch.softmax(rows, 1)\n"
    "torch.cuda.synchronize()\n"
)


def recordings(check: Check, out: Path) -> Iterator[Row]:
    """Each by itself: what cannot be recorded here says why, and the others are made."""
    folder = out / "recordings"
    folder.mkdir(parents=True, exist_ok=True)
    for name, record in (("trace", trace), ("cubins", cubins)):
        try:
            paths = list(record(check, folder))
        except Exception as error:
            yield {"what": name, "refused": type(error).__name__, "why": str(error)[:300]}
            continue
        for path in paths:
            size = path.stat().st_size
            yield {"what": name, "file": path.name, "bytes": size, "held": size <= LARGEST}


def trace(check: Check, folder: Path) -> Iterator[Path]:
    """Two streams at work at the same time, for three steps."""
    torch = check.runtime_module()
    from torch.profiler import ProfilerActivity, profile, record_function

    side = torch.cuda.Stream()
    a = torch.randn(2048, 2048, device="cuda")
    source = torch.randn(8 << 20, device="cuda")
    target = torch.empty_like(source)

    def step() -> None:
        with torch.cuda.stream(side):
            target.copy_(source)
        a @ a

    step()
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as seen:
        for number in range(3):
            with record_function(f"step {number}"):
                step()
        torch.cuda.synchronize()
    plain, packed = folder / "overlap.json", folder / "overlap.json.gz"
    seen.export_chrome_trace(str(plain))
    packed.write_bytes(gzip.compress(json.dumps(json.loads(plain.read_text())).encode(), 9, mtime=0))
    plain.unlink()
    yield packed


def cubins(check: Check, folder: Path) -> Iterator[Path]:
    """The Triton softmax as this machine compiles it."""
    torch = check.runtime_module()
    from ci.gpu.kernels import softmax_rows

    rows = torch.randn(64, 1024, device="cuda")
    made = softmax_rows(torch.empty_like(rows), rows)
    target = folder / f"softmax-{check.runtime.device().arch}.cubin"
    target.write_bytes(made.asm["cubin"])
    yield target


def profiler(check: Check, out: Path) -> Iterator[Row]:
    """ncu's own duration beside ours, where it works; the clocks stay as they are, and its report is kept."""
    if shutil.which("ncu") is None:
        yield {"what": "ncu", "refused": "not installed", "why": "ncu is not on the PATH"}
        return
    report = out / "recordings" / "softmax.ncu-rep"
    report.parent.mkdir(parents=True, exist_ok=True)
    script = out / "softmax.py"
    script.write_text(SOFTMAX, encoding="utf-8")
    sections = [word for name in ("SpeedOfLight", "LaunchStats", "Occupancy") for word in ("--section", name)]
    options = ["--clock-control", "none", "--cache-control", "none", "--kernel-name", "regex:(?i)softmax"]
    command = ["ncu", *options, "--launch-skip", "1", "--launch-count", "1", *sections, "-f", "-o", str(report)]
    command += [sys.executable, str(script)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=45, check=False)
    if not report.is_file():
        yield {"what": "ncu", "refused": f"exit code {done.returncode}", "why": (done.stdout + done.stderr)[-300:]}
        return
    metric = "gpu__time_duration.sum"
    shown = subprocess.run(
        ["ncu", "--import", str(report), "--csv", "--page", "raw", "--metrics", metric, "--print-units", "base"],
        capture_output=True, text=True, timeout=20, check=False,
    )  # fmt: skip
    theirs = _figure(shown.stdout)
    torch = check.runtime_module()
    rows = torch.randn(4096, 4096, device="cuda")
    ours = check.measured("softmax", lambda: torch.softmax(rows, 1), "cupti")
    if "ns" not in ours:
        ours = check.measured("softmax", lambda: torch.softmax(rows, 1), "auto")
    row: Row = {"what": "ncu", "bytes": report.stat().st_size, "ncu_ns": theirs}
    if theirs and "ns" in ours:
        off = (ours["ns"] - ours["overhead_ns"]) / theirs - 1
        row |= {"timer": ours["timer"], "ns": ours["ns"], "off": off, "bar": "ncu", "held": abs(off) <= 0.05}
    yield row


def _figure(csv: str) -> float | None:
    """The last number of the last line."""
    words = [word.strip('" ') for word in csv.strip().splitlines()[-1].split('","')] if csv.strip() else []
    try:
        return float(words[-1].replace(",", ""))
    except (ValueError, IndexError):
        return None
