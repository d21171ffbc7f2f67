"""Writes tests/artifacts/listings from tests/artifacts/cubins, so that most tests need no disassembler."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

from pytest_perfgate.adapters.readers.cubin import read_cubins

ARTIFACTS = Path(__file__).resolve().parents[2] / "tests" / "artifacts"


def main() -> None:
    told = {
        Path(seen.source).name: {"listing": seen.listing.decode(), "resources": seen.resources}
        for seen in read_cubins(sorted((ARTIFACTS / "cubins").glob("*.cubin")))
    }
    for name, what in told.items():
        what["resources"] = what["resources"].replace(str(ARTIFACTS), "")
        packed = gzip.compress(json.dumps(what).encode(), mtime=0)
        (ARTIFACTS / "listings" / f"{name}.json.gz").write_bytes(packed)


if __name__ == "__main__":
    main()
