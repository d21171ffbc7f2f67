"""Tests of core/analysis/foreign_files."""

from __future__ import annotations

import cProfile
import gzip
from pathlib import Path

import pytest

from pytest_perfgate.app.inspections import unknown
from pytest_perfgate.app.inspections.kineto import TABLES
from pytest_perfgate.core.analysis.foreign_files import foreign
from pytest_perfgate.core.trace_kinds import VIEWS, view_lines
from pytest_perfgate.wiring.built_ins import BuiltIns, benchmarks_of


@pytest.mark.parametrize("head", [b"\x04\x22\x4d\x18", b"\x5d\0\0\x80", b"\xff\x06\0\0sNaPpY"])
def test_other_packings_are_known_by_their_first_bytes(head):
    what, fix = foreign(head + b"\0" * 99)
    assert what.startswith("is packed with ")
    assert fix.startswith("unpack it")


@pytest.mark.parametrize(
    ("head", "what", "fix"),
    [
        (b"PK\x03\x04rest", "is a zip archive", "unzip"),
        (b"\x28\xb5\x2f\xfdrest", "is packed with zstd", "zstd -d"),
        (b"<!DOCTYPE html><title>Sign in</title>", "is an HTML page", "login or error"),
        (b"\xef\xbb\xbf\n<html>", "is an HTML page", "login or error"),
        (b"<?xml version='1.0'?><Error><Code>NoSuchKey", "is an XML document", "object storage sends XML"),
        (b"<?xml version='1.0'?><testsuites><testsuite name='pytest'>", "is an XML document", ""),
        (b"\x03\x02\x23\x07\0\4\1\0", "is SPIR-V", "torch.profiler"),
        (b"<?xml version='1.0'?><!DOCTYPE svg><svg width='1'>", "is a picture (SVG)", "made of"),
        (b"version https://git-lfs.github.com/spec/v1", "is a pointer of Git LFS", "git lfs pull"),
        (b"x" * 257 + b"ustar", "is a tar archive", "tar -xf"),
        (gzip.compress(b"x" * 257 + b"ustar", mtime=0), "is a gzip file, and inside a tar archive", "tar -xf"),
        (
            gzip.compress(gzip.compress(b"{}", mtime=0), mtime=0),
            "is a gzip file, and inside another gzip file",
            "gunzip",
        ),
        (gzip.compress(b'[{"jmhVersion": "1"}]', mtime=0), "is a gzip file, and inside a result of another", "metric("),
        (gzip.compress(b"<html>", mtime=0), "is a gzip file, and inside an HTML page", "login or error"),
        (gzip.compress(b'{"a": 1}', mtime=0), "is a gzip file, and inside JSON that is not a trace", ""),
        (gzip.compress(b"SQLite format 3\0", mtime=0), "is a gzip file, and inside an SQLite database", "gunzip"),
        (b"\x89HDF\r\n\x1a\n", "is an HDF5 file", "--type=sqlite"),
        (b"BC\xc0\xde5\x14", "is bitcode of LLVM", "FILE.cubin"),
        (b"PAR1\x15", "is a Parquet file", "--type=sqlite"),
        (b"ARROW1\0\0", "is an Arrow file", "--type=sqlite"),
        (b"\xff\xff\xff\xff\xa8\1", "is an Arrow stream", "--type=sqlite"),
        (b"U3w[END]NVIDIA Nsight Systems Stream 2022.4", "is a capture that nsys has not", "QdstrmImporter"),
        (b'{"data":["[Unknown]","[kernel.kallsyms]"]}', "is a text export of nsys", "--type=sqlite"),
        (b'data: "[Unknown]"\ndata: "[kernel.kallsyms]"\n', "is a text export of nsys", "--type=sqlite"),
        (b'{\n    "VmSystemInformation": [\n', "is a text export of nsys", "--type=sqlite"),
        (b"Time (%),Total Time (ns)", "is a table of nsys stats", "--type=sqlite"),
        (b",rank,idle_time(us),compute_time(us)\n0,0,552069.0", "is a table of HTA", "the traces"),
        (
            gzip.compress(b"\n\4\b\1\x10\2\n\4\b\3\x10\4", mtime=0),
            "is a gzip file, and inside output of a profiler of the host",
            "nsys",
        ),
        ('{"a": 1}'.encode("utf-16"), "is text in UTF-16", "iconv"),
        ('{"a": 1}'.encode("utf-16-be"), "is text in UTF-16", "iconv"),
        (gzip.compress(b"", mtime=0), "is an empty gzip file", "copy it again"),
    ],
)
def test_first_bytes_tell_what_a_file_is(head: bytes, what: str, fix: str) -> None:
    sentence, next_ = foreign(head)
    assert sentence.startswith(what)
    assert fix in next_


