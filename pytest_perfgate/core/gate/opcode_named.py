"""Instructions that a limit counts: a name that no architecture has is a slip of the pen, said with what is near."""

from __future__ import annotations

from pytest_perfgate.core.analysis.sass.opcodes import closest, is_pattern, known, whole_name
from pytest_perfgate.core.gate.nearest import either
from pytest_perfgate.model.limit import Limit
from pytest_perfgate.model.metric import MetricSet

COUNTS = frozenset({"count", "executed"})


def no_instruction(limit: Limit, metrics: MetricSet) -> tuple[str, str] | None:
    """(what is wrong, what was probably meant) where the limit names an instruction that does not exist."""
    asked = whole_name(limit.labels)
    if limit.metric not in COUNTS or not asked or is_pattern(asked):
        return None
    seen = {dict(m.labels).get("opcode", "") for m in metrics.metrics if m.name == limit.metric} - {""}
    if known(asked, seen):
        return None
    root, _, modifiers = asked.partition(".")
    what = f"{root} has no modifiers {modifiers}" if known(root, seen) else f"{root} is no opcode"
    near = closest(asked, seen)
    return what, f"did you mean {either(near)}?" if near else "perfgate inspect FILE --view mix shows those there are"
