"""Collectives of one rank: which, how long, how large."""

from __future__ import annotations

import re

import numpy as np

from pytest_perfgate.core.analysis.operators.call import Call, parse_call
from pytest_perfgate.core.analysis.trace.classes import Kind
from pytest_perfgate.core.analysis.trace.survey import Survey
from pytest_perfgate.model.trace import Message
from pytest_perfgate.model.values import value

_WORD = re.compile(r"(?:nccl|rccl)(?:Dev)?Kernel_?([A-Za-z]+)", re.IGNORECASE)
_CLIMB = 8


@value
class Collective:
    """One collective as one rank saw it."""

    kind: str
    group: str
    ordinal: int
    """Its number among those of its kind and group on this rank."""
    rank: int
    start: int
    """On the rank's own clock, in nanoseconds since its epoch."""
    length: int
    size: float | None = None
    ranks: int | None = None
    operation: str = ""
    """What the framework called it: an all-to-all is sent as point-to-point kernels."""


def collectives(seen: Survey, rank: int) -> tuple[Collective, ...]:
    """The communication kernels of a rank in the order they started."""
    mine = np.flatnonzero(seen.kinds == Kind.COMMUNICATION)
    mine = mine[np.argsort(seen.trace.start[seen.rows[mine]], kind="stable")]
    counted: dict[tuple[str, str], int] = {}
    found = []
    for at in mine.tolist():
        row = int(seen.rows[at])
        message = _message(seen, at)
        kind = word(seen.trace.names[seen.trace.name[row]])
        group = message.group if message else ""
        ordinal = counted[kind, group] = counted.get((kind, group), -1) + 1
        found.append(
            Collective(
                kind=kind,
                group=group,
                ordinal=ordinal,
                rank=rank,
                start=int(seen.trace.start[row]) + seen.trace.base_ns,
                length=int(seen.trace.end[row] - seen.trace.start[row]),
                size=message.sent if message else None,
                ranks=message.ranks if message else None,
                operation=message.collective if message else "",
            )
        )
    return tuple(found)


def word(name: str) -> str:
    """What a communication kernel does, without algorithm, protocol and dtype."""
    found = _WORD.search(name)
    if found:
        return found.group(1)
    return name.partition("<")[0].partition("(")[0].rpartition("::")[2] or name


def _message(seen: Survey, at: int) -> Message | None:
    """What was recorded on the kernel, its launcher, or an annotation above."""
    trace = seen.trace
    row = int(seen.rows[at])
    if row in trace.messages:
        return trace.messages[row]
    above = int(seen.link.launch[at])
    for _ in range(_CLIMB):
        if above < 0:
            return None
        if above in trace.messages:
            return trace.messages[above]
        if trace.names[trace.name[above]].startswith("nccl:") and trace.argument[above] >= 0:
            size = _sent(parse_call("", trace.arguments[int(trace.argument[above])]))
            return Message(collective=trace.names[trace.name[above]], sent=size or None)
        above = int(seen.tree.parent[above])
    return None


def _sent(call: Call) -> float:
    """Bytes of the tensors of a collective; nothing where a shape is no numbers."""
    try:
        return sum(call.size(i) for i in call.tensors())
    except ValueError:
        return 0.0
