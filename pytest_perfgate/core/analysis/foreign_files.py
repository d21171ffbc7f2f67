"""The kind of an unreadable file, by its first bytes."""

from __future__ import annotations

import re
import zlib
from functools import cache

from pytest_perfgate.model.profiles import SQLITE

_IMPORT = "open it once in the nsys-ui of its version, or QdstrmImporter -i FILE.qdstrm, then nsys export --type=sqlite"
_UTF_8 = "save it as UTF-8: iconv -f UTF-16 -t UTF-8 FILE > OTHER"
_SQLITE, _PROFILE = "an SQLite database", "profile the program with torch.profiler, nsys, ncu or rocprofv3"
_CPROFILE = "a profile of Python's cProfile, without times of kernels"
_HOST = "output of a profiler of the host ({}), without times of kernels"
_CSV = "write CSV instead: rocprofv3 --kernel-trace --output-format csv"
_NO_PICKLE = "a snapshot of torch's memory holds no times: give the trace of export_chrome_trace"
FROM_REPORT = "perfgate reads the SQLite export of an nsys report: nsys export --type=sqlite REPORT.nsys-rep"

_HOST_MARKS = (
    (b"PERFILE2", "perf record"),
    (b"memray\0", "memray"),
    (b"# callgrind format", "callgrind"),
    (b"\n\4\b\1\x10\2", "pprof"),
    (b"FLR\0", "Java Flight Recorder"),
    (b"gmon\1", "gprof"),
    (b"\0" * 8 + b"\3" + b"\0" * 15, "gperftools"),
)

_PACKED: tuple[tuple[bytes, str, str], ...] = (
    (b"PK\x03\x04", "a zip archive", "unpack it (unzip FILE) and give the file inside"),
    (b"PK\x05\x06", "an empty zip archive", "give the original file"),
    (b"\xfd7zXZ\0", "packed with xz", "unpack it: xz -d FILE"),
    (b"\x28\xb5\x2f\xfd", "packed with zstd", "unpack it: zstd -d FILE"),
    (b"BZh", "packed with bzip2", "unpack it: bzip2 -d FILE"),
    (b"\x5d\0\0", "packed with lzma", "unpack it: xz --format=lzma -d FILE"),
    (b"\xff\x06\0\0sNaPpY", "packed with snappy", "unpack it and give the file inside"),
    (b"7z\xbc\xaf\x27\x1c", "a 7-zip archive", "unpack it and give the file inside"),
    (b"version https://git-lfs", "a pointer of Git LFS, not the file itself", "fetch it: git lfs pull"),
    (b"%PDF", "a PDF", ""),
    (b"BC\xc0\xde", "bitcode of LLVM", "name the machine code that is made of it: perfgate inspect FILE.cubin"),
    (b"\x03\x02\x23\x07", "SPIR-V, which holds no times and no machine code", _PROFILE),
    *((mark + b"\x03", _CPROFILE, _PROFILE) for mark in (b"{)", b"{\xa9", b"\xfb)", b"\xfb\xa9")),
    *((mark, _HOST.format(tool), _PROFILE) for mark, tool in _HOST_MARKS),
    (SQLITE, _SQLITE, ""),
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file", FROM_REPORT),
    *((mark, what, FROM_REPORT) for mark, what in ((b"PAR1", "a Parquet file"), (b"ARROW1", "an Arrow file"))),
    (b"\xff\xff\xff\xff", "an Arrow stream", FROM_REPORT),
    (b"U3w[END]NVIDIA Nsight Systems Stream", "a capture that nsys has not turned into a report", _IMPORT),
    *((mark, "text in UTF-16", _UTF_8) for mark in (b"\xff\xfe", b"\xfe\xff", b"{\0", b"\0{")),
)

_FROM_STORE = "object storage sends XML when a file is missing or access is denied; open it and read the message"
GZIP, _TAR = b"\x1f\x8b", slice(257, 262)


