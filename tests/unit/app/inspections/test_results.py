"""Tests of app/inspections/results: other tools' results, and files as cases."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from pytest_perfgate.app.inspections.results import ANYWHERE, Runs, case_name, changes_of, compared_files, device_of
from pytest_perfgate.core.judge.policy import CI
from pytest_perfgate.core.metric_kinds import by_name
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.metric import Analysis, Metric, MetricSet
from pytest_perfgate.model.plan import Compare, Outcome
from pytest_perfgate.model.values import Dimension
from tests.unit.core.judge.bench import limit


def analysis(*metrics: Metric, devices: tuple[str, ...] = ()) -> Analysis:
    return Analysis(kind="cubin", subject="k.cubin", metrics=MetricSet(metrics=metrics), views={}, devices=devices)


@pytest.mark.parametrize(
    ("devices", "key"),
    [
        (("NVIDIA H100 80GB HBM3",) * 2, "NVIDIA-H100-80GB-HBM3"),
        (("sm_90", "sm_80"), "sm_80+sm_90"),
        (("", "NVIDIA H200"), "NVIDIA-H200"),
        ((), ANYWHERE),
    ],
)
def test_the_device_of_a_file(devices: tuple[str, ...], key: str) -> None:
    assert device_of(analysis(devices=devices)).key == key


@pytest.mark.parametrize(
    ("paths", "stated", "name"),
    [
        (("a/k.cubin",), "", "a/k.cubin"),
        (("a/rank0.json", "a/rank1.json"), "", "a"),
        (("a/b/rank0.json", "a/c/rank1.json"), "", "a"),
        (("rank0.json", "rank1.json"), "", "files"),
        (("a/k.cubin",), "nightly/step", "nightly/step"),
    ],
)
def test_the_name_of_a_file(tmp_path: Path, paths: tuple[str, ...], stated: str, name: str) -> None:
    assert case_name([tmp_path / path for path in paths], tmp_path, stated) == name


def test_a_file_from_elsewhere_is_named_by_hand(tmp_path: Path) -> None:
    with pytest.raises(PerfgateError) as error:
        case_name([tmp_path / "k.cubin"], tmp_path / "project")
    assert error.value.code.name == "command-usage"


def test_a_slowdown_of_results_is_the_change_of_their_times() -> None:
    time = Metric(name="time", value=1e3, dimension=Dimension.TIME, labels=(("case", "copy"),))
    limits = [limit("slowdown <= 3%"), limit("time <= 1s"), limit("change(registers) <= 0")]
    changes = changes_of(limits, MetricSet(metrics=(time,)))
    assert [(one.metric, one.compare) for one in changes] == [
        ("time", Compare.RELATIVE),
        ("registers", Compare.ABSOLUTE),
    ]
    assert [one.metric for one in changes_of(limits, MetricSet())] == ["registers"]
    slower = analysis(Metric(name="time", value=1.1e3, dimension=Dimension.TIME, labels=(("case", "copy"),)))
    (verdict,) = compared_files(analysis(time), slower, changes[:1], CI, by_name())
    assert verdict.outcome is Outcome.REGRESSED
    assert verdict.next == ()


def test_a_record_is_known_however_it_is_indented_or_packed() -> None:
    runs = Runs(lambda path: pytest.fail(f"{path} is read"))
    for text in (b'{"perfgate":1,"run":{}}', b'\n{\n    "perfgate": 1,\n    "run": {}}'):
        assert runs.recognises(Path("r"), text)
        assert runs.recognises(Path("r"), gzip.compress(text))
    assert not runs.recognises(Path("r"), b'{"perfgate_history": 1}')
    assert not runs.recognises(Path("r"), gzip.compress(b"perfgate"))
