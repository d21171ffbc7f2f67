"""How long machine code and reports take to read, and which part of it is ours.

Prints ratios of one run: a megabyte of machine code with the disassembler's share beside ours, and forty reports.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from pytest_perfgate.adapters.devices.visible import DeviceCatalogue
from pytest_perfgate.adapters.readers.cubin import read_cubins, tool
from pytest_perfgate.adapters.readers.ncu_report import read_ncu
from pytest_perfgate.app.inspections.cubin import Cubin
from pytest_perfgate.app.inspections.ncu import Ncu

REPORTS = 40
RUNS = 7
SOURCE = """
template <int P> __global__ void __launch_bounds__(256) k(const float* a, const float* b, float* c, int n) {
    float s[P];
    for (int i = 0; i < P; ++i) s[i] = a[i * n + threadIdx.x];
#pragma unroll 1
    for (int t = 0; t < n; ++t)
#pragma unroll
        for (int r = 0; r < 24; ++r) {
            float x = b[t * 24 + r];
#pragma unroll
            for (int i = 0; i < P; ++i) s[i] = fmaf(s[i], x, s[(i * 7 + r) % P]);
        }
    for (int i = 0; i < P; ++i) c[i * n + threadIdx.x] = s[i];
}
"""


def large_cubin(folder: Path) -> Path:
    """Compile about a megabyte of machine code in some forty kernels."""
    made = folder / "large.cubin"
    kernels = "".join(
        f"template __global__ void k<{p}>(const float*, const float*, float*, int);\n" for p in range(32, 70)
    )
    (folder / "large.cu").write_text(SOURCE + kernels)
    subprocess.run(["nvcc", "-cubin", "-arch=sm_90", "-o", made, folder / "large.cu"], check=True, capture_output=True)
    return made


class Times(list[float]):
    """Seconds of each run, the fastest first, and the least processor time, which other loads stretch less."""

    busy: float = 0.0


def timed(call: Callable[[], object]) -> Times:
    times, busy = Times(), []
    for _ in range(RUNS):
        begun, before = time.perf_counter(), sum(os.times()[:4])
        call()
        times.append(time.perf_counter() - begun)
        busy.append(sum(os.times()[:4]) - before)
    times.sort()
    times.busy = min(busy)
    return times


def spread(times: Times) -> str:
    middle, number = times[len(times) // 2], len(times)
    return f"{middle:.2f} s ({times[0]:.2f} to {times[-1]:.2f} in {number} runs; {times.busy:.2f} s of processor time)"


def bare_start(folder: Path) -> Times:
    """Return what the disassembler takes for one instruction: no reader of a file can be faster."""
    (folder / "one.bin").write_bytes(bytes.fromhex("18790000000000000000000000c00f00"))
    command = [str(tool("nvdisasm")), "--binary", "SM90a", str(folder / "one.bin")]
    return timed(lambda: subprocess.run(command, check=True, capture_output=True))


def machine_code(folder: Path) -> None:
    chosen = os.environ.get("PERFGATE_CUBIN")
    path = Path(chosen) if chosen else large_cubin(folder)
    size = path.stat().st_size / 1e6
    cubins = read_cubins([path])
    start = bare_start(folder)
    ours = timed(lambda: Cubin(lambda _: cubins, DeviceCatalogue).inspect([path], {}))
    whole = timed(lambda: Cubin(read_cubins, DeviceCatalogue).inspect([path], {}))
    typical = whole[len(whole) // 2]
    print(f"cubin of {size:.2f} MB on {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}: {spread(whole)}")
    print(f"  starting the disassembler for one instruction {spread(start)}, {start[RUNS // 2] / typical:.0%} of it")
    print(f"  analysis of what it printed {spread(ours)}, {ours[RUNS // 2] / typical:.0%} of it")
    print(f"  target 1 s a megabyte: {'kept' if typical / size < 1 else 'MISSED'}, {typical / size:.2f} s")


def reports(folder: Path) -> None:
    root = os.environ.get("PERFGATE_CORPUS")
    if not root:
        print("reports: PERFGATE_CORPUS is not set")
        return
    sources = sorted(Path(root).glob("ncu/*.ncu-rep"))
    copies = [Path(shutil.copy(sources[n % len(sources)], folder / f"{n}.ncu-rep")) for n in range(REPORTS)]
    spent = timed(lambda: list(map(str, [Ncu(read_ncu, DeviceCatalogue).inspect(copies, {}).views["overview"]()])))
    print(f"{REPORTS} reports of {sum(p.stat().st_size for p in copies) / 1e6:.1f} MB: {spread(spent)}")
    print(f"  target 3 s: {'kept' if spent[-1] < 3 else 'MISSED'}; {spent[RUNS // 2] / 3:.0%} of it")


def main() -> None:
    with tempfile.TemporaryDirectory() as room:
        reports(Path(room))
        if os.environ.get("PERFGATE_CUBIN") or shutil.which("nvcc"):
            machine_code(Path(room))
        else:
            print("cubin: nvcc is not on PATH, and PERFGATE_CUBIN names no file", file=sys.stderr)


if __name__ == "__main__":
    main()