TEXTS = (
    ('"Time (%)","Total Time (ns)","Instances","Name"', "a table of nsys stats", "--type=sqlite"),
    ("\nTime(%),Total Time (ns),Instances,Average,Name", "a table of nsys stats", "--type=sqlite"),
    ("Generating SQLite file a.sqlite\r\n\r\nTime (%),Total Time (ns),Name\r\n", "a table of nsys stats", "sqlite"),
    (" ** CUDA GPU Summary (cuda_gpu_sum):\n\n Time (%)  Total Time (ns)\n", "what nsys stats prints", "--type=sqlite"),
    ("Start (ns),Duration (ns),CorrId,Name", "a table of nsys stats", "--type=sqlite"),
    ('[ {"Time (%)": 100.0, "Name": "k"} ]', "a table of nsys stats", "--type=sqlite"),
    *(
        (text, "a table of nsys stats", "--type=sqlite")
        for text in (
            '[{"NVTX Range":":a"}]',
            '[{"Total (MB)":1.0}]',
            '[\n{"API Start (ns)":1}]',
            '[{"CPU Page Faults":1}]',
        )
    ),
    *(
        (text, "a table of nsys stats", "--type=sqlite")
        for text in (
            "Virtual Address,HtoD Migration Size (MB),DtoH Migration Size (MB)",
            '"Virtual Address","HtoD Migration Size (MB)"',
            "CPU Page Faults,CPU Instruction Address",
            "Total HtoD Migration Size (MB),Total DtoH Migration Size (MB)",
            "Row#,Duration (ns),Start (ns),PID,Device ID",
            '[{"Virtual Address":"0x1"}]',
        )
    ),
    ('{"Type":48,"CudaEvent":{"startNs":"1"}}\n', "a text export of nsys", "--type=sqlite"),
    ("Total (MB),Count,Avg (MB),Med (MB),Operation", "a table of nsys stats", "--type=sqlite"),
    ("Name,Projected Start (ns),Projected Duration (ns)", "a table of nsys stats", "--type=sqlite"),
    ("Range\tStyle\tTotal Proj Time (ns)", "a table of nsys stats", "--type=sqlite"),
    ("NVTX Range,Style,PID,TID,NVTX Inst,Kern Inst", "a table of nsys stats", "--type=sqlite"),
    ("PID,TID,DevId,Count,QCount,TAvg (ns),TMed (ns)", "a table of nsys stats", "--type=sqlite"),
    ("API Start (ns),API Dur (ns),Queue Start (ns)", "a table of nsys stats", "--type=sqlite"),
    ("==7== NVPROF is profiling process 7", "what nvprof printed", "nsys or ncu"),
    ("[ 1%] Building k.o\nptxas info    : Used 8 registers", "a compiler's report", "name the compiled file"),
    ('\t.amdgcn_target "amdgcn-amd-amdhsa--gfx942"\n\t.text\n', "a compiler's text for a GPU of AMD", "_trace.csv"),
    (
        '#b = #ttg.blocked<{}>\nmodule attributes {ttg.target = "hip:gfx942"} {',
        "a compiler's text for a GPU of AMD",
        "csv",
    ),
    ("; ModuleID = 'M'\ntarget triple = \"amdgcn-amd-amdhsa\"\n", "a compiler's text for a GPU of AMD", "_trace.csv"),
    ("Fatbin elf code:\n====\narch = sm_90", "text that cuobjdump or nvdisasm printed", "name the compiled file"),
    *(
        (text, "text that cuobjdump or nvdisasm printed", "name the compiled file")
        for text in (
            "\n64-bit ELF: type=ET_EXEC, ABI=8, sm=90\n",
            "ELF file    1: k.1.sm_80.cubin\n",
            'digraph f {\nsubgraph "cluster_k" {\n',
            '[{"ELF":{"layout-id":4},"SM":{}}]',
        )
    ),
    ('\t.headerflags\t@"EF_CUDA_SM90"\n', "text that cuobjdump or nvdisasm printed", "name the compiled file"),
    ('"Kind","Direction","Source_Agent_Id"', "a table of rocprof that has no times of kernels", "_kernel_trace.csv"),
    ('"Domain","Function","Process_Id"', "a table of rocprof that has no times of kernels", "_kernel_trace.csv"),
    ('"Sample_Timestamp","Exec_Mask","Dispatch_Id"', "a table of rocprof that has no times of kernels", "_trace.csv"),
    ('{"omnitrace": {"wall_clock": {"properties": {}}}}', "a summary of rocprof-sys", "--output-format csv"),
    ("workload_name,command,ip_blocks\na,./a,SQ\n", "a table of rocprof that has no times of kernels", "pmc_perf.csv"),
    ('{"rocprofiler-sdk-tool":[{}]}', "JSON of rocprofv3", "--output-format csv"),
    ('{"schema": "1.1", "pid": 3, "nodes": []}', "an execution trace of PyTorch", "export_chrome_trace"),
    (
        "-----\n  Name    Self CPU %    Self CPU    # of Calls\n",
        "a table that PyTorch's profiler",
        "export_chrome_trace",
    ),
    ("name,sum (us),max (us),min (us),stddev,mean (us),kernel_type,rank\n", "a table of HTA", "the traces"),
    *(
        (text, "a table of TraceLens", "the traces")
        for text in (
            "name,param: M,param: N,param: K,GFLOPS_first,Data Moved (MB)_first\n",
            "name,op category,process_name,process_label,thread_name,Input Dims\n",
            "name,total_direct_kernel_time_sum,total_subtree_kernel_time_sum\n",
            "op category,Count,total_direct_kernel_time_ms,Percentage (%)\n",
            "Parent op category,Parent cpu_op,Kernel name,Kernel stream\n",
            "Parent cpu_op,Input dims,Input strides,Concrete Inputs,Kernel name\n",
        )
    ),
    ("# austin: 3.7.0\n# mode: wall\n\nP1;T0x1;w.py:fib:2 1234\n", "output of a profiler of the host", "nsys, ncu"),
    ('[{"children": [{"frame": {"name": "k"}}]}]', "a call tree of Triton's Proton", "torch.profiler"),
    ("Benchmark,Device,Device Name,N,Skipped", "a CSV of NVBench", "--json FILE"),
    ("# Devices\n\n## [0] `GPU`\n", "what NVBench prints", "--json FILE"),
    ("name,iterations,real_time,cpu_time,time_unit", "what Google Benchmark prints", "--benchmark_out=FILE"),
    ("-----\nBenchmark      Time      CPU  Iterations\n", "what Google Benchmark prints", "--benchmark_out=FILE"),
    ("2026-01-01T00:00:00\nRun on (8 X 3400 MHz CPU s)\n{}", "what Google Benchmark prints", "--benchmark_out=FILE"),
    ('{"arch": "x", "machine": "box", "ram": "8G"}', "what asv wrote of a machine", "beside it"),
    (
        '{\n "suite.time_a": {\n  "code": "def time_a()", "params": []}}',
        "asv's list of benchmarks",
        "a file of results",
    ),
    ("Time (%)\tTotal Time (ns)\tInstances\tName", "a table of nsys stats", "--type=sqlite"),
    ('"Type","Time(%)","Time","Calls"', "what nvprof printed", "nsys or ncu"),
    (
        "Function:k\n\t//## File 'a.py'\n        /*0000*/    LDC R1, c[0x0][0x28] ;",
        "text that cuobjdump or nvdisasm printed",
        "name the compiled file",
    ),
    ("#blocked = #ttg.blocked<{order = [0]}>\n", "an intermediate form of a compiler", "FILE.cubin"),
    ('#loc = loc("k.py":1:0)\nmodule {\n', "an intermediate form of a compiler", "FILE.cubin"),
    ("//\n// Generated by LLVM\n//\n\n.version 7.0\n.target sm_80\n.address_size 64\n", "PTX", "ptxas -arch"),
    ('target triple = "nvptx64-nvidia-cuda"\n', "an intermediate form of a compiler", "FILE.cubin"),
    ("; ModuleID = 'LLVMDialectModule'\n", "an intermediate form of a compiler", "FILE.cubin"),
    ("[[1795707952186173, 1795707952186174], [[0, 1]]]", "a timeline of PyTorch's memory", "export_chrome_trace"),
    ("[[-1, 1, 32768, 0], [-1, 1, 512, 0]]", "a timeline of PyTorch's memory", "export_chrome_trace"),
    ("NAME,Calls,DURATION (nsec),AVERAGE (nsec),PERCENT (INC)\n", "a summary of rocprofv3", "_kernel_trace.csv"),
    ('{"$schema":"https://www.speedscope.app/file-format-schema.json"', "a profile for speedscope", "torch.profiler"),
    ("\n\x90\x80\x02\b\x01\x12\t/host:CPU\x1a", "a profile of XLA", "torch.profiler"),
    ('\n\xb0\x17\x12\x0e/host:metadata"\xbf\x06\b\x01', "a profile of XLA", "torch.profiler"),
    ('[{"jmhVersion": "1.37"}]', "a result of another benchmark tool", "perfgate.metric"),
    (
        '{"Title": "x", "HostEnvironmentInfo": {"BenchmarkDotNetCaption": ""}}',
        "a result of another benchmark",
        "perfgate.metric",
    ),
    ('{"mean":{"confidence_interval":{}}}', "a result of another benchmark tool", "perfgate.metric"),
    ('{"results": [{"median(elapsed)": 9.5e-09}]}', "a result of another benchmark tool", "perfgate.metric"),
    ("goos: linux\nBenchmarkFoo-8   \t 1000\t 1234 ns/op\n", "a result of another benchmark tool", "perfgate.metric"),
    *(
        (text, "a result of another benchmark tool", "perfgate.metric")
        for text in (
            "fib 20    time:   [26.029 µs 26.251 µs 26.505 µs]\n",
            "running 1 test\ntest fib ... bench:       1,234 ns/iter (+/- 56)\n",
            "group,function,value,throughput_num,throughput_type,sample_measured_value,unit,iteration_count\n",
            "Fibonacci\n----\nbenchmark name      samples      iterations    est run time\n",
            '<?xml version="1.0"?>\n<Catch2TestRun name="tests" catch2-version="3.5.2">\n',
            '{\n  "version": 1, "metadata": {"catch2-version": "3.5.2"}}',
            '"title";"name";"unit";"batch";"elapsed";"error %"\n',
            "\n|    ns/op |    op/s |    err% |     total | benchmark\n",
            "| relative |    ms/byte |    byte/s |\n",
            "# Collective test starting: all_reduce_perf\n# nThread 1 nGpus 8 minBytes 8 maxBytes 64\n",
            '{"version":1,"start_time":"2026-01-01 10:00:00","args":["all_reduce_perf"],"env":["A=b"]',
            "Problem,Provider,OperationKind,Operation,Disposition,Status,m,n,k,Runtime\n",
            "\n======\n  Problem ID: 1\n\n        Provider: CUTLASS\n",
            "============ Serving Benchmark Result ============\n",
            '{"date": "20260101-101010", "backend": "vllm", "request_rate": "inf", "mean_ttft_ms": 12.1}',
            '{"tag": null, "backend": "sglang", "request_rate": Infinity, "duration": 12.3}\n',
            '{\n    "avg_latency": 1.2,\n    "latencies": [1.1]\n}',
        )
    ),
    ("command,time_wall_clock_unit,time_wall_clock_mean,parameter_n\n", "what hyperfine prints", "--export-json"),
    ("command,mean,stddev,median,user,system,min,max\n", "what hyperfine prints", "--export-json"),
    ("| Command | Mean [ms] | Min [ms] |\n", "what hyperfine prints", "--export-json"),
    ("name,min,max,mean,stddev,median,iqr,outliers\n", "what pytest-benchmark prints", "--benchmark-json"),
    ("name,param:n,min,max,mean,stddev,median,iqr\n", "what pytest-benchmark prints", "--benchmark-json"),
    ("....\n\n---- benchmark 'g': 4 tests ----\nName\n", "what pytest-benchmark prints", "--benchmark-json"),
    ('{"benchmarks": [{"runs": [{"metadata": {}}]}], "version": "1.0"}', "JSON of pyperf", "pytest-benchmark"),
    ('{\n "version": "1.0",\n "metadata": {\n  "unit": "second"', "JSON of pyperf", "pytest-benchmark"),
    *(
        (text, "a table of kernels, in another form", "as the profiler wrote it")
        for text in (
            ",ID,Process ID,Kernel Name,Metric Name,Metric Unit,Metric Value\n0,0,7,k,Duration,us,1.2\n",
            '"Index";"KernelName";"gpu-id";"grd";"wgr";"BeginNs";"EndNs"\n',
            "Kind\tKernel_Name\tStart_Timestamp\tEnd_Timestamp\n",
        )
    ),
    ("\x80\x04x", "a pickle of Python", "export_chrome_trace"),
    (
        '\x80\x04\x8c"torch.utils.benchmark.utils.common\n',
        "a pickle of torch.utils.benchmark",
        "perfgate.record(measurement.times",
    ),
    ('{\n  "mean": {\n    "confidence_interval": {', "a result of another benchmark tool", "perfgate.metric"),
    ('{"sampling_mode":"Linear","iters":[1.0]', "a result of another benchmark tool", "perfgate.metric"),
    ('{"reason":"benchmark-complete","id":"fib"', "a result of another benchmark tool", "perfgate.metric"),
    ("main (a.py:8);work (a.py:3) 412\nmain (a.py:8) 3\n", "output of a profiler of the host", "nsys, ncu"),
    ("python;_start;[unknown];work 120\n", "output of a profiler of the host", "nsys, ncu"),
    ("python 1234 1234.5678:     250000 cycles:u: \n", "output of a profiler of the host", "nsys, ncu"),
    ("\n Performance counter stats for './a.out':\n", "output of a profiler of the host", "nsys, ncu"),
    ("# To display\n#\n# Samples: 1K of event 'cycles'\n", "output of a profiler of the host", "nsys, ncu"),
    ('{"counter-value" : "1.0", "unit" : "msec"}', "output of a profiler of the host", "nsys, ncu"),
    ('{"interval" : 1.0, "counter-value" : "1.0", "unit" : "msec"}', "output of a profiler of the host", "nsys, ncu"),
    (
        "# started on Sat\n\n1.23,msec,task-clock:u,1230000,100.00,0.99,CPUs\n",
        "output of a profiler of the host",
        "ncu",
    ),
    ("<not counted>,,cycles,0,0.00,,\n", "output of a profiler of the host", "nsys, ncu"),
    ("# tracer: nop\n#\n", "output of a profiler of the host", "nsys, ncu"),
    ("PERFILE2h", "output of a profiler of the host", "nsys, ncu"),
    *(
        (text, f"output of a profiler of the host ({tool})", "nsys, ncu")
        for tool, text in (
            ("perf", "# started on Mon\n\n     0.127125933,0.80,msec,task-clock,795431,100.00,0.008,CPUs utilized\n"),
            ("perf", "# started on Mon\n\n0.55;msec;task-clock;552360;100.00;0.015;CPUs utilized\n"),
            ("perf", '# started on Mon\n\n{"counter-value" : "0.65", "unit" : "msec"}\n'),
            ("perf", '{\n\t"linux-perf-json-version": 1,\n'),
            ("pprof", "h\xf6\xea\x86\xb2\xdf\xa0\xba\xf6\x18\n\x04\x08\x01\x10\x02"),
            ("pprof", "File: x.test\nType: cpu\n      flat  flat%   sum%        cum   cum%\n"),
            ("memray", '\x04"M\x18@@\xc0\x9a7\0\0\xfa\x04memray\0'),
            ("memray", "allocator,num_allocations,size,tid,thread_name,stack_trace\n"),
            ("pyinstrument", '{"start_time": 1.5, "duration": 1.0, "min_interval": 0.001, "sample_count": 184}'),
            ("pyinstrument", "  _     ._   __/__\n /_//_/// /_\\ / //_// / //_'/ //     Duration: 1.006\n"),
            ("cProfile", "         2620530 function calls in 1.004 seconds\n"),
            ("python -X importtime", "import time: self [us] | cumulative | imported package\n"),
            ("Node.js or Chrome", '{"nodes":[{"id":1,"callFrame":{"functionName":"(root)"'),
            ("Node.js or Chrome", '{"head":{"callFrame":{"functionName":"(root)"'),
            ("Go's execution tracer", "go 1.19 trace\0\0\0"),
            ("Java Flight Recorder", "FLR\0\0\2"),
            ("gprof", "gmon\1\0\0\0"),
            ("gprof", "Flat profile:\n\nEach sample counts as 0.01 seconds.\n"),
            ("gperftools", "\0" * 8 + "\3" + "\0" * 15 + "\xe8\3"),
            ("gperftools", "Total: 12 samples\n       8  66.7%  66.7%       12 100.0% f\n"),
            ("gperftools", "--- symbol\nbinary=./a.out\n0x00007f87 main\n"),
            ("gperftools", "events: Hits\n\nfl=(1) a.c\nfn=f\n2 1\n"),
            ("perf or ftrace", "# ========\n# captured on    : Tue Dec  1\n# header version : 1\n"),
            ("perf or ftrace", "# Event 'cpu-clock'\n#\n# Baseline  Delta Abs  Shared Object\n"),
            (
                "perf",
                "         ? (         ): a/1 ... [continued]: execve())\n     7.2 ( 0.020 ms): a/1 brk() = 0x55\n",
            ),
            ("memray", "\xf0\x9f\x93\x8f Total allocations:\n\t43994\n"),
            ("memray", '{"version": 0, "costs": [{"description": "Memory", "unit": "bytes"}], "events": []}'),
            ("Node.js", "Statistical profiling result from isolate-0x1-1-v8.log, (117 ticks, 40 unaccounted)\n"),
            ("valgrind", "==15027== Callgrind, a profiler\n==15027== Using Valgrind-3.19.0 and LibVEX\n"),
            ("valgrind", "-" * 80 + "\nProfile data file 'callgrind.out' (creator: callgrind-3.19.0)\n"),
            ("valgrind", "-" * 80 + "\nI1 cache:         65536 B, 64 B, 4-way associative\n"),
            ("valgrind", "-" * 80 + "\nCommand:            ./a.out\nMassif arguments:   (none)\n"),
            ("valgrind", "desc: I1 cache: 32768 B\ndesc: D1 cache: 32768 B\ncmd: true\nevents: Ir\n"),
            ("valgrind", '{"dhatFileVersion":2\n,"mode":"heap"'),
            ("perf", "python 26472/26472  2897.178580: cpu-clock:ppp: \n\t  fa8f6 unicodekeys\n"),
            ("perf", "# started on Tue\n\n0.63;msec;task-clock;5.81%;633428;100.00;0.025;CPUs utilized\n"),
            ("perf", "# started on Tue\n\nCPU0,156.00,msec,cpu-clock,156007534,100.00,1.098,CPUs utilized\n"),
            ("perf", "S0-D0-C0,2,70,,context-switches,156005269,100.00,448.707,/sec\n"),
            ("yappi", "version: 1\ncreator: yappi\npid: 22731\n"),
            ("yappi", "\nClock type: CPU\nOrdered by: totaltime, desc\n"),
            ("Node.js", "v8-version,11,3,244,8,-node.38,0\n"),
            ("Node.js or Chrome", '{"snapshot":{"meta":{"node_fields":["type","name"'),
            ("strace", '1796066443.455916 execve("/usr/bin/true", ["true"], 0x7ffd /* 35 vars */) = 0\n'),
            ("VTune", "Function / Call Stack,CPU Time,Module\n"),
            ("VTune", "Function\tCPU Time\tCPU Time:Effective Time\n"),
        )
    ),
    *(
        (text, f"a result of another benchmark tool ({tool}), which is not read", "perfgate.record")
        for tool, text in (
            (
                "BenchmarkTools of Julia",
                '[{"Julia":"1.9.3","BenchmarkTools":{"major":1,"minor":0}},[["BenchmarkTools.Trial",',
            ),
            ("benchstat", "goos: linux\n       \xe2\x94\x82    sec/op    \xe2\x94\x82\nPoly-2   1.029m\n"),
            ("benchstat", "name    old time/op  new time/op  delta\nPoly-2   837\xc2\xb5s\n"),
            ("benchstat", "goos: linux\npkg: kern\n,old.txt,,new.txt,,,\n,sec/op,CI,sec/op,CI,vs base,P\n"),
            ("JMH", "# JMH version: 1.37\n# VM version: JDK 21\n"),
            (
                "JMH",
                "Benchmark      (n)   Mode  Cnt   Score    Error  Units\nA.b   8  avgt    5  12.345 ±  0.1  ns/op\n",
            ),
            ("JMH", '"Benchmark","Mode","Threads","Samples","Score"\n'),
            ("BenchmarkDotNet", "```\n\nBenchmarkDotNet v0.14.0, Debian GNU/Linux 12\n"),
            ("BenchmarkDotNet", "| Method | Mean     | Error    |\n|------- |---------:|\n"),
            ("BenchmarkDotNet", "Method,Job,AnalyzeLaunchVariance,EvaluateOverhead\n"),
            ("go test -bench", '{"Time":"2026-11-30T19:22:41Z","Action":"output","Package":"x"}\n'),
            ("pytest-codspeed", '{\n  "creator": {\n    "name": "pytest-codspeed",'),
            ("pyperf", "Mean +- std dev: 12.3 us +- 0.2 us\n"),
            ("richbench", "                    Benchmarks, repeat=5, number=5        \n"),
            ("time", '\tCommand being timed: "./a.out"\n\tUser time (seconds): 0.00\n'),
            ("time", "\nreal\t0m0.096s\nuser\t0m0.011s\nsys\t0m0.000s\n"),
            ("time", "0.01user 0.00system 0:00.07elapsed 12%CPU (0avgtext+0avgdata 1228maxresident)k\n"),
            ("timeit", "100000 loops, best of 5: 2.47 usec per loop\n"),
            ("Vitest", '{\n  "files": [\n    {\n      "filepath": "/x.bench.js",\n      "groups": [\n'),
            ("mitata", '{"layout":[{"name":null,"types":[]}],"benchmarks":[]}'),
            ("mitata", "clk: ~0.25 GHz\ncpu: AMD EPYC\n"),
            ("Tinybench", '[\n {\n  "Task name": "a",\n'),
            ("Tinybench", '[{"name":"a","result":{"state":"completed"'),
            ("Benchmark.js", "RegExp#test x 2,518,298 ops/sec \xc2\xb118.96% (15 runs sampled)\n"),
            ("fio", '{\n  "fio version" : "fio-3.33",\n'),
            ("fio", "3;fio-3.33;r;0;0;4096;215578;53894;19;0;0\n"),
            ("fio", "r: (g=0): rw=read, bs=(R) 4096B-4096B\nfio-3.33\n"),
            ("iperf3", '{\n\t"start":\t{\n\t\t"connected":\t[{\n'),
            ("ab", "This is ApacheBench, Version 2.3 <$Revision$>\n"),
            ("wrk", "Running 1s test @ http://127.0.0.1/\n  1 threads and 2 connections\n"),
            ("autocannon", '{"url":"http://127.0.0.1/","connections":10,"sampleInt":1000'),
            ("siege", '{\t"transactions":\t\t\t           0,\n'),
            ("vegeta", "Requests      [total, rate, throughput]         50, 51.00, 50.9\n"),
            ("oha", '{\n  "summary": {\n    "successRate": 1.0,\n'),
            ("k6", '{"type":"Metric","data":{"name":"http_reqs"'),
            ("k6", '{"root_group": {"name": ""'),
            ("k6", '{\n    "metrics": {\n        "checks": {\n            "fails": 0,\n'),
            ("k6", '{\n    "metrics": {\n        "data_received": {\n            "count": 4267088,\n'),
            ("k6", '{"metrics":{"http_reqs":{"count":302,"rate":16.1}'),
            ("Locust", "Type,Name,Request Count,Failure Count,Median Response Time,Average Response Time\n"),
            ("genai-perf or perf_analyzer", "Metric,avg,min,max,p99,p95,p90,p75,p50,p25\r\n"),
            ("genai-perf or perf_analyzer", "Concurrency,Inferences/Second,Client Send,Server Queue\n"),
            ("genai-perf or perf_analyzer", '{"time_to_first_token": {"unit": "ms", "avg": 45.5}'),
            ("trtexec", "&&&& RUNNING TensorRT.trtexec [TensorRT v8502] # trtexec --onnx=m.onnx\n"),
            ("trtexec", '[\n  { "count" : 100 }\n, { "name" : "conv1", "timeMs" : 12.3, "averageMs" : 0.1 }\n'),
            ("sysbench", "sysbench 1.0.20 (using system LuaJIT 2.1.0-beta3)\n"),
            ("perf bench", "# Running 'sched/pipe' benchmark:\n"),
            ("divan", "bench          fastest       \xe2\x94\x82 slowest       \xe2\x94\x82 median\n"),
            ("OSU micro-benchmarks", "# OSU MPI Latency Test v7.0\n# Size          Latency (us)\n"),
            ("llama-bench", "| model                | size | params | backend    | threads |  test |  t/s |\n"),
            ("llama-bench", '[\n  {\n    "build_commit": "1a2b3c",\n'),
            ("MLPerf", ':::MLLOG {"namespace": "", "time_ms": 1}\n'),
            ("MLPerf", "================================================\nMLPerf Results Summary\n"),
            ("lm-eval", '{\n  "results": {\n    "arc": {\n      "alias": "arc",\n'),
        )
    ),
)


