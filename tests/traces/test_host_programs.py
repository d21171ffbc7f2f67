"""A program of the host alone, and what tells that a trace has lost the work of its device."""

from __future__ import annotations

import pytest

from pytest_perfgate.wiring import built_ins

from .generated import host, written


@pytest.fixture(scope="module")
def kineto():
    return next(one for one in built_ins.BuiltIns().pytest_perfgate_inspectors() if one.name == "kineto")


def shaped(*dims):
    return {"Input Dims": list(dims), "Input type": ["float"] * len(dims)}


def test_a_program_without_a_gpu_has_no_zeros_of_devices(kineto, tmp_path):
    events = [host("aten::mm", 0, 10, **shaped([8, 8], [8, 8])), host("aten::add", 20, 5)]
    metrics = kineto.inspect([written(tmp_path / "t.json", events)], {}).metrics
    assert metrics.find("total_time")[0].value == 25_000
    assert metrics.find("op_time", (("op", "aten::mm"),))[0].value == 10_000
    for name in ("overlap", "communication_time", "exposed_memcpy", "memset_time", "kernel_time", "coverage"):
        assert not metrics.find(name), name
        assert metrics.missing(name).why == "this program has no GPU: its operators run on the host"


@pytest.mark.parametrize(("backend", "measured"), [("nccl", False), ("gloo", True), (7, True)])
def test_a_rank_of_a_gpu_job_without_gpu_events_is_not_a_host_program(kineto, tmp_path, backend, measured):
    info = {"backend": backend, "rank": 0, "world_size": 2}
    path = written(tmp_path / "t.json", [host("aten::mm", 0, 10, **shaped([8, 8], [8, 8]))], distributedInfo=info)
    metrics = kineto.inspect([path], {}).metrics
    assert bool(metrics.find("idle")) is measured
    assert metrics.missing("overlap").why.startswith("this program" if measured else "the trace has no GPU activity")


@pytest.mark.parametrize(
    ("name", "measured"),
    [
        ("aten::cudnn_convolution", False),
        ("aten::_mps_convolution", False),
        ("aten::_scaled_dot_product_attention_math_for_mps", False),
        ("aten::_scaled_dot_product_flash_attention", False),
        ("aten::_scaled_dot_product_flash_attention_for_cpu", True),
        ("aten::_use_cudnn_ctc_loss", True),
    ],
)
def test_operators_that_only_a_device_has_tell_that_its_activity_is_missing(kineto, tmp_path, name, measured):
    path = written(tmp_path / "t.json", [host("aten::mm", 0, 10, **shaped([8, 8], [8, 8])), host(name, 20, 5)])
    metrics = kineto.inspect([path], {}).metrics
    assert bool(metrics.find("idle")) is measured
    assert bool(metrics.find("op_time", (("op", "aten::mm"),))) is measured


def test_memory_of_a_device_tells_that_its_activity_is_missing(kineto, tmp_path):
    def memory(of):
        args = {"Bytes": 4, "Addr": 1, "Device Id": 0, "Device Type": of}
        return {
            "ph": "i",
            "cat": "cpu_instant_event",
            "s": "t",
            "name": "[memory]",
            "pid": 1,
            "tid": 1,
            "ts": 5,
            "args": args,
        }

    ran = host("aten::mm", 0, 10, **shaped([8, 8], [8, 8]))
    (first, second) = (kineto.inspect([written(tmp_path / "t.json", [ran, memory(of)])], {}).metrics for of in (0, 1))
    assert first.find("op_time", (("op", "aten::mm"),))
    assert not second.find("op_time")
    told = second.missing("op_time")
    assert told.why == "the trace has no GPU activity"
    assert "ProfilerActivity.CUDA" in told.mend
