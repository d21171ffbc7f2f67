"""The commands on exports of Nsight Systems, from the file to the exit code."""

from __future__ import annotations

import json

import pytest

from pytest_perfgate.cli.files import scrub_sentence
from pytest_perfgate.model.profiles import Scrubbed
from tests.nsys_file import SECRET, ExportMaker, small_export


def test_inspect_check_and_compare(place) -> None:
    small_export(place.root / "a.sqlite")
    small_export(place.root / "b.sqlite", slow=2)
    assert "stage2_f" in place.perfgate("inspect", "a.sqlite").out
    assert place.perfgate("check", "a.sqlite", "overlap(stage=stage2, rank=*) >= 50%").code == 0
    broken = place.perfgate("check", "a.sqlite", "exposed_comm(stage=stage2) <= 0.9us")
    assert broken.code == 1
    assert "1 µs" in broken.out
    assert "1000..21000" in broken.out
    compared = place.perfgate("compare", "a.sqlite", "b.sqlite", "slowdown(kernel=nccl*) <= 5%")
    assert compared.code == 1
    assert "from 2 µs in 1 kernel to 4 µs in 1 kernel" in " ".join(compared.out.split())


FORMS = [(), ("--json",), ("--markdown", "-"), ("--html", "page.html"), ("--csv", "tables")]


GATES = [("check", "a.sqlite", "idle <= 99%"), ("compare", "a.sqlite", "b.sqlite", "slowdown <= 900%")]


@pytest.mark.parametrize("command", GATES, ids=["check", "compare"])
def test_no_output_of_a_gate_has_the_secret(place, command) -> None:
    small_export(place.root / "a.sqlite", secrets=True)
    small_export(place.root / "b.sqlite", secrets=True)
    for form in ((), ("--json",), ("--junit", "out.xml")):
        done = place.perfgate(*command, *form)
        assert done.code == 0, done.err
        assert SECRET not in done.out + done.err
    assert SECRET.encode() not in (place.root / "out.xml").read_bytes()


@pytest.mark.parametrize("view", ["all", "overlap", "setup", "window", "streams", "balance", "summary", "timeline"])
def test_no_view_has_the_secret(place, view) -> None:
    small_export(place.root / "a.sqlite", secrets=True)
    for form in FORMS:
        done = place.perfgate("inspect", "a.sqlite", "--view", view, *form)
        assert done.code == 0, done.err
        assert SECRET not in done.out + done.err
    written = [path for path in place.root.rglob("*") if path.suffix in {".html", ".csv"}]
    assert written
    assert not [path for path in written if SECRET.encode() in path.read_bytes()]


def test_files_that_are_written_have_no_secret_and_the_picture(place) -> None:
    small_export(place.root / "a.sqlite", secrets=True)
    done = place.perfgate("inspect", "a.sqlite", "--view", "all", "--html", "page.html", "--csv", "tables")
    assert done.code == 0, done.err
    written = [path for path in place.root.rglob("*") if path.is_file() and path.suffix in {".html", ".csv"}]
    assert len(written) > 5
    assert not [path for path in written if SECRET.encode() in path.read_bytes()]
    page = (place.root / "page.html").read_text(encoding="utf-8")
    assert "<svg" in page
    assert "stream 20" in page


def test_json_has_the_figures(place) -> None:
    small_export(place.root / "a.sqlite")
    text = place.perfgate("inspect", "a.sqlite", "--json").out
    data = json.loads(text)
    assert len(text.splitlines()) < 2 * sum(len(data[name]) for name in ("metrics", "absent")) + 50, "a line for each"
    assert not [metric for metric in data["metrics"] if None in metric.values()]
    overlap = [m["value"] for m in data["metrics"] if m["name"] == "overlap" and ["stage", "stage2_f"] in m["labels"]]
    assert overlap == [0.5]
    assert "1000..21000" in data["window"]


