"""Error codes: traces, nsys, kernels."""

from __future__ import annotations

from pytest_perfgate.model.codes import codes_of

TRACE_CODES = codes_of(
    ARTIFACT={
        "trace-unreadable": (
            "A trace cannot be read from disk",
            "perfgate cannot open or unpack the file",
            "check the path; copy the file again if it came over a network",
        ),
        "trace-truncated": (
            "A trace ends in the middle",
            "its last events are missing, so totals, overlap and idle time would be wrong",
            "profile again and let the profiler's context end before the process exits",
        ),
        "trace-trailing": (
            "Something else follows a trace in its file",
            "two writes to one file cause this, and the first may be the older one",
            "copy the file again from where it was made; gzip -t FILE tells whether a packed one is whole",
        ),
        "trace-encoding": (
            "A trace is text of another encoding",
            "a trace is UTF-8, as the profiler writes it; something has converted this one since",
            "copy the file again as the profiler wrote it, or convert it: iconv -f UTF-16 -t UTF-8",
        ),
        "trace-foreign": (
            "A list of trace events has no event of PyTorch",
            "an event of an unknown category may be GPU or host work: a figure of it would be a guess",
            "give a trace of torch.profiler (export_chrome_trace), or profile the program with nsys, ncu or rocprofv3",
        ),
        "trace-durations": (
            "Too many GPU events of a trace have no readable duration",
            "a negative or overflowed duration says nothing: busy time, overlap and idle time would be guesses",
            "profile again with a newer PyTorch, or fewer steps; or accept the guess with --set floor=0.5",
        ),
        "trace-malformed": (
            "A trace is not JSON, even after known defects of writers are repaired",
            "what follows the broken byte cannot be trusted",
            "check the byte that the message names, or export the trace again",
        ),
        "trace-two-documents": (
            "A file holds more than one trace, or one trace twice",
            "two traces written to one file overlap in time and would be added up",
            "write one file a rank: put the rank into the file's name",
        ),
        "trace-not-a-trace": (
            "A JSON file has no list of trace events",
            "perfgate finds nothing to measure in it",
            "give a file written by torch.profiler's export_chrome_trace or tensorboard_trace_handler",
        ),
        "trace-empty": (
            "A trace holds no event with a duration",
            "without events every figure would read as zero",
            "profile at least one step; with a schedule, let an active step finish",
        ),
        "trace-memory": (
            "A file does not fit this machine's memory",
            "a trace takes about half of its unpacked size, in one process or two; a comparison holds both",
            "profile fewer steps, raise the limit of the process, or look at it on a larger machine",
        ),
        "trace-window": (
            "A window matches nothing in the trace",
            "the figures of an empty window would keep every limit",
            "name a step or annotation that the trace has",
        ),
        "trace-no-operation": (
            "No operation of that name is in the trace",
            "perfgate has nothing to print, replay or judge",
            "perfgate inspect FILE --view all shows the operations of the trace",
        ),
        "trace-ranks": (
            "Several files claim one rank",
            "adding them up would count the rank twice",
            "give each rank's file once",
        ),
        "trace-coverage": (
            "Too little of the GPU time is linked to a launch",
            "figures by operator would cover only a part of the work",
            "record CPU activities too and start the profiler before the step; or check without links: --set floor=0",
        ),
    },
    USAGE={
        "trace-option": (
            "An option of the trace inspector has a wrong value",
            "",
            "docs/options.md lists the options of each kind of file",
        ),
    },
    TOOL={
        "cluster-tool": (
            "The cluster for reading traces does not answer",
            "reading thousands of files here instead could take hours and the machine's memory",
            "start a scheduler and workers with this package on them, or leave out workers=",
        ),
        "cluster-lost": (
            "Workers of the cluster died while they read a file",
            "the figures of its rank are missing, and a job without one of its ranks would be judged as another job",
            "give workers more memory (dask worker --memory-limit), or read the file alone: perfgate inspect FILE",
        ),
        "torch-tool": (
            "PyTorch's profiler cannot run here",
            "without the capture there is no figure to check",
            "perfgate doctor says what is missing; choose another capture, or install a torch with Kineto",
        ),
    },
)