def foreign(head: bytes) -> tuple[str, str]:
    """Return the kind of these bytes and the fix; empty texts if unknown."""
    if head.startswith(GZIP):
        inside = unpacked_head(head)
        if not inside.strip():
            return "is an empty gzip file", "copy it again from where it was made"
        what, fix = _plain(inside)
        if what == _SQLITE:
            fix = "unpack it: gunzip FILE"
        elif not what and inside.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
            what = "JSON that is not a trace"
        return (f"is a gzip file, and inside {what}", fix) if what else ("", "")
    what, fix = _plain(head)
    return (f"is {what}", fix) if what else ("", "")


def _plain(head: bytes) -> tuple[str, str]:
    for magic, what, fix in _PACKED:
        if head.startswith(magic):
            return what, fix
    if head.startswith(GZIP):
        return "another gzip file", "unpack it once: gunzip FILE"
    if head[_TAR] == b"ustar":
        return "a tar archive", "unpack it (tar -xf FILE) and give the file inside"
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n")[:200].lower()
    if start.startswith((b"<!doctype html", b"<html", b"<head")):
        fix = "give the file that it was made of; a download may also get a login or error page instead"
        return "an HTML page", fix
    if b"<svg" in head[:4096].lower() and start.startswith((b"<?xml", b"<!doctype svg", b"<svg")):
        return "a picture (SVG)", "give the file that it was made of"
    if start.startswith(b"<?xml") and b"<catch" not in start:
        return "an XML document", _FROM_STORE if b"<error" in start else ""
    if _is_perfetto(head):
        return "a trace of Perfetto (.pftrace)", _CSV
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip().replace(b"\r\n", b"\n").lower()
    return next(((what, fix) for pattern, what, fix in _patterns() if pattern.search(text)), ("", ""))


_PACKET = re.compile(rb"\n([\x80-\xff]{0,3}[\1-\x7f])[\x12\x182@JPZbh\x80-\xff](?!(?s:.)/(?:host|device|task):)")
"""Matches the tag and length of a packet, and the first of its own fields; in a profile of XLA that is a name."""


def _is_perfetto(head: bytes) -> bool:
    """Return whether one packet follows another, or one of two bytes of length and more leads beyond these bytes."""
    first = _PACKET.match(head)
    length = sum((byte & 127) << 7 * place for place, byte in enumerate(first[1])) if first else 0
    end = first.end(1) + length if first else 0
    return bool(first and (_PACKET.match(head, end) or (len(first[1]) > 1 and end >= len(head))))


def unpacked_head(head: bytes) -> bytes:
    """Return what the first bytes of a gzip file contain; ``damaged`` if that cannot be read."""
    try:
        return zlib.decompressobj(wbits=31).decompress(head, 4096)
    except zlib.error:
        return b"damaged"


_KERNELS = "name the compiled file itself (cubin, fatbin, object, library): it has registers, spills and shared memory"
_ROCPROF = "name *_kernel_trace.csv, *counter_collection.csv, *_kernel_stats.csv or pmc_perf.csv of the same run"
_PRINTED = "text that cuobjdump or nvdisasm printed"
_AGAIN = "give the file as the profiler wrote it, or export it again; its form decides what a figure means"
_BESIDE = "name the files of results that lie beside it"
_SOURCE, _TRACELENS = "name the traces that it was made of", "a table of TraceLens"
_UNTIMED, _NSYS = "a table of rocprof that has no times of kernels", "a table of nsys stats"
_MEASUREMENT = 'give its times to a test: perfgate.record(measurement.times, unit="s")'
_TORCH = "export the trace of the same run: prof.export_chrome_trace(FILE)"
_BENCHMARKS = "a result of another benchmark tool ({}), which is not read"
_MEASURE = "measure with pytest-benchmark, asv or hyperfine, whose JSON is read"
_RECORD = 'give its times to a test: perfgate.record(TIMES, unit="ns"); another figure: perfgate.metric(NAME, VALUE)'

