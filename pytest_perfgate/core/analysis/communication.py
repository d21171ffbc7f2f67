"""Which kernels communicate, by name."""

from __future__ import annotations

import re
from collections.abc import Sequence

PATTERNS = (
    r"(?i:nccl|rccl|cross_device_reduce)",
    r"(^|::|\s)(deep_ep|dpsk::ep)::.*(dispatch|combine|notify)",
    r"(?i:\bnvshmem|(^|::)multimem|nvshmemi?_)",
)
"""Case matters in the second: a bare ``dispatch`` would take CUB's ``DispatchReduceByKey``."""

MARKS = ("nccl", "rccl", "cross_device_reduce", "deep_ep", "dpsk::ep", "nvshmem", "multimem")
"""In lower case, what a name has in it before one of the patterns can find it: told a hundred times sooner."""


def communication(extra: Sequence[str] = ()) -> re.Pattern[str]:
    """One pattern that finds communication kernels, with the user's own beside the known ones."""
    return re.compile("|".join(f"(?:{pattern})" for pattern in (*PATTERNS, *extra)))
