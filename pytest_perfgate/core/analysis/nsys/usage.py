"""What a device did with the window: parts that sum to it."""

from __future__ import annotations

import numpy as np

from pytest_perfgate.core.analysis import intervals
from pytest_perfgate.core.analysis.nsys.overlap import computation
from pytest_perfgate.model.nsys_job import Lane, TimeRow


def times(lane: Lane) -> TimeRow:
    """Computation, exposed communication, exposed copies and idle time of the window."""
    kernels, copies = lane.kernels, lane.copies
    compute = computation(lane)
    talk = intervals.union(kernels.start[lane.talks], kernels.end[lane.talks])
    either = intervals.together(compute, talk)
    starts, ends = np.append(kernels.start, copies.start), np.append(kernels.end, copies.end)
    busy = intervals.covered(starts, ends)
    return TimeRow(
        computation_ns=intervals.length(compute),
        communication_ns=intervals.length(talk),
        exposed_comm_ns=intervals.length(either) - intervals.length(compute),
        exposed_copies_ns=busy - intervals.length(either),
        busy_ns=busy,
        idle_ns=lane.window.length - busy,
        window_ns=lane.window.length,
    )