_STAT = r"\A(?:# started on [^\n]*\s+)?(?: *\d+\.\d+[,;])?(?:cpu\d+[,;]|[sn]\d[\w-]*[,;]\d+[,;])?"
_PROFILERS = (
    ("collapsed stacks, as of py-spy or async-profiler", r"\A(?:(?:# \w+: [^\n]*)?\n)*(?:[^\n;]+;)+[^\n;]* \d+$"),
    ("perf", r"\A\S+ +\d+\W[^\n]*\d+\.\d+: +(?:\d+ )?[\w:-]+:|performance counter stats|^# samples: \S+ +of "),
    ("perf", _STAT + r"(?:[\d.]+|<not \w+>)([,;])[a-z/% ]*\1[a-z][^,;\n]*\1(?:[\d.]+%\1)?\d+\1"),
    ("perf", r'\A(?:# started on [^\n]*\s+)?\{\s*"(?:[^}]*")?counter-value"|\A\{\s*"linux-perf-json-version"'),
    ("perf or ftrace", r"\A *percent \|\s+source code|^# tracer: |\A# =+\n# captured on |\A# event '"),
    ("perf", r"^ +[\d.]+ \( *[\d.]+ ms\): \S+/\d+ \w+\("),
    ("gprof", r"\Aflat profile:\s+each sample counts as |^granularity: each sample hit covers "),
    ("scalene", r'\A\{\s*"alloc_samples"'),
    ("pyinstrument", r'\A\{\s*"(?:session":\s*\{\s*")?start_time":[^{[]*"sample_count"|^ /_//_/// /_'),
    ("memray", r'\A(?:\x04"m\x18(?s:.){5,20}memray\0|allocator,num_allocations,size,|\{\s*"total_num_allocations")'),
    ("memray", r'\A(?:\W*total allocations:\s|\{"version": 0, "costs": \[)'),
    ("yappi", r"\Aversion: 1\ncreator: yappi|\Aclock type: \w+\nordered by: "),
    ("cProfile", r"\A\s*\d+ function calls (?:\(\d+ primitive calls\) )?in [\d.]+ seconds"),
    ("python -X importtime", r"^import time: self \[us\]"),
    ("Node.js or Chrome", r'\A\{\s*"(?:nodes":\s*\[\s*\{\s*"id":\s*\d+,\s*"|head":\s*\{\s*")callframe"'),
    ("Node.js or Chrome", r'\A\{"snapshot":\s*\{"meta"'),
    ("Node.js", r"\Astatistical profiling result from |\Av8-version,\d"),
    ("gperftools", r"\Atotal: \d+ samples\n|\A--- symbol\nbinary=|\Aevents: hits\s+fl="),
    ("pprof", r"\Ah[\x80-\xff]{8}[\0-\x7f]\n\x04\x08\x01\x10\x02|^showing nodes accounting |^ +flat +flat% +sum%"),
    ("VTune", r'\A"?(?:source )?function(?:[ /a-z]* stack)?"?[,;\t](?:"?module"?[,;\t])?"?(?:cpu time|clockticks)'),
    ("Go's execution tracer", r"\Ago 1\.\d+ trace\0"),
    ("valgrind", r'\A(?:version: 1\ncreator: callgrind|desc: [^\n]*\n(?:desc: [^\n]*\n)*cmd: |\{"dhatfileversion")'),
    ("valgrind", r"^==\d+== using valgrind|\A-{40,}\n(?:profile data file '|i1 cache: |command: [^\n]*\nmassif)"),
    ("strace", r"\A(?: *\d+\.\d+ |\d\d:\d\d:\d\d\S* )?execve\(|^% time +seconds +usecs/call"),
)

