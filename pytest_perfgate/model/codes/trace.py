"""Error codes of PyTorch traces."""

from __future__ import annotations

from pytest_perfgate.model.codes.family import Code, Family

CODES: tuple[Code, ...] = (
    Code(
        name="trace-unreadable",
        family=Family.ARTIFACT,
        title="A trace cannot be read from disk",
        why="no figure can be given for a file that does not open or unpack",
        mend="check the path; copy the file again if it came over a network",
    ),
    Code(
        name="trace-truncated",
        family=Family.ARTIFACT,
        title="A trace ends in the middle",
        why="its last events are missing, so totals, overlap and idle time would be wrong",
        mend="profile again and let the profiler's context end before the process exits",
    ),
    Code(
        name="trace-trailing",
        family=Family.ARTIFACT,
        title="Something that is no part of it follows a trace",
        why="two writes to one file leave that, and the first may be the older",
        mend="copy the file again from where it was made; gzip -t FILE tells whether a packed one is whole",
    ),
    Code(
        name="trace-encoding",
        family=Family.ARTIFACT,
        title="A trace is text of another encoding",
        why="a trace is UTF-8, as the profiler writes it; something has converted this one since",
    ),
    Code(
        name="trace-foreign",
        family=Family.ARTIFACT,
        title="A list of trace events holds none of PyTorch's",
        why="an event of an unknown category may be GPU or host work: a figure of it would be a guess",
        mend="give a file written by torch.profiler's export_chrome_trace or tensorboard_trace_handler",
    ),
    Code(
        name="trace-durations",
        family=Family.ARTIFACT,
        title="Too many GPU events of a trace have no readable duration",
        why="a negative or overflowed duration says nothing: busy time, overlap and idle time would be guesses",
        mend="profile again with a newer PyTorch, or fewer steps; or accept the guess with --set floor=0.5",
    ),
    Code(
        name="trace-malformed",
        family=Family.ARTIFACT,
        title="A trace is not JSON, even after mending what writers are known to break",
        why="what follows the broken byte cannot be trusted",
        mend="look at the named byte; export the trace again",
    ),
    Code(
        name="trace-two-documents",
        family=Family.ARTIFACT,
        title="A file holds more than one JSON document",
        why="two traces written to one file overlap in time and would be added up",
        mend="write one file a rank: put the rank into the file's name",
    ),
    Code(
        name="trace-not-a-trace",
        family=Family.ARTIFACT,
        title="A JSON file has no list of trace events",
        why="there is nothing to measure in it",
        mend="give a file written by torch.profiler's export_chrome_trace or tensorboard_trace_handler",
    ),
    Code(
        name="trace-empty",
        family=Family.ARTIFACT,
        title="A trace holds no event with a duration",
        why="a figure of nothing would read as zero",
        mend="profile at least one step; with a schedule, let an active step finish",
    ),
    Code(
        name="trace-memory",
        family=Family.ARTIFACT,
        title="A trace does not fit this machine's memory",
        why="reading a trace takes about half of its unpacked size, in one process or two",
        mend="profile fewer steps, raise the limit of the process, or look at it on a larger machine",
    ),
    Code(
        name="trace-window",
        family=Family.ARTIFACT,
        title="A window matches nothing in the trace",
        why="figures of an empty window would pass every limit",
        mend="name a step or annotation that the trace has",
    ),
    Code(
        name="trace-option",
        family=Family.USAGE,
        title="An option of the trace inspector does not read",
    ),
    Code(
        name="trace-no-operation",
        family=Family.ARTIFACT,
        title="No operation of that name is in the trace",
        why="there is nothing to print, replay or judge",
    ),
    Code(
        name="trace-ranks",
        family=Family.ARTIFACT,
        title="Several files claim one rank",
        why="adding them up would count the rank twice",
        mend="give each rank's file once",
    ),
    Code(
        name="cluster-tool",
        family=Family.TOOL,
        title="The cluster that traces were to be looked at on is not there",
        why="looking at thousands of files here instead could take hours and the machine's memory",
        mend="start a scheduler and workers with this package on them, or leave workers= away",
    ),
    Code(
        name="workbook-tool",
        family=Family.TOOL,
        title="A workbook needs openpyxl",
        why="nothing else here writes .xlsx files",
        mend="pip install openpyxl, or take the same tables as CSV: --csv FOLDER",
    ),
    Code(
        name="workbook-rows",
        family=Family.USAGE,
        title="A table has more rows than a sheet of a workbook holds",
        why="a workbook with fewer rows would look complete",
        mend="take it as CSV: --csv FOLDER",
    ),
    Code(
        name="torch-tool",
        family=Family.TOOL,
        title="PyTorch's profiler cannot run here",
        why="a capture that did not happen has nothing to judge",
    ),
    Code(
        name="trace-coverage",
        family=Family.ARTIFACT,
        title="Too little of the GPU time is linked to a launch",
        why="figures by operator would speak of a part and look like the whole",
        mend="record CPU activities too and start the profiler before the step; or lower it with --set floor=0.5",
    ),
)