def test_scrub(place) -> None:
    small_export(place.root / "a.sqlite", secrets=True)
    done = place.perfgate("scrub", "a.sqlite")
    assert done.code == 0
    assert "TARGET_INFO_SYSTEM_ENV" in done.out
    assert SECRET not in done.out
    assert SECRET.encode() not in (place.root / "a.clean.sqlite").read_bytes()
    assert place.perfgate("scrub", "a.sqlite").code == 13, "not over another file"
    assert "it is a folder" in place.perfgate("scrub", ".").err
    assert json.loads(place.perfgate("scrub", "a.sqlite", "--force", "--json").out)["strings"] == 3
    assert place.perfgate("scrub", "a.sqlite", "--in-place").code == 0
    assert SECRET.encode() not in (place.root / "a.sqlite").read_bytes()
    assert place.perfgate("check", "a.sqlite", "overlap(stage=stage2) >= 50%").code == 0


def test_no_communication_does_not_pass(place) -> None:
    maker = ExportMaker(place.root / "a.sqlite")
    maker.kernel(1, 0, 100, "gemm")
    maker.done()
    done = place.perfgate("check", "a.sqlite", "overlap >= 80%")
    assert done.code == 4
    assert "INVALID" in done.out
    assert "no communication in the window" in done.out


def test_errors_have_no_trace_and_their_own_exit(place) -> None:
    (place.root / "cut.sqlite").write_bytes(b"SQLite format 3\0cut")
    done = place.perfgate("inspect", "cut.sqlite")
    assert done.code == 13
    assert "nsys-damaged" in done.err
    assert "Traceback" not in done.err
    small_export(place.root / "a.sqlite")
    assert place.perfgate("inspect", "a.sqlite", "--anchor", "nothing like it").code == 2
    assert place.perfgate("inspect", "a.sqlite", "--set", "purpose=x").code == 2


def test_a_stage_that_is_silent_on_a_rank_is_said_and_never_passes(place) -> None:
    maker = ExportMaker(place.root / "a.sqlite")
    for rank, pid in enumerate((10, 11)):
        maker.range(pid, 0, 90_000, f"rank={rank}")
        maker.range(pid, 10, 20_000, "forward chunk 0 backward chunk 0")
        maker.range(pid, 100, 200, "layer0.stage2_f")
        maker.kernel(pid, 1_000, 5_000, "gemm", launched=110, device=rank)
    maker.kernel(10, 1_000, 5_000, "ncclDevKernel_SendRecv", stream=20, launched=120)
    maker.done()
    shown = place.perfgate("inspect", "a.sqlite")
    assert "stage2_f communicates on rank 0 and only computes on rank 1" in " ".join(shown.out.split())
    done = place.perfgate("check", "a.sqlite", "overlap(stage=stage2, rank=*) >= 80%")
    assert done.code == 4
    assert "INVALID" in done.out
    assert "stage2_f of rank 1 has no communication" in done.out


def test_a_project_has_patterns_of_its_own(place) -> None:
    maker = ExportMaker(place.root / "a.sqlite")
    maker.range(10, 0, 90_000, "worker 3")
    maker.range(10, 10, 20_000, "my step 0")
    maker.range(10, 100, 200, "part_a")
    maker.kernel(10, 1_000, 5_000, "gemm", launched=110)
    maker.kernel(10, 1_000, 5_000, "our_all_gather_v2", stream=20, launched=120)
    maker.done()
    (place.root / "pyproject.toml").write_text("""
[tool.perfgate]
communication = ["our_all"]
[tool.perfgate.nsys]
anchor = "my step%"
stage = "part_[ab]"
label = 'worker (\\d+)'
""")
    done = place.perfgate("check", "a.sqlite", "overlap(stage=part_a, rank=3) >= 99%")
    assert done.code == 0, done.out + done.err
    assert "10..20000" in done.out
    assert place.perfgate("inspect", "a.sqlite", "--start", "0", "--end", "9us").code == 0, "another window"
    (place.root / "pyproject.toml").write_text("[tool.perfgate.nsys]\nstages = 'x'\n")
    assert place.perfgate("inspect", "a.sqlite").code == 2


@pytest.mark.parametrize(
    ("tables", "strings", "sentence"),
    [
        ((), 0, "b: there was no table of the environment"),
        (("T_ENV",), 1, "b: without T_ENV, and without 1 text that nothing in it points to"),
        ((), 2, "b: there was no table of the environment; without 2 texts that nothing in it points to"),
    ],
)
def test_the_sentence_names_what_the_copy_lacks(tables, strings, sentence) -> None:
    assert scrub_sentence(Scrubbed(path="a", out="b", tables=tables, strings=strings)) == sentence