_BENCHMARK_TOOLS = (
    ("JMH", r'"jmhversion"|^# jmh version|^benchmark +(?:\(\w+\) +)*mode +cnt +score|\A"benchmark","mode"'),
    ("BenchmarkDotNet", r'"benchmarkdotnetcaption"|^benchmarkdotnet v|^\| +method +\|[^\n]* mean +\||\Amethod,job,'),
    ("nanobench", r'"median\(elapsed\)"|\A"title";"name";"unit";|^\|(?: +relative \|)? +[mnu]?s/\S+ \|'),
    ("go test -bench", r'^benchmark\S+\s+\d+\s.* ns/op|\A\{"time":"[^"]*","action":'),
    ("Criterion", r'\A\{\s*"(?:mean":\s*\{\s*"conf|sampling_mode"|group_id"|reason":\s*"benchmark-)'),
    ("Criterion", r"\btime: +\[[\d.]+ \S+ [\d.]+ |\Agroup,function,value,"),
    ("cargo bench", r"^test \S+ +\.\.\. bench: "),
    ("divan", r"^\S+ +fastest +│ slowest +│ median"),
    ("BenchmarkTools of Julia", r'\A\[\{"julia":"[^}]*"benchmarktools"'),
    ("benchstat", r"^ +│ +sec/op +│|^name +old time/op +new time/op|^,sec/op,ci,"),
    ("Catch2", r'^benchmark name +samples |"catch2-version"|<catch(?:2testrun)? '),
    ("nccl-tests", r'^# nthread \d+ ngpus |\A\{"version":\d+,"start_time":"[^"]*","args"'),
    ("OSU micro-benchmarks", r"^# osu (?:mpi|nccl|openshmem|upc)"),
    ("the CUTLASS profiler", r"^problem,provider,operationkind,|^ +problem id: \d"),
    ("a server of language models", r"^=+ serving benchmark result ="),
    ("a server of language models", r'\A\{[^{]*"(?:request_rate|avg_latency|tokens_per_second|prefill_latency)"\s*:'),
    ("genai-perf or perf_analyzer", r'\A(?:metric,avg,m|concurrency,inf)|"time_to_first_token":\s*\{\s*"(?:unit|avg)"'),
    ("trtexec", r'^&&&& running tensorrt|\A\[\s*\{\s*"(?:count"[^{]*\{\s*"name"[^}]*"timems|startinms)"'),
    ("Locust", r'\A"?type"?,"?name"?,"?(?:# requests|request count)'),
    ("llama-bench", r'\A(?:\[\s*)?\{\s*"build_commit"|\Abuild_commit,|^\| model +\| +size \| +params \| backend'),
    ("MLPerf", r"^:::mllog \{|^=+\s*mlperf results summary"),
    ("lm-eval", r'\A\{\s*"results":\s*\{\s*"[^"]*":\s*\{\s*"alias"'),
    ("pytest-codspeed", r'\A\{\s*"creator":\s*\{\s*"name":\s*"pytest-codspeed"'),
    ("pyperf", r"\A(?:warning: the benchmark result may be|run 1: )|^mean \+- std dev: "),
    ("richbench", r"\A\s*benchmarks, repeat=\d+, number="),
    ("time", r"\Acommand being timed: |\Areal\s+\d+m[\d.]+s\s+user|\A[^\n]*elapsed [\d?]+%cpu "),
    ("timeit", r"^\d+ loops?(?:, best of \d+: | -> )"),
    ("Vitest", r'\A\{\s*"files":\s*\[\s*\{\s*"filepath":[^\[]*"groups"|benchmarking is an experimental feature'),
    ("mitata", r'\A\{\s*"layout":\s*\[|\Aclk: ~[\d.]+ ghz'),
    ("Tinybench", r'\A\[\s*\{\s*"(?:task name"|name":[^{]*"result":\s*\{\s*"state")'),
    ("Benchmark.js", r"^.+ x [\d,.]+ ops/sec ±"),
    ("fio", r'\A\{\s*"fio version"|^fio-\d|\A\d;fio-|^[^\n]{1,80}: \(g=0\): rw='),
    ("iperf3", r'\A\{\s*"start":\s*\{\s*"connected"|^\[ *id\] interval +transfer'),
    ("ab", r"^this is apachebench"),
    ("wrk", r"\Arunning \S+ test @ http"),
    ("sysbench", r"\Asysbench \d"),
    ("autocannon", r'\A\{"url":"[^"]*",("socketpath":[^,]*,)?"connections":'),
    ("siege", r'\A\{\s*"transactions":|^transactions:\s+\d+ hits'),
    ("vegeta", r'\A\{\s*"latencies":\s*\{\s*"total"|^requests +\[total, rate'),
    ("oha", r'\A\{\s*"summary":\s*\{\s*"successrate"'),
    ("k6", r'\A\{\s*"(?:root_group|type":\s*"metric"|metrics":\s*\{\s*"[a-z_{}:]+":\s*\{\s*"(?:type|values))'),
    ("k6", r'\A\{\s*"metrics":\s*\{\s*"(?:checks"|data_received"|http_req)'),
    ("perf bench", r"^# running '[\w/]+' benchmark"),
)

