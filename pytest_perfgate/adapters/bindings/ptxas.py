"""The version of the assembler that kernels are built with here: Triton's own, else that of the path."""

from __future__ import annotations

import functools
import os
import re
import shutil
import sys
from pathlib import Path

from pytest_perfgate.adapters.bindings.border import BORDER
from pytest_perfgate.adapters.system.commands import answer

_VERSION = re.compile(r"\bV(\d+(?:\.\d+)+)")


def ptxas_version(arch: str = "") -> str:
    """``13.0.88`` of the one for an architecture such as ``sm_90``; nothing where there is no such program."""
    return _told(_tritons_choice(arch) or _program())


def _tritons_choice(arch: str) -> str:
    """Triton brings several along and takes one by the architecture: what it says itself, where it can say."""
    choose = getattr(sys.modules.get("triton.backends.nvidia.compiler"), "get_ptxas", None)
    number = re.sub(r"\D", "", arch)
    if choose is None or not number:
        return ""
    try:
        return str(getattr(choose(int(number)), "path", ""))
    except BORDER:
        return ""


def _program() -> str:
    """Where it lies: named by Triton's variable, brought along by Triton, or on the path."""
    triton = sys.modules.get("triton")
    asked = os.environ.get("TRITON_PTXAS_PATH", "")
    if triton is not None and asked:
        return asked
    if triton is not None and getattr(triton, "__file__", None):
        own = Path(str(triton.__file__)).parent / "backends" / "nvidia" / "bin" / "ptxas"
        if own.is_file():
            return str(own)
    return shutil.which("ptxas") or ""


@functools.cache
def _told(program: str) -> str:
    if not program:
        return ""
    found = _VERSION.search(answer([program, "--version"], 10) or "")
    return found.group(1) if found else ""
