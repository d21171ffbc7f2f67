"""A suite divided by ``--perfgate-shard``, and the records of its shards merged."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from pytest_perfgate.adapters.stores.records import Records, read_record
from pytest_perfgate.core.judge.shards import Source, merged
from pytest_perfgate.model.plan import Outcome
from pytest_perfgate.model.verdict import RunReport
from tests.plugin.projects import Project

SUITE = """
import pytest

@pytest.mark.perfgate("time <= 1 s")
@pytest.mark.parametrize("n", [1, 2])
def test_family(perfgate, n):
    perfgate(lambda: n)

@pytest.mark.perfgate("time <= 1 ns")
def test_broken(perfgate):
    perfgate(lambda: sum(range(100)))

@pytest.mark.perfgate("time <= 1 s")
def test_kept(perfgate):
    perfgate(lambda: 0)

def test_plain():
    pass
"""


def shards(project: Project, count: int, *options: str) -> list[RunReport]:
    """The record of every shard."""
    reports = []
    for index in range(1, count + 1):
        path = project.root / f"{index}.json"
        project.run("--perfgate=full", "--perfgate-rounds=1", f"--perfgate-shard={index}/{count}",
                    f"--perfgate-json={path}", *options)  # fmt: skip
        reports.append(read_record(path))
    return reports


def outcomes(report: RunReport) -> dict[str, Outcome]:
    return {case.key.test: case.worst for case in report.cases}


@pytest.mark.slow
@pytest.mark.parametrize("options", [(), ("-n", "2")], ids=["one process", "xdist"])
def test_shards_together_are_the_whole(project: Project, options: tuple[str, ...]) -> None:
    project.write("test_k.py", SUITE)
    reports = shards(project, 2, *options)
    names = sorted(outcomes(reports[0]).keys() | outcomes(reports[1]).keys())
    assert names == ["test_broken", "test_family[1]", "test_family[2]", "test_kept"]
    assert not outcomes(reports[0]).keys() & outcomes(reports[1]).keys()
    assert all(report.filtered and not report.notes for report in reports)
    assert {report.shards[0].universe for report in reports} == {reports[0].shards[0].universe}
    assert len({report.shards[0].run for report in reports}) == 2
    whole = merged([Source(place=str(at), report=report) for at, report in enumerate(reports)])
    assert outcomes(whole)["test_broken"] is Outcome.BROKEN
    assert len(whole.cases) == 4
    assert not whole.filtered
    costs = dict(cost for shard in whole.shards for cost in shard.costs)
    assert len(costs) == 4
    assert all(cost > 0 for cost in costs.values())


def test_a_shard_without_a_test_passes_and_has_a_record(project: Project) -> None:
    project.write("test_k.py", "def test_a(perfgate):\n    perfgate(lambda: 0)\n")
    runs = [project.run("--perfgate=quick", f"--perfgate-shard={k}/3", f"--perfgate-json={k}.json") for k in (1, 2, 3)]
    assert [run.code for run in runs] == [0, 0, 0]
    sizes = [len(read_record(project.root / f"{k}.json").cases) for k in (1, 2, 3)]
    assert sorted(sizes) == [0, 0, 1]


def test_a_shard_that_failed_is_to_be_merged_before_it_is_reported(project: Project) -> None:
    project.write(
        "test_k.py", 'import pytest\n@pytest.mark.perfgate("time <= 1 ns")\ndef test_a(perfgate):\n    perfgate(dict)\n'
    )
    runs = [project.run("--perfgate=quick", f"--perfgate-shard={k}/2") for k in (1, 2)]
    (failed,) = [run for run in runs if run.code]
    assert "next  perfgate merge FOLDER" in failed.text
    assert "perfgate report" not in failed.text
    assert "records of all 2 shards" in failed.text


def test_tests_of_other_shards_are_neither_dropped_nor_left_out(project: Project) -> None:
    project.configure('rounds = 1\ndevices = ["*"]')
    project.write("test_k.py", SUITE.replace("time <= 1 s", "slowdown <= 900%"))
    project.run("--perfgate=full")
    accepted = project.root / ".perfgate" / "baselines"
    accepted.rename(project.root / "baselines") if accepted.is_dir() else None
    done = project.run(
        "--perfgate=full", "--perfgate-shard=1/2", "--perfgate-json=1.json", "--perfgate-policy=unused=fail"
    )
    report = read_record(project.root / "1.json")
    assert not [note for note in report.notes if note.kind in {"dropped", "left out", "removed", "unmatched"}], (
        done.text
    )


def test_what_the_command_leaves_out_belongs_to_no_shard(project: Project) -> None:
    project.write("test_k.py", SUITE)
    done = project.run("--perfgate=quick", "--perfgate-shard=1/1", "-k", "kept or broken", "--perfgate-json=1.json")
    assert "next  perfgate report" in done.text
    (shard,) = read_record(project.root / "1.json").shards
    assert [name.partition("::")[2] for name, _ in shard.universe.cases] == ["test_broken", "test_kept"]
    assert shard.filtered


@pytest.mark.parametrize(
    ("options", "fix"),
    [
        (("--splits=2", "--group=1"), "--perfgate-shard 1/2"),
        (("--num-shards=4", "--shard-id=0"), "--perfgate-shard 1/4"),
    ],
)
def test_another_plugin_that_divides_is_refused(project: Project, options: tuple[str, ...], fix: str) -> None:
    project.write("test_k.py", SUITE)
    names = ("splits", "group", "num-shards", "shard-id")
    lines = "\n".join(f"    parser.addoption('--{name}', type=int, default={int('num' in name)})" for name in names)
    project.write("conftest.py", f"def pytest_addoption(parser):\n{lines}\n")
    done = project.run("--perfgate=full", *options)
    assert done.code == 4
    assert "shard-foreign" in done.text
    assert fix in done.text
    assert project.run("--perfgate=off", *options).code == 0


@pytest.mark.parametrize("option", ["--perfgate-shard=0/3", "--perfgate-shard=auto", "--perfgate-shard="])
def test_a_shard_that_is_none_is_an_error_of_usage(project: Project, option: str) -> None:
    project.write("test_k.py", SUITE)
    assert project.run("--perfgate=full", option).code == 4


@pytest.mark.parametrize("words", [(), ("-n", "1")], ids=["one process", "xdist"])
def test_a_shard_that_settings_ask_for_is_refused(project: Project, words: tuple[str, ...]) -> None:
    """A change that writes it would have the rest of the suite measured by nobody."""
    project.configure(pytest_ini='addopts = "--perfgate-shard=1/2"')
    project.write("test_k.py", SUITE)
    done = project.run("--perfgate=full", *words, ci=True)
    assert done.code != 0
    assert "shard-unknown" in done.text
    assert not any(outcome == "passed" for outcome, _ in done.tests.values())


def test_a_conftest_chooses_no_shard(project: Project) -> None:
    project.write("conftest.py", 'import os\nos.environ["PERFGATE_SHARD"] = "1/2"\n')
    project.write("test_k.py", SUITE)
    assert project.run("--perfgate=full", "--perfgate-shard=auto").code == 4
    done = project.run("--perfgate=off", "--perfgate-shard=auto", PERFGATE_SHARD="2/2")
    assert "shard 2/2" in done.text


def test_costs_of_a_record_balance_the_shards(project: Project) -> None:
    names = ("long", "quick", "fast", "swift")
    project.write("test_k.py", "".join(f"def test_{name}(perfgate):\n    perfgate(lambda: 0)\n\n" for name in names))
    project.run("--perfgate=full", "--perfgate-rounds=1", "--perfgate-json=whole.json")
    whole = read_record(project.root / "whole.json")
    (shard,) = whole.shards
    assert sorted(name for name, _ in shard.costs) == sorted(f"test_k.py::test_{name}" for name in names)
    costs = tuple((name, 20.0 if "long" in name else cost) for name, cost in shard.costs)
    costly = Records(project.root).write(replace(whole, shards=(replace(shard, costs=costs),)))

    def sizes(*words: str) -> list[int]:
        return sorted(len(project.run("--perfgate=off", *words, f"--perfgate-shard={k}/2").tests) for k in (1, 2))

    assert sizes() == [2, 2], "by names alone"
    assert sizes(f"--perfgate-shard-costs={costly}") == [1, 3]
    assert project.run("--perfgate=off", "--perfgate-shard=1/2", "--perfgate-shard-costs=none.json").code == 4


@pytest.mark.slow
def test_a_shard_spends_its_share_of_the_alarms(project: Project) -> None:
    project.write("test_k.py", SUITE)
    project.write(
        "conftest.py",
        """
        def pytest_runtest_logfinish(nodeid, location):
            pass
        def pytest_sessionfinish(session):
            role = session.config.pluginmanager.get_plugin("perfgate-role")
            context = role.session.gate_judge.context
            print("SHARE", context.share, "GATES", context.gates)
    """,
    )
    whole = project.run("--perfgate=full", "-s")
    assert "SHARE 1.0 GATES 4" in whole.text
    parts = [project.run("--perfgate=full", "-s", f"--perfgate-shard={k}/2").text for k in (1, 2)]
    shares = sorted(float(text.partition("SHARE ")[2].split()[0]) for text in parts)
    assert sum(shares) == 1
    assert all("GATES 4" in text for text in parts)


CARD = """
import time
from pytest_perfgate.testing import SimulatedGpu


