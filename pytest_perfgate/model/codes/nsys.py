"""Error codes of Nsight Systems exports."""

from __future__ import annotations

from pytest_perfgate.model.codes.family import Code, Family

CODES: tuple[Code, ...] = (
    Code(
        name="nsys-missing",
        family=Family.ARTIFACT,
        title="The export is not there, empty, or cannot be read",
        mend="name a file written by: nsys export --type=sqlite REPORT.nsys-rep",
    ),
    Code(
        name="nsys-not-export",
        family=Family.ARTIFACT,
        title="The file is not an SQLite export of Nsight Systems",
        why="only the SQLite export has the tables that overlap is read from",
        mend="nsys export --type=sqlite --output=REPORT.sqlite REPORT.nsys-rep",
    ),
    Code(
        name="nsys-schema",
        family=Family.ARTIFACT,
        title="The export has other tables or columns than any version that is known",
        why="what is not there would be guessed, and the figures would look like figures",
        mend="export the report again, whole: nsys export --type=sqlite --force-overwrite=true REPORT.nsys-rep",
    ),
    Code(
        name="nsys-damaged",
        family=Family.ARTIFACT,
        title="The export is cut short or damaged",
        why="figures from half a file would look like figures",
        mend="export it again: nsys export --type=sqlite --force-overwrite=true REPORT.nsys-rep",
    ),
    Code(
        name="nsys-unfinished",
        family=Family.ARTIFACT,
        title="The export has changes that lie in a journal beside it",
        why="the file is opened read-only and would be read without them",
        mend="wait for the writer to finish, then: sqlite3 FILE 'PRAGMA wal_checkpoint(TRUNCATE)'",
    ),
    Code(
        name="nsys-no-kernels",
        family=Family.ARTIFACT,
        title="The export has no GPU kernels",
        why="overlap, exposure and idle time are statements about kernels",
        mend="capture with: nsys profile --trace=cuda,nvtx … and check that the capture range held GPU work",
    ),
    Code(
        name="nsys-graphs",
        family=Family.ARTIFACT,
        title="CUDA graphs hide the kernels",
        why="a graph was traced as one block, so what ran inside it cannot be told apart",
        mend="capture with: nsys profile --cuda-graph-trace=node …",
    ),
    Code(
        name="nsys-unlinked",
        family=Family.ARTIFACT,
        title="The launches of too many communication kernels were not recorded",
        why="a stage is told by where a kernel was launched",
        mend="capture the CUDA runtime too: nsys profile --trace=cuda,nvtx …",
    ),
    Code(
        name="nsys-anchor",
        family=Family.USAGE,
        title="No NVTX range matches the anchor",
        why="the window would be another one than was asked for",
        mend="perfgate inspect FILE --view list names the views; a pattern may hold * and ?",
    ),
    Code(
        name="nsys-window",
        family=Family.USAGE,
        title="The window holds no kernel, or does not read as start and end",
        why="a figure without a window is no figure",
        mend="name a step, an anchor, or --start and --end such as 1.5ms, in which kernels ran",
    ),
    Code(
        name="nsys-option",
        family=Family.USAGE,
        title="An option for an nsys export does not read",
        mend="perfgate inspect --help lists the options",
    ),
    Code(
        name="nsys-ranks",
        family=Family.ARTIFACT,
        title="Two files or processes claim the same rank",
        why="their rows would be added up as one",
        mend="give each file of one job once; files of two jobs are compared with: perfgate compare BEFORE AFTER",
    ),
    Code(
        name="nsys-report",
        family=Family.TOOL,
        title="A report has to be exported first and nsys is not on the PATH, or failed",
        why="the report's own format is not published; only nsys reads it",
        mend="put nsys on the PATH, or export the report where nsys is: nsys export --type=sqlite REPORT.nsys-rep",
    ),
    Code(
        name="nsys-tool",
        family=Family.TOOL,
        title="nsys is missing or too old for a capture",
        why="older versions lack --capture-range-end or node-level graph tracing",
        mend="install Nsight Systems 2022.2 or newer, or put it behind the launcher",
    ),
    Code(
        name="nsys-child",
        family=Family.CHILD,
        title="The run under nsys failed or took too long",
        mend="run the test without the capture first, then raise timeout in [tool.perfgate]",
    ),
    Code(
        name="nsys-scrub",
        family=Family.ARTIFACT,
        title="An export could not be scrubbed",
        why="a file that still holds the environment would pass for clean",
        mend="do not pass the file on; export the report again and scrub that",
    ),
)
