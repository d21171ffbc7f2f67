"""A replay package: a zip that repeats an operation with nothing but PyTorch."""

from __future__ import annotations

import zipfile
from importlib.resources import files
from pathlib import Path

README = """# Replay

`operations.json` holds what a trace recorded of each operation: name, shapes, dtypes, strides, scalars.

    python replay.py                 # on the GPU if there is one, else on the CPU
    python replay.py --device cpu --repeat 20 --json

Contents of tensors are random; a trace does not record them. An operation that exists on GPUs only is run on the CPU
by the operation that computes the same, and the output says so.
"""


def write_replay(path: Path, form: str) -> Path:
    """Write the package: operations, runner, README."""
    runner = files("pytest_perfgate.adapters.formats").joinpath("replay_runner.py").read_text(encoding="utf-8")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as package:
        for name, text in (("operations.json", form), ("replay.py", runner), ("README.md", README)):
            entry = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
            entry.external_attr = 0o644 << 16
            package.writestr(entry, text)
    return path