_TABLES: tuple[tuple[str, str, str], ...] = (
    (
        r'^"?(?:time ?\(%\)"?[,\t]"?total time|start ?\([num]?s(?:ec)?\)"?[,\t]"?(?:duration|end) ?\()',
        _NSYS,
        FROM_REPORT,
    ),
    (
        r"\A(?:generating sqlite file|processing \[|using existing sqlite export|notice: existing sqlite export)",
        "what nsys stats prints",
        FROM_REPORT,
    ),
    (r"^ ?\*\* [^\n]{3,60} \([a-z_]+\):\s*$", "what nsys stats prints", FROM_REPORT),
    (r'\A\[\s*\{\s*"(?:time \(%\)|start \([num]?s\)|api start|total \(\wb|nvtx range|cpu page)', _NSYS, FROM_REPORT),
    (r'\A\W*(?:row#"?,|virtual address"?[,:]|cpu page faults"?,|total htod migr)', _NSYS, FROM_REPORT),
    (
        r'\A[^\n]*(?:(?:proj time|projected start|api dur|tavg) \(\ws\)|nvtx inst"?[,\t]|total \(\wb\)[^\n]*operation)',
        _NSYS,
        FROM_REPORT,
    ),
    (r'\A\W*(?:data"?: ?\[?"\[unknown\]"|type":\d+,"\w+event":|vmsysteminf)', "a text export of nsys", FROM_REPORT),
    (
        r'^==\d+== (?:nvprof is|profiling result)|\A"type","time\(%\)","time"',
        "what nvprof printed",
        "profile the program with nsys or ncu instead",
    ),
    (
        r"^[^\n]*__global__\s+[\w(]",
        "CUDA source",
        "compile it and name the result: nvcc -cubin -arch=sm_90 FILE.cu, perfgate inspect FILE.cubin",
    ),
    (r'^\s*\.amdgcn_target |"hip:gfx|^target triple = "amdgcn', "a compiler's text for a GPU of AMD", _ROCPROF),
    (r"^ptxas (?:info|warning) *:", "a compiler's report on its kernels", _KERNELS),
    (r"^(?:fatbin (?:elf|ptx) code:|resource usage:$|\s+function : \S+$)", _PRINTED, _KERNELS),
    (r"^\s*(?:\.headerflags\s+@|/\*[\da-f]{4,}\*/)", _PRINTED, _KERNELS),
    (r'^(?:\d\d-bit elf: type=|elf file +\d+: )|\A(?:digraph f \{\s+subgraph|\[\{"elf":\{"layout)', _PRINTED, _KERNELS),
    (r"^\.version \d+\.\d+\s+\.target sm_", "PTX", "compile it: ptxas -arch=sm_90 FILE -o FILE.cubin"),
    (r'\A"?(?:guid"?,"?)?(?:domain"?,"?function|codeobj"?,"?vaddr)', _UNTIMED, _ROCPROF),
    (r'\A"?(?:guid"?,"?)?kind"?,"?(?:direction|operation|function)', _UNTIMED, _ROCPROF),
    (r'\A"?(?:node_id"?,"?logical_node|dispatch_id,kernel_name,gpu_id$|device,hbmbw)', _UNTIMED, _ROCPROF),
    (r'\Aworkload_name,|\A"?sample_timestamp"?,"?exec_mask', _UNTIMED, _ROCPROF),
    (r'\A\{\s*"(?:omnitrace|rocprofiler-systems)"', "a summary of rocprof-sys", _CSV),
    (r"\bduration \(nsec\)[^\n]*average \(nsec\)", "a summary of rocprofv3", _ROCPROF),
    (r'\A\{\s*"rocprofiler-sdk-tool"', "JSON of rocprofv3", _CSV),
    (
        r'\A\{\s*"schema"\s*:\s*"[\w.-]+",[^{]*"nodes"\s*:',
        "an execution trace of PyTorch, which records operators and no kernels",
        _TORCH,
    ),
    (r"^(?=[^\n]*self cpu %)[^\n]*# of calls", "a table that PyTorch's profiler printed", _TORCH),
    (r'\A(?:\d*,)?(?:"?rank"?,"?(?:idle_time\(|comp_comm_over)|name,sum \(us\))', "a table of HTA", _SOURCE),
    (r"\A(?:name,(?:param: .*gflops_first|op cat|total_direct)|parent (?:cpu_|op cat)|op cat)", _TRACELENS, _SOURCE),
    (r'\A\[\s*\{\s*"children"\s*:(?s:.)*"frame"\s*:', "a call tree of Triton's Proton", _PROFILE),
    (
        r"\A(?:#[a-z]\w* = (?:loc\(|#ttg\.)|module (?:attributes )?\{|; moduleid = )|^target triple = ",
        "an intermediate form of a compiler",
        "name the machine code that lies beside it: perfgate inspect FILE.cubin",
    ),
    (r"\A\[\[(?:\d{10,}|-?\d+, ?[0-3], ?-?\d+, ?\d+\])", "a timeline of PyTorch's memory", _TORCH),
    (r"\Abenchmark,device,device name,", "a CSV of NVBench", "its JSON is read: run the benchmark with --json FILE"),
    (r"\A# devices\s+## \[\d+\] ", "what NVBench prints", "its JSON is read: run the benchmark with --json FILE"),
    (
        r"^(?:name,iterations,real_time,cpu_time,time_unit|benchmark +time +cpu +iterations|run on \(\d+ x )",
        "what Google Benchmark prints",
        "its JSON is read: --benchmark_out=FILE --benchmark_out_format=json",
    ),
    (
        r"\A(?:command,(?:mean,stddev|\w+_unit),|\| command +\| +mean|\[cols=.<,>,>|benchmark #?1: )|^ +time \(mean ± ",
        "what hyperfine prints",
        "its JSON is read: hyperfine --export-json FILE COMMAND",
    ),
    (
        r"\Aname,(?:param:[^,\n]*,)*min,max,mean,stddev,|^-+ benchmark[^\n]*: \d+ tests",
        "what pytest-benchmark prints",
        "its JSON is read: pytest --benchmark-json=FILE",
    ),
    (r'\A\{\s*"benchmarks"\s*:\s*\[\s*\{\s*"(?:runs"\s*:\s*\[\s*\{|metadata"\s*:\s*\{)', "JSON of pyperf", _MEASURE),
    (r'\A\{\s*"version": "1\.\d",\s+"metadata": \{', "JSON of pyperf", _MEASURE),
    (r"speedscope\.app/file-format-schema", "a profile for speedscope, without times of kernels", _PROFILE),
    (r"\A[^{\[]{0,12}/(?:host|device|task):", "a profile of XLA (xplane.pb)", _PROFILE),
    *((pattern, _HOST.format(tool), _PROFILE) for tool, pattern in _PROFILERS),
    (r'\A\x04"m\x18', "packed with lz4", "unpack it: lz4 -d FILE"),
    *((pattern, _BENCHMARKS.format(tool), _RECORD) for tool, pattern in _BENCHMARK_TOOLS),
    (
        r'\A\{\s*"[\w.]+"\s*:\s*\{\s*"(?:code|goal_time|name)"(?s:.)*"(?:param_names|params|timeout)"',
        "asv's list of benchmarks, without times",
        "name a file of results: .asv/results/MACHINE/COMMIT-ENVIRONMENT.json",
    ),
    (r"\A\x80(?s:.)*torch\.utils\.benchmark", "a pickle of torch.utils.benchmark, which is never opened", _MEASUREMENT),
    (r"\A\x80[\2-\5]", "a pickle of Python, which is never opened", _NO_PICKLE),
    (r'\A\{\s*"arch"\s*:(?s:.)*"machine"\s*:(?s:.)*"ram"\s*:', "what asv wrote of a machine", _BESIDE),
    (r'\A[^\n]*\bkernel[_ ]?name"?[,;\t]', "a table of kernels, in another form than ncu and rocprof write it", _AGAIN),
)


@cache
def _patterns() -> tuple[tuple[re.Pattern[bytes], str, str], ...]:
    """Return the patterns, compiled when the first unreadable file is met."""
    return tuple((re.compile(pattern.encode(), re.MULTILINE), what, fix) for pattern, what, fix in _TABLES)
