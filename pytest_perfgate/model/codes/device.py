"""Error codes of devices, runtimes, timers and clocks."""

from __future__ import annotations

from pytest_perfgate.model.codes import codes_of

DEVICE_CODES = codes_of(
    CONFIGURATION={
        "device-entry": (
            "A device's data sheet is not valid",
            "with a wrong peak, every share of it is wrong",
            "see docs/devices.md for the keys and their units",
        ),
        "ceilings-unreadable": (
            "A file of measured ceilings cannot be read",
            "",
            "run `perfgate ceilings` to measure again",
        ),
    },
    DEVICE={
        "device-unknown": (
            "No device of the catalogue or of this machine has this name",
            "without its data sheet there is no peak to compare a measurement with",
            "`perfgate devices` lists the catalogue; add your own under [tool.perfgate.device.NAME]",
        ),
        "device-faulty": (
            "The card reported errors of its own while it was measured",
            "a card that corrects, replaces or loses memory is slower than others of its kind, or wrong",
            "take the card out of the pool; nvidia-smi -q -d ECC,ROW_REMAPPER says more; reset it, then measure",
        ),
        "devices-few": (
            "A case needs more devices of one kind than this process sees",
            "on fewer devices it would be another measurement",
            "run it where there are enough, or lower devices= of its marker; `perfgate devices --here` lists them",
        ),
        "runtime-unavailable": (
            "A GPU library that was asked for does not work here",
            "another library would measure something else",
            "`perfgate doctor` says what each library needs",
        ),
        "graph-unsupported": (
            "The call cannot be captured as a graph",
            "a graph timer replays a recording, and there is none",
            'use timer="cupti", timer="blocking" or timer="events"',
        ),
        "block-unsupported": (
            "The queue cannot be held back with this library",
            "without a full queue the time of the host is measured",
            'use timer="cupti", timer="graph" or timer="events"',
        ),
        "timer-unsuited": (
            "A timer does not fit the library that the test uses",
            "another timer would measure another quantity",
            'leave timer="auto", or name one that `perfgate doctor` shows as usable',
        ),
        "timer-too-coarse": (
            "The kernel is too short for this timer",
            "below twenty times its overhead and resolution, a pair of events measures mostly its own overhead",
            'use timer="cupti" or timer="graph", or calls=N to time a batch',
        ),
        "timer-broken": (
            "An instrument gave a reading that cannot be a time",
            "a wrong number would look like a measurement",
            "`perfgate doctor` tests each timer",
        ),
        "timer-deadlock": (
            "The call waits for the device while the queue is held back",
            "behind a blocked queue, a call that synchronises never ends",
            'use timer="events" or timer="cupti" for a call that synchronises',
        ),
        "cupti-dropped": (
            "CUPTI dropped activity records",
            "a call without all its records looks faster than it was",
            "fewer kernels a call, or another timer",
        ),
        "cupti-unproved": (
            "CUPTI's counter of dropped records does not work",
            "if records are lost without notice, a call looks faster than it was",
            'use timer="graph" or timer="events", or another release of cupti-python',
        ),
        "cupti-busy": (
            "Another tool holds CUPTI in this process",
            "CUPTI has one subscriber a process; torch.profiler, nsys and ncu are such tools",
            'leave the other tool out, or use timer="events"',
        ),
        "device-lost": (
            "The device stopped answering",
            "nothing that was measured around it can be trusted",
            "see the driver's log (`dmesg`, Xid), then run `perfgate doctor`",
        ),
        "driver-silent": (
            "The device's management library did not answer",
            "a hanging driver blocks every caller, and measurements beside it cannot be trusted",
            "see whether nvidia-smi (or amd-smi) answers, and the driver's log (`dmesg`); reload the driver",
        ),
        "cache-size-unknown": (
            "The size of the last cache is not known",
            "a flush smaller than the cache leaves it warm while the result says cold",
            'add l2_mib to [tool.perfgate.device.NAME], or measure with cache="warm"',
        ),
        "device-unmapped": (
            "A device of the GPU library is not found in the driver's management library",
            "clocks of another card would be read or set",
            "compare `nvidia-smi -L` with CUDA_VISIBLE_DEVICES; `perfgate doctor` shows both",
        ),
        "clocks-unsupported": (
            "This device does not support that change of its clocks",
            "",
            "use --perfgate-clocks=observe",
        ),
        "clocks-held": (
            "Another process holds the lock on this device's clocks",
            "two owners would undo each other's settings",
            "wait for it to end; `perfgate clocks show` names it",
        ),
        "clocks-not-restored": (
            "The clocks could not be restored",
            "the card stays locked for everybody on this machine",
            "run `perfgate clocks reset`, or `nvidia-smi -rgc -rmc` as an administrator",
        ),
        "locks-unusable": (
            "The folder of locks and leases cannot be used",
            "without it, two measurements could use one device at once, and no lock would name its owner",
            "free space there, or let the owner remove another user's files; PERFGATE_LOCKS names another folder",
        ),
        "platform-unsupported": (
            "This system cannot measure",
            "leases, the end of children and restored clocks need POSIX",
            "run it under Linux, macOS or WSL; reading, comparing and accepting records need no device",
        ),
        "lease-held": (
            "Another process is measuring on this device",
            "two measurements on one device disturb each other",
            "wait for it to end, or end it (the message has its number), then run again",
        ),
        "ceilings-none": (
            "No ceiling could be measured",
            "an empty file would replace one that has ceilings",
            "read the reason of each load, above; `perfgate doctor` shows what works here",
        ),
        "work-escaped": (
            "Work of the call ran outside the events that time it",
            "the time does not include work on another stream",
            'let the call wait for its own streams, or measure with timer="cupti"',
        ),
        "output-not-written": (
            "The call did not write the whole of its output",
            "values that perfgate had written there were unchanged: the result may be left over from another call",
            "return only what the call writes; for a call that works in place, pass setup= that makes it fresh",
        ),
        "input-changed": (
            "The call changed one of its inputs",
            "each timed call would work on other data than the call before",
            "pass setup= that makes fresh inputs, or return the array that the call is meant to change",
        ),
        "throttled": (
            "The device was throttled while it was measured",
            "the time is that of a slower device",
            "measure again when it is cool, or lock a clock that its power can hold",
        ),
        "foreign-process": (
            "Another process used the device while it was measured",
            "other work on the device slows the call",
            "wait until it ends, or choose another device",
        ),
        "clock-moved": (
            "A locked clock did not stay where it was locked",
            "the time is that of another clock",
            "`perfgate clocks show` names the process that changes it",
        ),
        "hot": (
            "The device stayed within ten degrees of slowing down",
            "a hot device throttles in the middle of a measurement",
            "cool the device better, or lock a lower clock",
        ),
    },
    USAGE={
        "runtime-unknown": (
            "No runtime has this name",
            "",
            "`perfgate doctor` lists the runtimes",
        ),
        "timer-unknown": (
            "No timer has this name",
            "",
            "`perfgate doctor` lists the timers",
        ),
        "cache-cold-batch": (
            "Calls in one graph or batch cannot be kept cold without buffers to rotate",
            "such calls follow each other at once, so one set of inputs stays in the cache",
            'pass setup= that makes fresh inputs, or use timer="cupti" or timer="events"',
        ),
    },
    PERMISSION={
        "clocks-denied": (
            "Locking clocks is not permitted",
            "clocks that move add noise, and only an administrator may lock them",
            "run as root, or use --perfgate-clocks=observe",
        ),
    },
)