@pytest.mark.parametrize(("text", "what", "fix"), TEXTS)
def test_texts_of_other_tools_are_told_with_what_is_read_of_the_same_run(text: str, what: str, fix: str) -> None:
    sentence, next_ = foreign(text.encode("latin-1"))
    assert sentence.startswith(f"is {what}")
    assert fix in next_


@pytest.mark.parametrize(
    "head",
    [
        *(b"", b"hello", b"\x1f\x8bdamaged", b"\0" * 300, b"size,Triton,Torch\n", b"1.5,ms,2\n", b"<catch>"),
        *(b'{"a": 1}', b'{"root_dir": "/srv"}', b'{"metrics": {"data_loading": 1.2}}', b'{"metrics": {"check": 1}}'),
        *(
            b"function,module,line\n",
            b"metric,avg\n",
            b"real 1\nuser 2\n",
            b"\0" * 24,
            b"total: 3\n",
            b"-" * 80 + b"\n",
        ),
    ],
)
def test_what_they_do_not_tell_is_not_guessed(head: bytes) -> None:
    assert foreign(head) == ("", "")


class Everything:
    """An inspector that recognises any file."""

    name = "rocprof"

    def recognises(self, path: Path, head: bytes) -> bool:
        return bool(path and head)


def test_a_file_of_blanks_is_empty() -> None:
    assert unknown(Path("a.json"), b" \r\n", []).what == "the file is empty"


