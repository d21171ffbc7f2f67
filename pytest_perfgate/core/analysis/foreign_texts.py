"""What texts of other tools are that nothing here reads, and what of the same run is read."""

from __future__ import annotations

import re
from functools import cache

FROM_REPORT = "of an nsys report the SQLite export is read: nsys export --type=sqlite REPORT.nsys-rep"
_KERNELS = "name the compiled file itself (cubin, fatbin, object, library): it says registers, spills and shared memory"
_ROCPROF = "name *_kernel_trace.csv, *counter_collection.csv, *_kernel_stats.csv or pmc_perf.csv of the same run"
_UNTIMED = "a table of rocprof that has no times of kernels"
_TORCH = "export the trace of the same run: prof.export_chrome_trace(FILE)"
_TABLES: tuple[tuple[str, str, str], ...] = (
    (
        r'^"?(?:time ?\(%\)"?,"?total time|start ?\([num]?s(?:ec)?\)"?,"?(?:duration|end) ?\()',
        "a table of nsys stats",
        FROM_REPORT,
    ),
    (
        r"\A(?:generating sqlite file|processing \[|using existing sqlite export|notice: existing sqlite export)",
        "what nsys stats prints",
        FROM_REPORT,
    ),
    (r"^ ?\*\* [^\n]{3,60} \([a-z_]+\):\s*$", "what nsys stats prints", FROM_REPORT),
    (r'\A\[\s*\{\s*"(?:time \(%\)|start \([num]?s\))"', "a table of nsys stats as JSON", FROM_REPORT),
    (
        r'\A\{"(?:data":\["\[unknown\]"|type":\d+,"\w+event":)',
        "a JSON export of nsys",
        FROM_REPORT,
    ),
    (r"^==\d+== (?:nvprof is|profiling result)", "what nvprof printed", "profile the program with nsys or ncu instead"),
    (r"^ptxas (?:info|warning) *:", "what a compiler printed of its kernels", _KERNELS),
    (
        r"^(?:fatbin (?:elf|ptx) code:|resource usage:$|\s*\.headerflags\s+@|\s+function : \S+$)",
        "text that cuobjdump or nvdisasm printed",
        _KERNELS,
    ),
    (
        r'\A"?(?:guid"?,"?)?(?:domain"?,"?function|kind"?,"?(?:direction|operation|function)|codeobj"?,"?vaddr)',
        _UNTIMED,
        _ROCPROF,
    ),
    (
        r'\A"?(?:node_id"?,"?logical_node|dispatch_id,kernel_name,gpu_id$|device,hbmbw)',
        _UNTIMED,
        _ROCPROF,
    ),
    (
        r'\A\{\s*"rocprofiler-sdk-tool"',
        "JSON of rocprofv3",
        "write CSV instead: rocprofv3 --kernel-trace --output-format csv",
    ),
    (
        r'\A\{\s*"schema"\s*:\s*"[\w.-]+",[^{]*"nodes"\s*:',
        "an execution trace of PyTorch, which records operators and no kernels",
        _TORCH,
    ),
    (r"^(?=[^\n]*self cpu %)[^\n]*# of calls", "a table that PyTorch's profiler printed", _TORCH),
    (
        r'\A\[\s*\{\s*"children"\s*:(?s:.)*"frame"\s*:',
        "a call tree of Triton's Proton",
        "profile with torch.profiler, nsys or ncu",
    ),
    (r"\Abenchmark,device,device name,", "a CSV of NVBench", "its JSON is read: run the benchmark with --json FILE"),
    (r"\A# devices\s+## \[\d+\] ", "what NVBench prints", "its JSON is read: run the benchmark with --json FILE"),
    (
        r"^(?:name,iterations,real_time,cpu_time,time_unit|benchmark +time +cpu +iterations|run on \(\d+ x )",
        "what Google Benchmark prints",
        "its JSON is read: --benchmark_out=FILE --benchmark_out_format=json",
    ),
    (
        r'\A\{\s*"arch"\s*:(?s:.)*"machine"\s*:(?s:.)*"ram"\s*:',
        "what asv wrote of a machine",
        "name the files of results that lie beside it",
    ),
)


@cache
def _patterns() -> tuple[tuple[re.Pattern[bytes], str, str], ...]:
    """Compiled when the first file is met that nothing reads."""
    return tuple((re.compile(pattern.encode(), re.MULTILINE), what, mend) for pattern, what, mend in _TABLES)


def foreign_text(head: bytes) -> tuple[str, str]:
    """What a text is by its first lines, and what to give instead; empty where they say nothing."""
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip().replace(b"\r\n", b"\n").lower()
    return next(((what, mend) for pattern, what, mend in _patterns() if pattern.search(text)), ("", ""))
