"""An NVBench benchmark as a case: its binary writes JSON, and perfgate judges its times like any other.

``NVBENCH=path/to/the/binary pytest``
"""

from __future__ import annotations

import os
import subprocess

import pytest

BINARY = os.environ.get("NVBENCH", "")
if not BINARY:
    pytest.skip("NVBENCH names no binary", allow_module_level=True)


@pytest.mark.perfgate("slowdown <= 3%")  # for every state of every benchmark; time(case=copy*) selects some
def test_nvbench(perfgate, tmp_path):
    results = tmp_path / "nvbench.json"
    subprocess.run([BINARY, "--json", str(results)], check=True)
    perfgate.read(results)
