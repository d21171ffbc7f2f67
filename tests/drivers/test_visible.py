"""Numbers, UUIDs and instances, as CUDA_VISIBLE_DEVICES writes them, on a management library of our own making."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from dataclasses import replace

import pytest

from pytest_perfgate.adapters.stores.records import Records
from tests.reports import DEVICE, case, run

pytest.importorskip("pynvml", reason="nvidia-ml-py is not installed", exc_type=ImportError)


@pytest.fixture
def cards(scenarios):
    return functools.partial(scenarios, "visible_scenarios.py")


def test_what_libraries_see_is_read_as_cuda_reads_it(cards) -> None:
    answer = cards("visible")
    whole = [f"{at} 00000000:{bus}:00.0 NVIDIA H200" for at, bus in enumerate(["1B", "3B", "5B", "7B"])]
    part = "3 00000000:7B:00.0 NVIDIA H200 MIG 1g.18gb"
    assert answer["unset"] == whole[:3]
    assert answer["2,0"] == [whole[2], whole[0]]
    assert answer["1,9,0"] == answer["1,-1,0"] == [whole[1]]
    assert answer["3"] == [part]
    assert answer["GPU-2,GPU-4"] == [whole[1], whole[3]]
    card, instance = next(names for text, names in answer.items() if text.startswith("GPU-31"))
    assert (card, instance) == (whole[2], part)
    assert [names for text, names in answer.items() if text.endswith("/8/0")] == [[part]]
    assert [names for text, names in answer.items() if text.endswith("/9/0")] == [[]]
    for nothing in ("0,0", "²", "NoDevFiles", "GPU-", "MIG-a", "none"):
        assert answer[nothing] == []


def test_numbers_of_unlike_cards_need_an_order(cards) -> None:
    answer = cards("visible")
    assert answer["unlike"] == "device-unmapped"
    assert [line.split()[0] for line in answer["sorted"]] == ["0", "2"]


def test_one_card_is_found_under_all_its_names_and_an_instance_has_the_clocks_of_its_card(cards) -> None:
    answer = cards("seen_through_two_libraries")
    third, fourth = (f"GPU-{n}1111111-2222-3333-4444-555555555555" for n in (3, 4))
    assert answer["uuids"] == [third, third, third, fourth]
    assert answer["part"]["instance"] == "8"


def test_the_device_that_is_asked_for_is_the_one_that_children_see(cards) -> None:
    answer = cards("picked_device")
    second = "GPU-21111111-2222-3333-4444-555555555555"
    assert (answer["0"], answer["1"]) == ("00000000:7B:00.0", "00000000:3B:00.0")
    assert answer[second] == answer[second[4:]] == "00000000:3B:00.0"
    assert answer["not 2"] == "device-unknown"
    assert (answer["sees"], answer["option"]) == (second, second)
    assert answer["few"] == ["", "it asks for 3 devices, and 2 of one kind are visible"]
    assert answer["insisted"] == "devices-few"


def test_the_doctor_names_a_card_with_errors_and_one_behind_its_siblings(tmp_path, drivers) -> None:
    device = replace(DEVICE, uuid="GPU-11111111-2222-3333-4444-555555555555")
    slow = replace(DEVICE, uuid="GPU-21111111-2222-3333-4444-555555555555")
    cases = [case(f"test_a{at}", 1e6, 1e6, device=device) for at in range(4)]
    cases += [case(f"test_b{at}", 1.09e6, 1e6, device=slow) for at in range(4)]
    Records(tmp_path).write(run(*cases))
    env = {**os.environ, "LD_LIBRARY_PATH": str(drivers), "FAKE_REMAP_PENDING": "1"}
    bare = "import sys; sys.modules['torch'] = None"  # the doctor imports it, and it takes longer than all the rest
    command = [
        sys.executable,
        "-c",
        f"{bare}; from pytest_perfgate.cli import main; main(['doctor', '--seconds', '0'])",
    ]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    text = " ".join(done.stdout.split())
    assert f"{device.uuid}: a bad row of its memory waits for a reset" in text, done.stderr
    assert f"{slow.uuid}: 9 % slower than others of NVIDIA-H200" in text
