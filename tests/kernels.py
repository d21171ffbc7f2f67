"""The committed kernels of examples/kernels, without a disassembler."""

from __future__ import annotations

import functools
import gzip
import json
from pathlib import Path

from pytest_perfgate.adapters.readers.cubin_elf import parse_cubin
from pytest_perfgate.core.analysis.kernels.sass_facts import kernels
from pytest_perfgate.model.profiles import Disassembly, KernelFacts, Launch

ARTIFACTS = Path(__file__).parent / "artifacts"
CUBINS = ARTIFACTS / "cubins"
ARCHES = ("sm_80", "sm_86", "sm_90", "sm_100")
FILES = sorted(path.name for path in CUBINS.glob("*.cubin"))


def listing_of(name: str) -> dict[str, str]:
    """What nvdisasm and cuobjdump printed of one file."""
    told: dict[str, str] = json.loads(gzip.decompress((ARTIFACTS / "listings" / f"{name}.json.gz").read_bytes()))
    return told


@functools.cache
def disassembly(name: str) -> Disassembly:
    told = listing_of(name)
    cubin = parse_cubin((CUBINS / name).read_bytes(), name)
    beside = (CUBINS / name).with_suffix(".json")
    launch = json.loads(beside.read_text()) if beside.exists() else None
    return Disassembly(
        source=f"cubins/{name}",
        arch="",
        listing=told["listing"].encode(),
        words=cubin.words,
        bounds=cubin.bounds,
        resources=cubin.kernels,
        launches={launch["name"]: Launch(block=(32 * launch["num_warps"], 1, 1), shared_dynamic=launch["shared"])}
        if launch
        else {},
    )


def kernel(name: str, arch: str) -> KernelFacts:
    """One of our kernels; ``copy_wide`` and ``copy_narrow`` share a file."""
    file = "copy" if name.startswith("copy") else name
    return next(k for k in kernels(disassembly(f"{file}.{arch}.cubin")) if k.name == name)
