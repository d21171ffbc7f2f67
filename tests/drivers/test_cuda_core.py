"""cuda.core itself on a driver of our own making: call order, error paths, and an exact truth about time."""

from __future__ import annotations

import functools
from importlib import metadata

import pytest

pytest.importorskip("cuda.core", reason="cuda-core is not installed", exc_type=ImportError)


@pytest.fixture
def cuda(scenarios):
    return functools.partial(scenarios, "cuda_scenarios.py")


def test_three_percent_are_caught_and_none_is_not(cuda) -> None:
    answer = cuda("slowdown_and_none")
    assert answer["again"] == answer["first"]
    assert answer["slower"] - answer["first"] == pytest.approx(3_000, rel=0.01)


def test_each_call_is_timed_on_the_device_of_its_stream_with_that_devices_cache_flushed(cuda) -> None:
    answer = cuda("two_devices")
    assert answer["devices"] == [[0, "11"], [1, "22"], [0, "11"], [1, "22"], [1, "22"]]
    assert answer["took"] == pytest.approx([100_000] * 5, rel=0.05)
    assert answer["limits"] == ["limit", "limit1"], "once for the context of each device"


def test_records_are_tight_and_read_after_one_synchronisation(cuda) -> None:
    calls = " ".join(cuda("call_order")["said"])
    assert "sync " + "record launch record " * 64 + "sync" in calls
    assert "create record" not in calls.partition("record launch record " * 64)[2]


def test_the_device_is_found_in_the_catalogue(cuda) -> None:
    answer = cuda("the_device")
    assert answer["name"] == "NVIDIA H200"
    assert answer["arch"] == "sm_90"
    assert answer["sheet"] == "H200 SXM"
    assert answer["uuid"]
    assert answer["facts"]["framework"] == f"cuda.core {metadata.version('cuda-core')}"
    assert answer["facts"]["toolkit"] == metadata.version("cuda-bindings")


def test_a_queue_is_held_back_by_a_word_of_memory(cuda) -> None:
    answer = cuda("held_back")
    assert (answer["before"], answer["after"]) == (0, 1)
    calls = answer["said"]
    assert calls.count("hostalloc") == 1
    proof = calls.index("waitvalue", calls.index("waitvalue") + 1)
    assert calls[proof : proof + 3] == ["waitvalue", "record", "record"]
    first = calls.index("waitvalue", proof + 1)
    assert calls[first : first + 4] == ["waitvalue", "record", "launch", "record"]
    assert answer["median"] == pytest.approx(104_500, rel=0.05)


def test_a_device_without_memory_operations_says_so(cuda) -> None:
    answer = cuda("no_wait_value")
    assert answer["usable"] is False
    assert "cuStreamWaitValue32_v2 returned 801" in answer["why"]


def test_a_lost_device_gives_no_number(cuda) -> None:
    assert cuda("lost_while_measuring")["code"] == "device-lost"


def test_too_short_a_kernel_gives_no_number(cuda) -> None:
    assert cuda("too_short")["code"] == "timer-too-coarse"


def test_short_kernels_are_timed_by_a_graph_to_the_percent(cuda) -> None:
    answer = cuda("graphs")
    first, again, slower = answer["took"]
    assert first == again == pytest.approx(2_000, rel=0.001)
    assert slower / first == pytest.approx(1.03, rel=0.001)
    assert answer["batch"] >= 100
    assert answer["problems"] == 0
    calls = " ".join(answer["said"])
    assert "begin captured end" in calls
    assert "record graph record" in calls


def test_a_cold_graph_holds_a_call_on_every_buffer(cuda) -> None:
    answer = cuda("a_cold_graph")
    assert answer["buffers"] * 100_000 > 2 << 20
    assert answer["batch"] >= answer["buffers"]
    assert "22 buffers" in answer["notes"]["graph"]
    assert "fill graph" not in " ".join(answer["said"])


def test_a_capture_that_fails_gives_no_number(cuda) -> None:
    assert cuda("a_capture_that_fails")["code"] == "graph-unsupported"


def test_a_graph_that_is_asked_for_by_name_is_made_on_the_stream_of_the_call(cuda) -> None:
    assert cuda("a_graph_that_is_asked_for")["took"] == pytest.approx(2_000, rel=0.02)


def test_the_default_stream_has_no_graphs(cuda) -> None:
    answer = cuda("no_stream_of_its_own")
    assert answer["code"] == "graph-unsupported"
    assert "no stream of its own" in answer["text"]


def test_a_missing_driver_is_a_reason(cuda) -> None:
    answer = cuda("missing", missing=True)
    assert answer["usable"] is False
    assert "driver" in answer["why"]
    assert cuda("present")["usable"] is True


def test_the_least_work_is_done_and_given_back(cuda) -> None:
    answer = cuda("least_work")
    assert answer["words"] == ["sync", "alloc", "touch", "sync"]
    assert answer["memory"] == [2.0**37, None]
    assert answer["uuid"] == ["11111111-1111-1111-1111-111111111111", ""]


def test_a_call_with_an_array_on_the_gpu_is_timed_on_the_default_stream(cuda) -> None:
    answer = cuda("shared_arrays")
    assert answer["OnTheGpu"] == pytest.approx(100_000, rel=0.02)
    assert answer["OnTheHost"] == "host"


def test_a_call_of_an_unknown_library_ends_when_its_device_has_worked(cuda) -> None:
    answer = cuda("behind_the_host")
    assert answer["launch"]["took"] >= 5e6
    assert "wait" in answer["launch"]["notes"]
    assert answer["compute"]["took"] < 5e5
    assert not answer["compute"]["notes"]
    assert {"sync", "sync1"} <= set(answer["said"]), "both devices"


def test_the_copy_of_the_gpu_check_is_timed_by_events_and_by_a_graph(cuda) -> None:
    answer = cuda("copies_of_the_check")
    events, graph = answer["rows"]
    assert [row["refused"] for row in answer["late"]] == ["no time"], "after the part's time nothing is measured"
    assert events["ns"] == pytest.approx(61_000, rel=0.02), events
    assert graph["timer"] == "graph"
    assert "ns" in graph, graph
