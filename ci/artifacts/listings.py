"""Writes tests/artifacts/listings from tests/artifacts/cubins, so that most tests need no disassembler."""

from __future__ import annotations

import gzip
import json
import subprocess
from pathlib import Path

from pytest_perfgate.adapters.readers.cubin import read_cubins, tool

ARTIFACTS = Path(__file__).resolve().parents[2] / "tests" / "artifacts"


def main() -> None:
    for cubin in read_cubins(sorted((ARTIFACTS / "cubins").glob("*.cubin"))):
        name, command = Path(cubin.source).name, [str(tool("cuobjdump")), "--dump-resource-usage", cubin.source]
        usage = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        what = {"listing": cubin.listing.decode(), "resources": usage.replace(str(ARTIFACTS), "")}
        packed = gzip.compress(json.dumps(what).encode(), mtime=0)
        (ARTIFACTS / "listings" / f"{name}.json.gz").write_bytes(packed)


if __name__ == "__main__":
    main()
