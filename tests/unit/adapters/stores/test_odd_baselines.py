"""Baselines in places and under names that are out of the way: another folder, ids of any length."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from pytest_perfgate.adapters.stores.baselines import Baselines
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.measurement import Identity
from tests.unit.adapters.stores.test_baselines import DEVICE, accepted


def test_a_folder_outside_of_the_root_is_shown_whole(tmp_path: Path) -> None:
    root, folder = tmp_path / "project", tmp_path / "kept"
    root.mkdir()
    store = Baselines(root, devices=("NVIDIA-*",), folder=str(folder))
    (file,) = store.write([accepted("test_a")])
    assert file == folder / DEVICE / "tests" / "test_k.py.yaml"
    (line,) = store.read(DEVICE, "tests/test_k.py").values()
    assert line.place == f"{file}: baselines.'test_a'"
    file.write_text("half", encoding="utf-8")
    with pytest.raises(PerfgateError) as caught:
        store.read(DEVICE, "tests/test_k.py")
    assert str(file) in caught.value.place


@pytest.mark.parametrize("length", [900, 1020, 1024, 1100, 5000, 40000])
@pytest.mark.parametrize(
    "fields",
    [
        {"why": "as it is"},
        {"processes": 3},
        {"identity": Identity(device=DEVICE, notes=(("k" * 3000, "v" * 3000),))},
    ],
)
def test_an_id_of_any_length_is_written_and_read(store: Baselines, file: Path, length: int, fields) -> None:
    long = [accepted(f"test_k[{letter * length}]", **fields) for letter in ("a", "it's ", "ü\\\x85")]
    short = accepted("test_b", why="short")
    later = accepted("test_z", processes=2)
    store.write([short, *long, later])
    found = store.read(DEVICE, "tests/test_k.py")
    assert [(line.key, line.identity, line.time) for line in found.values()] == [
        (line.key, line.identity, line.time) for line in sorted([short, *long, later], key=lambda line: line.key.test)
    ]
    faster = replace(long[0], time=1000.0)
    store.write([faster])
    assert store.read(DEVICE, "tests/test_k.py")[str(faster.key)].time == 1000.0
    store.remove(DEVICE, [line.key for line in long])
    assert set(store.read(DEVICE, "tests/test_k.py")) == {str(short.key), str(later.key)}
    assert all(len(line) < 900 for line in file.read_text(encoding="utf-8").splitlines()), "nothing is left of them"
    store.write(long)
    assert len(yaml.safe_load(file.read_text(encoding="utf-8"))["baselines"]) == 5, "anybody's YAML reads it"
