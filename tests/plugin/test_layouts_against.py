"""Six layouts through ``pytest --perfgate-against``: each side builds, loads and times its own files."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.layouts import PLACES, Layout, editable, git, make_repo, sources, write
from tests.plugin.projects import QUIET

pytestmark = pytest.mark.skipif(
    not os.environ.get("PERFGATE_SLOW"), reason="builds two arms and starts ten processes a layout: set PERFGATE_SLOW=1"
)
GATE = 'budget = "30 ms"\nwarmup = "5 ms"\nsamples = 5\n'
TRIED = {**{name: PLACES[name] for name in PLACES if name != "scripts"}, "editable": PLACES["src"]}
IMPORTED = {"src": ("src",), "monorepo": ("one", "two")}
"""Where the head's package is found outside of arms, as an install would see to it; arms must not look there."""


def bench(packages: Sequence[str]) -> str:
    tests = (
        f'@pytest.mark.perfgate("slowdown <= 30%")\ndef test_{name}(perfgate):\n    import {name}\n    perfgate({name}.work)\n'
        for name in packages
    )
    return "import pytest\n\n" + "\n".join(tests)


def repository(folder: Path, layout: Layout) -> Path:
    """Slow at HEAD, four times as fast in the working copy."""
    make_repo(folder, layout, bench, GATE, 12000)
    write(folder, sources(layout, 3000))
    if (folder / "setup.py").exists():
        build = [sys.executable, "setup.py", "-q", "build_ext", "--inplace"]
        subprocess.run(build, cwd=folder, check=True, capture_output=True)
    return folder


@pytest.mark.parametrize("layout", TRIED)
def test_each_side_times_its_own_code(tmp_path: Path, layout: str) -> None:
    tried = TRIED[layout]
    repo = repository(tmp_path / "ein Größer Pfad", tried)
    python = editable(tmp_path / "user", repo / "src") if layout == "editable" else Path(sys.executable)
    line = [str(python), "-m", "pytest", *QUIET, "-v", "--perfgate-against", "HEAD", tried.tests]
    inherited = {k: v for k, v in os.environ.items() if k != "CI" and not k.startswith("PYTEST_")}
    inherited["PYTHONPATH"] = os.pathsep.join(str(repo / place) for place in IMPORTED.get(layout, ()))
    done = subprocess.run(line, cwd=repo, env=inherited, capture_output=True, text=True, check=False, timeout=300)
    text = done.stdout + done.stderr
    assert done.returncode == 0, text
    tests = len(tried.sources)
    assert f"full: {tests} improved" in text, text
    assert git(repo, "status", "--porcelain").count("\n") == len(tried.sources)
