"""The script that times a trace's report calls the reference tools as their packages are laid out."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).resolve().parents[2] / "ci" / "bench"
REPORT = """
def generate_perf_report_pytorch(profile_json_path, output_xlsx_path=None, output_csvs_dir=None, **more):
    assert not more and output_xlsx_path is None
    with open(output_csvs_dir + "/ops.csv", "w") as file:
        file.write("called")
    print("report of", profile_json_path)
"""
ANALYSIS = """
class TraceAnalysis:
    def __init__(self, trace_files, trace_dir):
        (path,) = trace_files.values()
        assert path.startswith(trace_dir)
        print("analysis of", path.rpartition("/")[2])

    def __getattr__(self, name):
        assert name.startswith("get_"), name
        return lambda visualize: None
"""


@pytest.fixture
def script(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCH))
    import traces

    yield traces
    for name in [name for name in sys.modules if name.split(".")[0] in {"traces", "trace_maker", "cost_plot"}]:
        del sys.modules[name]


@pytest.mark.parametrize(
    ("tool", "file", "text", "expected"),
    [
        ("TRACELENS", "TraceLens/Reporting/generate_perf_report_pytorch.py", REPORT, "report of t.json"),
        ("HTA", "hta/trace_analysis.py", ANALYSIS, "analysis of t.json"),
    ],
)
def test_each_tool_is_called_by_its_public_function(script, tmp_path, tool, file, text, expected) -> None:
    path = tmp_path / file
    path.parent.mkdir(parents=True)
    path.write_text(text)
    command = [sys.executable, "-c", getattr(script, tool), "t.json"]
    env = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == expected


def test_a_tool_that_fails_ends_the_script_and_gives_no_ratio(script) -> None:
    with pytest.raises(SystemExit, match="ended with"):
        script.command([sys.executable, "-c", "raise SystemExit(3)"])
