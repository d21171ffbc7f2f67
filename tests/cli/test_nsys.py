"""The commands on exports of Nsight Systems, from the file to the exit code."""

from __future__ import annotations

import json

import pytest

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


@pytest.mark.parametrize("arguments", [(), ("--json", "--view", "all"), ("--markdown", "-", "--view", "all")])
def test_no_output_has_the_secret(place, arguments) -> None:
    small_export(place.root / "a.sqlite", secrets=True)
    done = place.perfgate("inspect", "a.sqlite", *arguments)
    assert done.code == 0
    assert SECRET not in done.out + done.err


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
    said = json.loads(place.perfgate("inspect", "a.sqlite", "--json").out)
    overlap = [m["value"] for m in said["metrics"] if m["name"] == "overlap" and ["stage", "stage2_f"] in m["labels"]]
    assert overlap == [0.5]
    assert "1000..21000" in said["window"]


def test_scrub(place) -> None:
    small_export(place.root / "a.sqlite", secrets=True)
    done = place.perfgate("scrub", "a.sqlite")
    assert done.code == 0
    assert "TARGET_INFO_SYSTEM_ENV" in done.out
    assert SECRET not in done.out
    assert SECRET.encode() not in (place.root / "a.clean.sqlite").read_bytes()
    assert place.perfgate("scrub", "a.sqlite").code == 13, "not over another file"
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