class Card(SimulatedGpu):
    \"\"\"A simulated card whose host is this one: it waits for as long as the card says that it worked.\"\"\"

    name = "card"

    def submit(self, work, cost, stream=0):
        self.now = max(self.now, time.perf_counter_ns())
        super().submit(work, cost, stream)

    def _wait(self, until):
        super()._wait(until)
        while (left := self.now - time.perf_counter_ns()) > 0:
            time.sleep(left / 1e9)


GPU = Card()


def pytest_perfgate_runtimes():
    return [GPU]
"""

CASES = """
import os
import pytest
from conftest import GPU

SLOWER = os.environ.get("SLOWER", "").split(",")

@pytest.mark.perfgate("slowdown <= 3%", "time <= 1 ms", runtime="card", timer="events")
@pytest.mark.parametrize("n", range(2))
@pytest.mark.parametrize("name", [f"k{at}" for at in range(8)])
def test_kernel(perfgate, name, n):
    cost = 100_000 * (1.1 if f"{name}-{n}" in SLOWER else 1.0)
    perfgate(lambda: GPU.kernel(cost))
"""


@pytest.mark.slow
def test_eight_shards_on_two_workers_say_what_one_run_says(project: Project) -> None:
    """Also where a test is 10 % slower, in the first shard as in the last."""
    project.configure('confirmation = "interval"', 'pythonpath = ["."]')
    project.write("conftest.py", CARD)
    project.write("test_k.py", CASES)
    project.run("--perfgate=full")
    slower = {"SLOWER": "k0-0,k7-1"}
    project.run("--perfgate=full", "--perfgate-json=whole.json", **slower)

    def shard(index: int) -> RunReport:
        words = (f"--perfgate-shard={index}/8", f"--perfgate-json={index}.json", f"--junitxml={index}.xml")
        project.run("--perfgate=full", *words, fresh=True, **slower)
        return read_record(project.root / f"{index}.json")

    with ThreadPoolExecutor(2) as workers:
        reports = list(workers.map(shard, range(1, 9)))
    together = outcomes(merged([Source(place=str(at), report=one) for at, one in enumerate(reports)]))
    alone = outcomes(read_record(project.root / "whole.json"))
    assert len(alone) == 16
    assert together == alone
    assert {name for name, outcome in alone.items() if outcome is not Outcome.PASSED} == {
        "test_kernel[k0-0]", "test_kernel[k7-1]",
    }  # fmt: skip
    assert sum(bool(report.cases) for report in reports) > 4