NSYS_CODES = codes_of(
    ARTIFACT={
        "nsys-missing": (
            "The export is not there, empty, or cannot be read",
            "",
            "name a file written by: nsys export --type=sqlite REPORT.nsys-rep",
        ),
        "nsys-not-export": (
            "The file is not an SQLite export of Nsight Systems",
            "overlap is computed from tables that only the SQLite export has",
            "nsys export --type=sqlite --output=REPORT.sqlite REPORT.nsys-rep",
        ),
        "nsys-schema": (
            "The export has tables or columns of no known version",
            "without these columns the figures would be guesses",
            "export the report again, whole: nsys export --type=sqlite --force-overwrite=true REPORT.nsys-rep",
        ),
        "nsys-damaged": (
            "The export is cut short or damaged",
            "figures from half a file would be wrong without a sign of it",
            "export it again: nsys export --type=sqlite --force-overwrite=true REPORT.nsys-rep",
        ),
        "nsys-unfinished": (
            "The export has changes that lie in a journal beside it",
            "the file is opened read-only and would be read without them",
            "wait for the writer to finish, then: sqlite3 FILE 'PRAGMA wal_checkpoint(TRUNCATE)'",
        ),
        "nsys-no-kernels": (
            "The export has no GPU kernels",
            "overlap, exposure and idle time are figures of kernels",
            "capture with: nsys profile --trace=cuda,nvtx … and check that the capture range held GPU work",
        ),
        "nsys-graphs": (
            "CUDA graphs hide the kernels",
            "a graph was traced as one block, so what ran inside it cannot be told apart",
            "capture with: nsys profile --cuda-graph-trace=node …",
        ),
        "nsys-unlinked": (
            "The launches of too many communication kernels were not recorded",
            "the stage of a kernel follows from the place of its launch",
            "capture the CUDA runtime too: nsys profile --trace=cuda,nvtx …",
        ),
        "nsys-silent": (
            "A rank or a stage has no communication",
            "without communication the overlap is neither 0 nor 100 %",
            "name a window, a rank or a stage that communicates, or drop the limit on it",
        ),
        "nsys-ranks": (
            "Two files or processes claim the same rank",
            "their rows would be added up as one",
            "give each file of one job once; files of two jobs are compared with: perfgate compare BEFORE AFTER",
        ),
        "nsys-scrub": (
            "An export could not be scrubbed",
            "the file may still hold the environment",
            "do not share the file; export the report again, and scrub that export",
        ),
    },
    USAGE={
        "nsys-anchor": (
            "No NVTX range matches the anchor",
            "another window would be used than you asked for",
            "perfgate inspect FILE --view list names the views; a pattern may hold * and ?",
        ),
        "nsys-window": (
            "The window holds no kernel, or is not a start and an end",
            "without a window there is no figure",
            "name a step, an anchor, or --start and --end such as 1.5ms, in which kernels ran",
        ),
        "nsys-option": (
            "An option for an nsys export has a wrong value",
            "",
            "docs/options.md lists the options of each kind of file",
        ),
    },
    TOOL={
        "nsys-report": (
            "A report must be exported first, and nsys failed or is not on the PATH",
            "the report's own format is not published; only nsys reads it",
            "put nsys on the PATH, or export the report where nsys is: nsys export --type=sqlite REPORT.nsys-rep",
        ),
        "nsys-tool": (
            "nsys is missing or too old for a capture",
            "older versions lack --capture-range-end or node-level graph tracing",
            "install Nsight Systems 2022.2 or newer, or put it behind the launcher",
        ),
    },
    CHILD={
        "nsys-child": (
            "The run under nsys failed or took too long",
            "",
            "run the test without the capture first, then raise timeout in [tool.perfgate]",
        ),
    },
)

_INSTALL = "pip install 'pytest-perfgate[ncu]', or put the CUDA toolkit's bin folder on PATH"

KERNEL_CODES = codes_of(
    TOOL={
        "kernel-tool": (
            "A tool that reads machine code or reports is not installed",
            "the file cannot be read without it",
            _INSTALL,
        ),
        "kernel-tool-failed": (
            "A tool that reads machine code failed",
            "its output cannot be trusted",
            "update nvidia-cuda-nvdisasm and nvidia-cuda-cuobjdump; if that does not help, report it with its output",
        ),
        "profile-tool": (
            "A profiler does not work on this machine",
            "without a profile there is no figure to check",
            "perfgate doctor says what is missing and how to get it",
        ),
    },
    ARTIFACT={
        "kernel-none": (
            "A file holds no machine code of a GPU kernel",
            "a limit on a kernel that does not exist would pass without a check",
            "name a cubin, a fatbin, an object file of nvcc, or a directory that holds some",
        ),
        "kernel-broken": (
            "A cubin is cut short or damaged",
            "the readable part may be half of it",
            "build it again",
        ),
        "kernel-stripped": (
            "A cubin was stripped of its symbols",
            "the symbols tell which code belongs to which kernel",
            "give the cubin as the compiler wrote it",
        ),
        "kernel-arch": (
            "A kernel is for an architecture that the disassembler or the catalogue does not know",
            "its registers and instructions would be read wrongly",
            "update nvidia-cuda-nvdisasm and nvidia-cuda-cuobjdump, or name a known architecture",
        ),
        "ncu-report": (
            "An Nsight Compute report cannot be read",
            "it is cut short, of a newer version, or something else",
            "write it again, or export it with `ncu --import FILE --csv --page raw`",
        ),
        "ncu-nothing": (
            "ncu profiled no kernel",
            "the region launched none, or it was filtered out",
            "enter the region around the launches, and synchronise before leaving it",
        ),
        "rocprof-csv": (
            "A CSV of rocprof cannot be read",
            "its columns are of no known version",
            "write it with rocprofv3 --output-format csv, and give the file as it was written",
        ),
    },
    USAGE={
        "kernel-unmatched": (
            "No kernel of a file has this name",
            "a limit on a kernel that does not exist would pass without a check",
            "perfgate inspect FILE lists the kernels; a part of a name selects all that hold it",
        ),
        "kernel-option": (
            "An option of an inspector has a wrong value",
            "with a wrong value the figures would be those of another launch, build or device",
            "docs/options.md lists the options; a launch is threads=256, smem=48KiB, arch=sm_90",
        ),
        "profile-mode": (
            "No profiler has this name",
            "without a profile there is no figure to check",
            "use torch, nsys, ncu, cubin or a profiler of a plugin: perfgate doctor lists them",
        ),
    },
    PERMISSION={
        "ncu-permission": (
            "The driver does not let this user read performance counters (ERR_NVGPUCTRPERM)",
            "ncu measures nothing without them",
            (
                "as root: echo 'options nvidia NVreg_RestrictProfilingToAdminUsers=0' > /etc/modprobe.d/perf.conf, "
                "then reload the driver; in a container add --cap-add=SYS_ADMIN"
            ),
        ),
    },
    CHILD={
        "profile-child": (
            "The test failed under the profiler",
            "the profile is not one of a passing test",
            "run the test without a profiler first; the folder of the profile has the log",
        ),
    },
)
