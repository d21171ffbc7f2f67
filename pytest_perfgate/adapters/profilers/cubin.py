"""Machine code that a test hands over: kept beside its measurement, read without a GPU."""

from __future__ import annotations

from pathlib import Path

from pytest_perfgate.adapters.profilers.bystander import Bystander
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.kernel import CODE_SUFFIXES
from pytest_perfgate.model.measurement import Artifact


class CubinKeeper(Bystander):
    """The child writes what the test attaches."""

    name = "cubin"

    def artifacts(self, out: Path) -> tuple[Artifact, ...]:
        found = sorted(path for path in out.rglob("*") if path.suffix in CODE_SUFFIXES)
        if not found:
            raise PerfgateError(
                "kernel-none",
                "the test handed over no machine code",
                mend="perfgate.attach('kernel.cubin', path), or perfgate.attach('kernel', compiled) for Triton",
                place=str(out),
            )
        return tuple(Artifact(kind="cubin", path=str(path)) for path in found)
