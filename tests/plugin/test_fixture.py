"""What a test can ask of the fixture, and what it gets back."""

from __future__ import annotations

import json

import pytest

from pytest_perfgate.adapters.devices.host import probe_host
from pytest_perfgate.adapters.stores.records import Records
from pytest_perfgate.adapters.stores.stored_forms import CeilingStore
from pytest_perfgate.model.device import Ceilings
from tests.plugin.projects import Project

ASKED = """
    import pytest, sys
    from pathlib import Path

    @pytest.mark.perfgate("time <= 1s")
    def test_little_is_loaded(perfgate, request):
        perfgate(int)
        where_it_is_measured = getattr(request.config.option, "xmlpath", None) is None
        assert not (where_it_is_measured and {"numpy", "pandas", "sqlite3", "yaml"} & set(sys.modules))
        loader = sys.modules["pytest_perfgate.plugin.fixture"].__loader__
        assert type(loader).__name__ == "SourceFileLoader", "compiled by the installer, not by each process"

    @pytest.mark.perfgate("time <= 1s")
    def test_result_and_time(perfgate):
        view = perfgate(divmod, 17, 5)
        assert view.result == (3, 2)
        assert (0 < view.time < 1e9) is perfgate.measures
        with pytest.raises(Exception, match="no_such_metric"):
            view.no_such_metric

    @pytest.mark.perfgate("time <= 1s")
    def test_setup_feeds_the_call(perfgate):
        rows = []
        assert perfgate(lambda given, more: given + [more], 9, setup=lambda: ([1, 2],)).result == [1, 2, 9]
        perfgate(rows.append, setup=lambda: 7, name="one")
        assert set(rows) == {7}

    @pytest.mark.perfgate("time <= 1s")
    def test_check_refuses(perfgate):
        perfgate(int, check=lambda result: result == 1)

    @pytest.mark.perfgate("time <= 1s")
    def test_regions(perfgate):
        for _ in range(30):
            with perfgate.region():
                sum(range(100))
        for _ in range(30):
            with perfgate.region("other", limits="time <= 1ns"):
                sorted(range(50_000))

    @pytest.mark.perfgate("time <= 2ms")
    def test_recorded(perfgate):
        assert perfgate.record([1.0] * 20, unit="ms").time == 1e6

    @pytest.mark.perfgate("time <= 2ms")
    def test_wrong_unit(perfgate):
        perfgate.record([1.0], unit="fortnight")

    @pytest.mark.perfgate("time <= 1s")
    def test_limits_of_the_call(perfgate):
        perfgate(sorted, list(range(1_000)), limits=["time <= 1ns"])

    @pytest.mark.perfgate("time <= 1s")
    def test_notes_and_files(perfgate, tmp_path):
        file = tmp_path / "tiling.json"
        file.write_text("{}")
        perfgate(int)
        perfgate.note("config", "64x128")
        perfgate.attach("tiling/stage1.json", file)

    @pytest.mark.perfgate("time <= 1s")
    def test_attach_nothing(perfgate):
        perfgate(int)
        perfgate.attach("a", "no-such-file")

    @pytest.mark.perfgate("time <= 2ms")
    def test_read_theirs(perfgate):
        perfgate.read("theirs.json")

    @pytest.mark.perfgate("time <= 2ms")
    def test_read_nothing(perfgate):
        perfgate.read("nothing-*.json")

    @pytest.mark.perfgate("throughput >= 1/s", "time <= 1s")
    def test_work(perfgate):
        from pytest_perfgate import work
        view = perfgate(sum, range(1000), work=work.items(1000, "numbers"), calls=10)
        assert view.throughput > 1000

    def test_no_callable(perfgate):
        perfgate(3)
"""
EXPECTED = {
    "test_little_is_loaded": ("passed", ""),
    "test_result_and_time": ("passed", ""),
    "test_setup_feeds_the_call": ("passed", ""),
    "test_check_refuses": ("failed", "check= returned False"),
    "test_regions": ("failed", "#other"),
    "test_recorded": ("passed", ""),
    "test_wrong_unit": ("failed", "fortnight"),
    "test_limits_of_the_call": ("failed", "BROKEN"),
    "test_notes_and_files": ("passed", ""),
    "test_attach_nothing": ("failed", "found no file"),
    "test_read_theirs": ("passed", ""),
    "test_read_nothing": ("failed", "read() found"),
    "test_work": ("passed", ""),
    "test_no_callable": ("failed", "perfgate() needs a callable, got 3"),
}
THEIRS = {
    "machine_info": {},
    "commit_info": {},
    "version": "5.0.0",
    "datetime": "2026-01-01T00:00:00",
    "benchmarks": [
        {
            "group": None,
            "name": "test_a",
            "fullname": "t.py::test_a",
            "params": None,
            "param": None,
            "extra_info": {},
            "options": {},
            "stats": {"min": 0.001, "max": 0.001, "mean": 0.001, "stddev": 0.0, "rounds": 3, "median": 0.001,
                      "iqr": 0.0, "q1": 0.001, "q3": 0.001, "iterations": 1, "data": [0.001, 0.001, 0.001]},
        }
    ],
}  # fmt: skip


def test_everything_a_test_may_ask(project: Project) -> None:
    project.write("test_asked.py", ASKED)
    project.write("theirs.json", json.dumps(THEIRS))
    run = project.run(ci=True, fresh=True)
    outcomes = {n: (run.outcome(n), word if word in run.says(n) else run.says(n)) for n, (_, word) in EXPECTED.items()}
    assert outcomes == EXPECTED, run.text
    cases = {str(case.key): case for case in Records(project.root).read().cases}
    noted = cases["test_asked.py::test_notes_and_files"].measurement
    assert noted is not None
    assert noted.identity.notes == (("config", "64x128"),)
    assert noted.artifacts[0].parameters == (("name", "tiling/stage1.json"),)


SEEN = """
    import pytest
    from pytest_perfgate import work

    @pytest.mark.perfgate("time <= 1s")
    def test_share(perfgate):
        view = perfgate(sum, range(1000), work=work.gemm(10, 10, 5, dtype="fp64"))
        assert view.mfu == view.mfu_ceiling > 0
        assert view.mfu == pytest.approx(1000 / (view.time * 1e-9) / 1e12)
        assert view.sol == view.sol_ceiling == view.mfu  # 1,600 bytes lie in a cache: compute alone binds
"""


@pytest.mark.parametrize("mode", ["quick", "full"])
def test_a_test_reads_its_share_of_a_hosts_ceilings(project: Project, mode: str) -> None:
    project.write("test_seen.py", SEEN)
    device = probe_host().key
    ceilings = Ceilings(device=device, compute=(("fp64", 1e12),), bandwidth=1e9, method="made", when="2026-01-01")
    CeilingStore(lambda key: project.root / ".perfgate" / "baselines" / key).write(ceilings)
    run = project.run(f"--perfgate={mode}")
    assert run.outcome("test_share") == "passed", run.text
