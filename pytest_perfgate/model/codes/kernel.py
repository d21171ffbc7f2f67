"""Error codes of cubins, Nsight Compute and AMD counters."""

from __future__ import annotations

from pytest_perfgate.model.codes.family import Code, Family

_INSTALL = "pip install 'pytest-perfgate[ncu]', or put the CUDA toolkit's bin folder on PATH"

CODES: tuple[Code, ...] = (
    Code(
        name="kernel-tool",
        family=Family.TOOL,
        title="A tool that reads machine code or reports is not installed",
        why="the file cannot be read without it",
        mend=_INSTALL,
    ),
    Code(
        name="kernel-tool-failed",
        family=Family.TOOL,
        title="A tool that reads machine code failed",
        why="nothing it printed can be trusted",
        mend="update nvidia-cuda-nvdisasm and nvidia-cuda-cuobjdump, and report it with the tool's words if it stays",
    ),
    Code(
        name="kernel-none",
        family=Family.ARTIFACT,
        title="A file holds no machine code of a GPU kernel",
        why="a limit on a kernel that is not there would pass in silence",
        mend="name a cubin, a fatbin, an object file of nvcc, or a directory that holds some",
    ),
    Code(
        name="kernel-broken",
        family=Family.ARTIFACT,
        title="A cubin is cut short or damaged",
        why="what can still be read may be half of it",
        mend="build it again",
    ),
    Code(
        name="kernel-stripped",
        family=Family.ARTIFACT,
        title="A cubin was stripped of its symbols",
        why="which code is which kernel, and what it takes, is kept with the symbols",
        mend="hand over the cubin as the compiler wrote it",
    ),
    Code(
        name="kernel-arch",
        family=Family.ARTIFACT,
        title="A kernel is for an architecture that the disassembler or the catalogue does not know",
        why="its registers and instructions would be read wrongly",
        mend="update nvidia-cuda-nvdisasm and nvidia-cuda-cuobjdump, or name a known architecture",
    ),
    Code(
        name="kernel-option",
        family=Family.USAGE,
        title="An option of an inspector does not read",
        why="a launch that was not understood would be judged as another",
        mend="perfgate inspect --help lists the options; a launch reads threads=256, smem=48KiB, arch=sm_90",
    ),
    Code(
        name="ncu-report",
        family=Family.ARTIFACT,
        title="An Nsight Compute report cannot be read",
        why="it is cut short, of a newer version, or something else",
        mend="write it again, or export it with `ncu --import FILE --csv --page raw`",
    ),
    Code(
        name="ncu-permission",
        family=Family.PERMISSION,
        title="The driver does not let this user read performance counters (ERR_NVGPUCTRPERM)",
        why="ncu measures nothing without them",
        mend="as root: echo 'options nvidia NVreg_RestrictProfilingToAdminUsers=0' > /etc/modprobe.d/perf.conf, "
        "then reload the driver; in a container add --cap-add=SYS_ADMIN",
    ),
    Code(
        name="ncu-nothing",
        family=Family.ARTIFACT,
        title="ncu profiled no kernel",
        why="the region launched none, or it was filtered out",
        mend="enter the region around the launches, and synchronise before leaving it",
    ),
    Code(
        name="rocprof-csv",
        family=Family.ARTIFACT,
        title="A CSV of rocprof cannot be read",
        why="its columns are of no known version",
        mend="write it with rocprofv3 --output-format csv, and give the file as it was written",
    ),
    Code(
        name="profile-mode",
        family=Family.USAGE,
        title="No profiler has this name",
        why="a profile that was not taken says nothing",
        mend="use torch, nsys, ncu, cubin or a profiler of a plugin: perfgate doctor lists them",
    ),
    Code(
        name="profile-tool",
        family=Family.TOOL,
        title="A profiler does not work on this machine",
        why="a profile that was not taken says nothing",
        mend="perfgate doctor says what is missing and how to get it",
    ),
    Code(
        name="profile-child",
        family=Family.CHILD,
        title="The test failed under the profiler",
        why="what the profiler saw is not what was asked about",
        mend="run the test without a profiler first; the log is in the folder of the profile",
    ),
)