def test_a_packed_file_is_to_be_unpacked_only_where_what_is_inside_can_be_read() -> None:
    inspectors = [benchmarks_of(tool) for tool in ("nvbench", "google-benchmark", "asv")]
    error = unknown(Path("a.json.gz"), gzip.compress(b'{"context": {"num_cpus": 2}}'), inspectors)
    assert error.fix == "unpack it: gunzip FILE"
    assert error.what == "the file is a gzip file, and inside JSON that is not a trace"
    table = unknown(Path("k.csv.gz"), gzip.compress(b'"Kind","Kernel_Name"'), [Everything()])
    assert (table.what, table.fix) == ("the file is a gzip file", "unpack it: gunzip FILE")
    other = unknown(Path("a.json.gz"), gzip.compress(b'{"a": 1}'), inspectors)
    assert other.fix == "name a file of one of these kinds: nvbench, google-benchmark, asv"


def test_a_profile_of_cprofile_is_named(tmp_path: Path) -> None:
    profile = cProfile.Profile()
    profile.runcall(sorted, [2, 1])
    profile.dump_stats(tmp_path / "run.prof")
    what, fix = foreign((tmp_path / "run.prof").read_bytes())
    assert what == "is a profile of Python's cProfile, without times of kernels"
    assert "rocprofv3" in fix


