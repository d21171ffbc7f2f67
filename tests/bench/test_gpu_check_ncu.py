"""ncu's duration beside ours: its table read, its program found, its refusal told."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace

import pytest

from ci.gpu import counters
from pytest_perfgate.adapters.readers import ncu_report
from tests.bench.simulated import SimulatedCheck
from tests.waits import ended, until


@pytest.fixture
def check():
    return SimulatedCheck("observe")


TABLE = """\
==PROF== Connected
"ID","Kernel Name","Kernel Time","Stream","gpu__time_duration.sum"
"","","","","{unit}"
"0","void softmax<(int)4, float>(float *)","2025-Oct-28 21:47:21","7","{figure}"
"""


@pytest.mark.parametrize(
    ("unit", "figure", "nanoseconds"),
    [("nsecond", "47328", 47_328.0), ("us", "47.33", 47_330.0), ("ns", "1,047,328", 1_047_328.0), ("inst", "3", None)],
)
def test_a_duration_is_read_off_ncus_table(unit, figure, nanoseconds) -> None:
    duration = counters.duration(TABLE.format(unit=unit, figure=figure))
    assert duration == (nanoseconds if nanoseconds is None else pytest.approx(nanoseconds))


def test_what_is_no_table_of_ncu_has_no_duration() -> None:
    for text in ("==ERROR== no kernels", "", '"ID"\n""\n"0"\n', TABLE.partition('"0"')[0]):
        assert counters.duration(text) is None


NCU = """#!/bin/sh
exec '{python}' - "$@" << 'EOF'
import sys
from pathlib import Path
if "--import" in sys.argv:
    print({table!r})
elif {works}:
    Path(sys.argv[sys.argv.index("--export") + 1]).write_bytes(b"report")
else:
    sys.exit("==ERROR== ERR_NVGPUCTRPERM\\n" + "==PROF== much more\\n" * 30)
EOF
"""


@pytest.mark.parametrize("works", [True, False])
def test_ncu_is_found_where_installers_put_it_and_its_duration_is_beside_ours(
    check, tmp_path, monkeypatch, works
) -> None:
    place = tmp_path / "2025.3.1" / "ncu"
    place.parent.mkdir()
    table = TABLE.format(unit="ns", figure="60,000")
    place.write_text(NCU.format(python=sys.executable, table=table, works=works))
    place.chmod(0o755)
    monkeypatch.setattr(counters, "PLACES", ((str(tmp_path), "*/ncu"),))
    monkeypatch.setattr(counters.shutil, "which", lambda name: None)
    row, *read = counters.profiler(check, tmp_path)
    assert [(one["bar"], one["held"]) for one in read] == [("module", False)] * works, "six bytes are no report"
    if works:
        assert (row["ncu_ns"], row["bar"], row["held"], row["bytes"]) == (60_000.0, "ncu", True, 6)
    else:
        assert row["why"] == "ERR_NVGPUCTRPERM"
        assert "ERR_NVGPUCTRPERM" in (tmp_path / "ncu.txt").read_text()


def test_a_report_is_read_as_captures_read_it(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(ncu_report, "read_ncu", lambda paths: [SimpleNamespace(name="softmax")] * len(paths))
    monkeypatch.setattr(ncu_report, "module_folders", lambda: ["/opt/nvidia/extras/python"])
    for installed in (None, SimpleNamespace(origin="/site/ncu_report.py")):
        monkeypatch.setattr(counters, "find_spec", lambda name, installed=installed: installed)
        row = counters.read(tmp_path / "softmax.ncu-rep")
        assert (row["bar"], row["held"], row["kernels"]) == ("module", True, "softmax")
        assert row["module"] == ("/site/ncu_report.py" if installed else "/opt/nvidia/extras/python")


def test_without_ncu_that_is_said(check, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(counters, "PLACES", ())
    monkeypatch.setattr(counters.shutil, "which", lambda name: None)
    assert next(counters.profiler(check, tmp_path))["refused"] == "not installed"


def test_a_profiler_that_hangs_is_ended_with_the_program_that_it_profiles(tmp_path, monkeypatch) -> None:
    marked = tmp_path / "pid"
    text = "import subprocess, sys; p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)']);"
    text += f" open({str(marked)!r}, 'w').write(str(p.pid)); p.wait()"
    plain = subprocess.Popen.communicate

    def communicate(process, *arguments):
        until(lambda: marked.exists() and marked.read_text())
        return plain(process, *arguments)

    monkeypatch.setattr(subprocess.Popen, "communicate", communicate)
    code, output = counters.run_program([sys.executable, "-c", text], 1.0)
    assert (code, output.startswith("TimeoutExpired")) == (-1, True)
    assert ended(int(marked.read_text()))
