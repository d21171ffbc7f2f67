"""Error codes of devices, runtimes, timers and clocks."""

from __future__ import annotations

from pytest_perfgate.model.codes.family import Code, Family

CODES: tuple[Code, ...] = (
    Code(
        name="device-entry",
        family=Family.CONFIGURATION,
        title="A device's data sheet does not read",
        why="a wrong peak makes every fraction of it wrong",
        mend="see docs/devices.md for the keys and their units",
    ),
    Code(
        name="device-unknown",
        family=Family.DEVICE,
        title="No device of the catalogue or of this machine has this name",
        why="without its data sheet there is no peak to hold a measurement against",
        mend="`perfgate devices` lists the catalogue; add your own under [tool.perfgate.device.NAME]",
    ),
    Code(
        name="runtime-unavailable",
        family=Family.DEVICE,
        title="A GPU library that was asked for does not work here",
        why="another library in its place would measure another thing",
        mend="`perfgate doctor` says what each library needs",
    ),
    Code(
        name="runtime-unknown",
        family=Family.USAGE,
        title="No runtime has this name",
        mend="`perfgate doctor` lists the runtimes",
    ),
    Code(
        name="graph-unsupported",
        family=Family.DEVICE,
        title="The call cannot be captured as a graph",
        why="a graph timer replays a recording, and there is none",
        mend='use timer="cupti", timer="blocking" or timer="events"',
    ),
    Code(
        name="block-unsupported",
        family=Family.DEVICE,
        title="The queue cannot be held back with this library",
        why="without a full queue the time of the host is measured",
        mend='use timer="cupti", timer="graph" or timer="events"',
    ),
    Code(
        name="timer-unknown",
        family=Family.USAGE,
        title="No timer has this name",
        mend="`perfgate doctor` lists the timers",
    ),
    Code(
        name="timer-unsuited",
        family=Family.DEVICE,
        title="A timer does not fit the library that the test uses",
        why="a timer in its place would be another instrument, and its numbers another quantity",
        mend='leave timer="auto", or name one that `perfgate doctor` shows as usable',
    ),
    Code(
        name="timer-too-coarse",
        family=Family.DEVICE,
        title="The kernel is too short for this timer",
        why="below twenty times its overhead and resolution an event pair measures itself",
        mend='use timer="cupti" or timer="graph", or calls=N to time a batch',
    ),
    Code(
        name="timer-broken",
        family=Family.DEVICE,
        title="An instrument gave a reading that cannot be a time",
        why="a number from a failed instrument is worse than none",
        mend="`perfgate doctor` tests each timer",
    ),
    Code(
        name="timer-deadlock",
        family=Family.DEVICE,
        title="The call waits for the device while the queue is held back",
        why="a call that synchronises can never finish behind a blocked queue",
        mend='use timer="events" or timer="cupti" for a call that synchronises',
    ),
    Code(
        name="timer-no-samples",
        family=Family.DEVICE,
        title="Every sample was discarded",
        why="a table of nothing is not a measurement",
    ),
    Code(
        name="cache-cold-batch",
        family=Family.USAGE,
        title="Calls in one graph or batch cannot be kept cold without buffers to rotate",
        why="such calls follow each other at once, so one set of inputs stays in the cache",
        mend='pass setup= that makes fresh inputs, or use timer="cupti" or timer="events"',
    ),
    Code(
        name="cupti-dropped",
        family=Family.DEVICE,
        title="CUPTI dropped activity records",
        why="a call without all its records looks faster than it was",
        mend="fewer kernels a call, or another timer",
    ),
    Code(
        name="cupti-busy",
        family=Family.DEVICE,
        title="Another tool holds CUPTI in this process",
        why="CUPTI has one subscriber a process; torch.profiler, nsys and ncu are such tools",
        mend='leave the other tool out, or use timer="events"',
    ),
    Code(
        name="device-lost",
        family=Family.DEVICE,
        title="The device stopped answering",
        why="nothing that was measured around it can be trusted",
        mend="see the driver's log (`dmesg`, Xid), then run `perfgate doctor`",
    ),
    Code(
        name="cache-size-unknown",
        family=Family.DEVICE,
        title="The size of the last cache is not known",
        why="a flush smaller than the cache leaves it warm while the result says cold",
        mend='add l2_mib to [tool.perfgate.device.NAME], or measure with cache="warm"',
    ),
)