def test_packets_of_perfetto_are_named_and_lines_of_text_are_not() -> None:
    first, second = b"\xca\x05\x10" + b"u" * 200, b"\x40\x90\x01\x50\x01"
    packets = b"".join(b"\n" + length + body for length, body in ((b"\xcb\x01", first), (b"\x05", second)))
    assert foreign(packets) == ("is a trace of Perfetto (.pftrace)", foreign(b'{"rocprofiler-sdk-tool":')[1])
    assert foreign(b"\n\xcb\xc1\x01" + first + b"u" * 3_000) == foreign(packets), (
        "the first packet is longer than the head"
    )
    assert foreign(b"\n 2 rows\n 2 more\n") == ("", "")
    assert foreign(b"\n" * 90) == ("", "")


def test_source_of_a_kernel_is_told_with_the_command_that_compiles_it() -> None:
    what, fix = foreign(b'#include <cuda.h>\nextern "C" __global__ void __launch_bounds__(128) k(float *a) {\n')
    assert what == "is CUDA source"
    assert "nvcc -cubin" in fix


def test_each_view_of_a_readable_file_says_what_it_shows() -> None:
    names = {name for one in BuiltIns().pytest_perfgate_inspectors() for name in one.views}
    assert names <= VIEWS.keys()
    assert set(TABLES) <= VIEWS.keys(), "of a comparison"
    assert list(view_lines(["ops", "own"])) == ["ops  time by operator", "own"]
    assert list(view_lines([])) == []


def test_a_kind_that_a_person_knows_by_another_name_has_it() -> None:
    kineto = next(one for one in BuiltIns().pytest_perfgate_inspectors() if one.name == "kineto")
    assert (
        unknown(Path("a.json"), b"??", [kineto, benchmarks_of("asv")]).fix
        == "name a file of one of these kinds: PyTorch trace (kineto), asv"
    )
