"""Captures by name: which work inside the measuring process."""

from __future__ import annotations

IN_PROCESS = frozenset({"torch"})
"""Captures that need no launcher around the process, and so can stand beside the timing of a test."""
STATIC = "cubin"
"""The capture of machine code that a test hands over: it needs neither a device nor a clock."""
