"""The script that times a trace's report calls the reference tool as its checkouts are laid out."""

from __future__ import annotations

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
ANALYZER = """
class TreePerfAnalyzer:
    @classmethod
    def from_file(cls, profile_filepath):
        print("tree of", profile_filepath)
        return cls()

    def get_df_kernel_launchers(self, include_kernel_details=False):
        return []

    def __getattr__(self, name):
        assert name.startswith("get_df_"), name
        return lambda *_: None
"""


@pytest.fixture
def script(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCH))
    import traces

    yield traces
    for name in [
        name for name in sys.modules if name.split(".")[0] in {"traces", "TraceLens", "trace_maker", "cost_plot"}
    ]:
        del sys.modules[name]


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        ("Reporting/generate_perf_report_pytorch.py", REPORT, "report of t.json"),
        ("TreePerf/__init__.py", ANALYZER, "tree of t.json"),
    ],
)
def test_a_checkout_of_either_layout_is_called(script, tmp_path, capsys, monkeypatch, file, text, said) -> None:
    monkeypatch.syspath_prepend("")  # the script puts the checkout in front itself; both are taken away again
    path = tmp_path / "TraceLens" / file
    path.parent.mkdir(parents=True)
    (tmp_path / "TraceLens" / "__init__.py").touch()
    path.write_text(text)
    exec(compile(script.REFERENCE, "<reference>", "exec"), {"PATH": "t.json", "FOLDER": str(tmp_path)})
    assert capsys.readouterr().out.strip() == said


def test_a_folder_without_the_tool_is_refused_before_anything_is_timed(script, tmp_path) -> None:
    with pytest.raises(SystemExit, match="no checkout of the reference tool"):
        script.against_reference("t.json", str(tmp_path))
