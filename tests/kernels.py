"""The committed kernels of examples/kernels, without a disassembler."""

from __future__ import annotations

import functools
import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from pytest_perfgate.adapters.readers import cubin
from pytest_perfgate.adapters.readers.cubin_elf import parse_cubin
from pytest_perfgate.core.analysis.kernels.sass_facts import kernels
from pytest_perfgate.model.profiles import Disassembly, KernelFacts, Launch

ARTIFACTS = Path(__file__).parent / "artifacts"
CUBINS = ARTIFACTS / "cubins"
ARCHES = ("sm_80", "sm_86", "sm_90", "sm_100")
FILES = sorted(path.name for path in CUBINS.glob("*.cubin"))


def listing_of(name: str) -> dict[str, str]:
    """What nvdisasm and cuobjdump printed of one file."""
    record: dict[str, str] = json.loads(gzip.decompress((ARTIFACTS / "listings" / f"{name}.json.gz").read_bytes()))
    return record


@functools.cache
def disassembly(name: str) -> Disassembly:
    record = listing_of(name)
    parsed = parse_cubin((CUBINS / name).read_bytes(), name)
    launch_file = (CUBINS / name).with_suffix(".json")
    launch = json.loads(launch_file.read_text()) if launch_file.exists() else None
    return Disassembly(
        source=f"cubins/{name}",
        arch="",
        listing=record["listing"].encode(),
        words=parsed.words,
        bounds=parsed.bounds,
        resources=parsed.kernels,
        launches={launch["name"]: Launch(block=(32 * launch["num_warps"], 1, 1), shared_dynamic=launch["shared"])}
        if launch
        else {},
    )


_LISTED: dict[bytes, bytes] = {}


@pytest.fixture
def listed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run nvdisasm once for each cubin, however many tests read it: its start takes half a second."""
    listing = cubin._full_listing

    def whole(one: Any) -> bytes:
        if one.data not in _LISTED:
            _LISTED[one.data] = listing(one)
        return _LISTED[one.data]

    monkeypatch.setattr(cubin, "_full_listing", whole)


def kernel(name: str, arch: str) -> KernelFacts:
    """One of our kernels; ``copy_wide`` and ``copy_narrow`` share a file."""
    file = "copy" if name.startswith("copy") else name
    return next(k for k in kernels(disassembly(f"{file}.{arch}.cubin")) if k.name == name)
