"""Exports of the profiler's versions, of other devices and of other programs: an answer or a clear error for each."""

from __future__ import annotations

import gzip
import json

import pytest

from pytest_perfgate.core.render.text import render_text
from pytest_perfgate.model.errors import PerfgateError
from tests.kineto_file import host, kernel, launch, written

MM = {"Input Dims": [[64, 32], [32, 16]], "Input type": ["float", "float"]}


def step(*, runtime="cuda_runtime", call="cudaLaunchKernel", of_host=None, of_kernel=None, names=("sgemm", "gelu")):
    """A product and what follows it: two operators, their launches, 20 and 5 µs on the device."""
    events = []
    for n, (op, name, length) in enumerate((("aten::mm", names[0], 20), ("aten::gelu", names[1], 5))):
        at, link = 100 * n, {"External id": n + 1}
        events.append(host(op, at, 30, **(MM if not n else {}), **link, **(of_host or {})))
        events.append(host(call, at + 5, 3, cat=runtime, correlation=n + 1, **link))
        events.append(kernel(name, at + 10, length, correlation=n + 1, **link, **(of_kernel or {})))
    return events


def flows(events):
    """Arrows from launches to kernels, as ac2g writes them."""
    ends = [("s", e) for e in events if "runtime" in e["cat"]] + [("f", e) for e in events if e["cat"] == "kernel"]
    return [
        {"ph": ph, "id": e["args"]["correlation"], "pid": e["pid"], "tid": e["tid"], "ts": e["ts"], "cat": "ac2g",
         "name": "ac2g", **({"bp": "e"} if ph == "f" else {})}
        for ph, e in ends
    ]  # fmt: skip


def xpu():
    """Intel: no stream, no device properties; queues are numbered by thread."""
    events = step(runtime="xpu_runtime", call="urEnqueueKernelLaunch", of_kernel={"sycl queue": 64, "l0 queue": "0x5"})
    for event in events:
        event["args"].pop("stream", None)
    return [*events, host("zeCommandListAppendLaunchKernel", 6, 1, cat="xpu_driver", correlation=1)]


def mtia():
    """What runs on an MTIA has a category of its own, and another call launches it."""
    call = "runFunction - job_prep_and_submit_for_execution"
    return changed(
        step(runtime="mtia_runtime", call=call),
        cat=lambda event: "mtia_ccp_events" if event["cat"] == "kernel" else event["cat"],
    )


def memory():
    """profile_memory and with_modules: instants and counters between the events, spans of the profiler itself."""
    return [
        {"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 1, "tid": 1, "ts": 3,
         "args": {"Total Reserved": 0, "Bytes": -512, "Addr": 140, "Device Type": 1}},
        {"ph": "C", "name": "GPU 0", "pid": 0, "ts": 4, "args": {"dram": 0.5}},
        {"ph": "X", "cat": "Trace", "ts": 0, "dur": 900, "pid": "Spans", "tid": "PyTorch Profiler", "name": "span"},
        {"ph": "X", "cat": "overhead", "name": "Activity Buffer Request", "pid": -1, "tid": 0, "ts": 1, "dur": 50},
        {"ph": "X", "cat": "cuda_sync", "name": "Stream Sync", "pid": 0, "tid": 7, "ts": 300, "dur": 9, "args": {}},
        {"ph": "X", "cat": "graph_event_node", "name": "EventRecord", "pid": 0, "tid": 7, "ts": 300, "dur": 0, "args": {}},
        {"ph": "X", "cat": "graph_host_node", "name": "HostNode: f", "pid": 0, "tid": 7, "ts": 300, "dur": 50, "args": {}},
        {"ph": "i", "name": "Record Window End", "s": "g", "pid": "", "tid": "", "ts": 400},
        {"ph": "M", "name": "process_labels", "pid": 0, "args": {"labels": "GPU 0"}},
    ]  # fmt: skip


def changed(events, **change):
    return [{**event, **{key: make(event) for key, make in change.items()}} for event in events]


HEADER = {
    "deviceProperties": [{"id": 0, "name": "NVIDIA A100", "numSms": 108}],
    "cupti_version": 24,
    "with_flops": 1,
    "with_modules": 1,
    "profile_memory": 1,
    "trace_id": "DB6A",
    "displayTimeUnit": "ms",
    "traceName": "t.json",
    "baseTimeNanoseconds": 1759300074000000000,
}
OLD = {"cpu_op": "Operator", "cuda_runtime": "Runtime", "kernel": "Kernel"}
ANSWERS = {
    "torch 2": ([*step(), *flows(step())], HEADER),
    "torch 2, everything asked for": ([*step(), *memory(), *flows(step())], HEADER),
    "torch 1.8, categories of its own": (changed(step(), cat=lambda e: OLD[e["cat"]]), {}),
    "torch 1.13, whole microseconds since 1970": (changed(step(), ts=lambda e: 1669329643132548 + e["ts"]), {}),
    "ROCm": (step(runtime="hip_runtime", call="hipLaunchKernel", names=("Cijk_Alik_MT64x64x32", "wise")), {}),
    "XPU": (xpu(), {"deviceProperties": [], "displayTimeUnit": "ms"}),
    "MTIA": (mtia(), {}),
    "private use": (step(runtime="privateuse1_driver", call="aclrtLaunchKernel"), {}),
    "a fork for MLU": (step(runtime="mlu_runtime", call="cnInvokeKernel"), {}),
    "a fork for MUSA": (step(runtime="musa_driver", call="muLaunchKernel"), {}),
    "times as texts": (changed(step(), ts=lambda e: str(e["ts"]), dur=lambda e: f"{e['dur']}.0"), {}),
    "times in the order of nothing": (step()[::-1], {}),
    "text of a serving engine": (
        [*step(of_host={"Trace name": "vllm::decode"}), host("execute_context_0(0)", 0, 90)],
        {},
    ),
    "names in every script": (step(names=("核函数_" + "ж" * 70_000, "\U0001f525\u0000\ud83d")), {}),
    "types without shapes": (changed(step(), args=lambda e: {**e["args"], "Input Dims": []}), {}),
    "text ids": (changed(step(), pid=lambda e: f"p{e['pid']}", tid=lambda e: f"t{e['tid']}"), {}),
    "empty names of devices": (step(), {"deviceProperties": [{}], "distributedInfo": None}),
    "odd header": (step(), {"distributedInfo": "none", "deviceProperties": {"id": 0}, "baseTimeNanoseconds": "1"}),
}


@pytest.mark.parametrize("events", [mtia(), step(runtime="mlu_runtime", call="cnInvokeKernel")], ids=["MTIA", "MLU"])
def test_another_device_launches_as_any_device_does(kineto, tmp_path, events):
    texts = [
        render_text(kineto.inspect([written(tmp_path / f"{n}.json", those)], {}).views["report"]())
        for n, those in enumerate((step(), events))
    ]
    assert "the host launches for 2.9 %" in " ".join(texts[0].split())
    assert texts[0].splitlines()[2:] == texts[1].splitlines()[2:]


@pytest.mark.parametrize("device", ["gpu", "mlu", "musa"])
def test_copies_and_waits_of_a_device_are_known_by_the_parts_of_their_names(kineto, tmp_path, device):
    copy = {**event(cat=f"{device}_memcpy", name="Memcpy HtoD", ts=60, dur=10), "pid": 0, "tid": 7}
    wait = event(cat=f"{device}_sync", name="Stream Sync", ts=60, dur=90)
    analysis = kineto.inspect([written(tmp_path / "t.json", [*step(), copy, wait])], {})
    assert analysis.metrics.find("busy_time")[0].value == pytest.approx(35_000, abs=300)
    assert "unknown" not in analysis.window


@pytest.mark.parametrize("name", ANSWERS)
def test_an_export_has_its_figures(kineto, tmp_path, name):
    events, header = ANSWERS[name]
    path = written(tmp_path / "t.json", events, **header)
    assert kineto.recognises(path, path.read_bytes()[:4096])
    analysis = kineto.inspect([path], {})
    assert analysis.metrics.find("busy_time")[0].value == pytest.approx(25_000, abs=300), name
    assert analysis.metrics.find("coverage")[0].value == 1
    assert analysis.metrics.find("op_time", (("op", "aten::mm"),))[0].value == pytest.approx(20_000, abs=300)
    assert not analysis.problems
    assert "unknown" not in analysis.window
    assert render_text(analysis.views["rough"]())
    assert render_text(analysis.views["report"]())


def test_the_first_exports_named_their_devices_under_another_key(kineto, tmp_path):
    path = written(tmp_path / "t.json", step(), computeProperties=[{"id": 0, "name": "Tesla V100-DGXS-32GB"}])
    text = render_text(kineto.inspect([path], {}).views["rough"]())
    assert "Tesla V100-DGXS-32GB" in text


TEXT = json.dumps({"traceEvents": step()})
TEXTS = {
    "numbers in exponents": TEXT.replace('"dur": 20', '"dur": 2.0E1').replace('"ts": 10,', '"ts": 1e+1,'),
    "keys twice, the later counts": TEXT.replace('"dur": 20', '"dur": 7, "dur": 20'),
    "an empty list before": TEXT.replace('{"traceEvents"', '{"traceEvents_": [], "traceEvents"'),
    "a bare list": json.dumps(step()),
    "one event a line": TEXT.replace("}, {", "},\n{"),
    "tabs and carriage returns": TEXT.replace("}, {", "},\r\n\t{"),
    "names that look like an end": TEXT.replace('"gelu"', '"},\\n  {\\"ph\\": ]}"'),
    "events that are nothing": TEXT.replace('[{"ph"', '[null, {}, {"ph"', 1),
}


@pytest.mark.parametrize("name", TEXTS)
def test_a_writer_s_habits_change_nothing(kineto, tmp_path, name):
    path = tmp_path / "t.json.gz"
    path.write_bytes(gzip.compress(TEXTS[name].encode()))
    assert kineto.recognises(path, path.read_bytes()[:4096])
    assert kineto.inspect([path], {}).metrics.find("busy_time")[0].value == 25_000


def event(**more):
    return {"ph": "X", "pid": 1, "tid": 1, "ts": 1, "dur": 2, "name": "f", **more}


REFUSED = {
    "begin and end apart": (
        [event(ph="B", cat="kernel"), event(ph="E", cat="kernel", ts=9)], "trace-foreign", "phases B and E"
    ),
    "JAX": ([event(args={"hlo_op": "fusion.1"}), event(ph="M", name="process_name")], "trace-foreign", "no category (1)"),
    "HPU": ([event(cat="hpu_op")] * 2, "trace-foreign", "hpu_op (2)"),
    "a browser": ([event(cat="devtools.timeline,v8")], "trace-foreign", "1 event, and none of a category"),
    "a call without torch": ([event(cat="Trace")], "trace-empty", "the recorded code called nothing of PyTorch"),
    "only metadata": ([event(ph="M")] * 3, "trace-empty", "3 events, none of them with a category and a duration"),
    "no durations": ([event(cat="kernel", dur=None)], "trace-empty", "1 event, none of them"),
    "lists in lists": ([[[1]]], "trace-foreign", "that is not an event (1)"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_holds_nothing_of_pytorch_says_what_it_holds(kineto, tmp_path, name):
    events, code, message = REFUSED[name]
    with pytest.raises(PerfgateError) as error:
        kineto.inspect([written(tmp_path / "t.json", events)], {})
    assert (error.value.code.name, message in error.value.what) == (code, True), error.value.text()


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        ('{"traceEvents": null}', "trace-not-a-trace", '"traceEvents" holds no list'),
        ('{"traceEvents": {"a": 1}}', "trace-not-a-trace", '"traceEvents" holds no list'),
        ('{"traceEvents": [], "otherEvents": [{"ph": "X"}]}', "trace-empty", "no events"),
        (TEXT.replace('"ts": 10,', '"ts": 1e400,'), "trace-malformed", "larger than a computer's"),
        (TEXT[:-2] + ",", "trace-truncated", "in the middle of an event list"),
        (TEXT + TEXT, "trace-two-documents", f"another document starts at byte {len(TEXT):,}"),
    ],
)
def test_what_is_broken_says_where(kineto, tmp_path, text, code, message):
    path = tmp_path / "t.json"
    path.write_text(text)
    with pytest.raises(PerfgateError) as error:
        kineto.inspect([path], {})
    assert (error.value.code.name, message in error.value.what) == (code, True), error.value.text()


def test_an_export_of_the_old_profiler_has_times_and_no_links(kineto, tmp_path):
    old = [
        {"name": "aten::mm", "ph": "X", "ts": 10.0, "dur": 5.0, "tid": 1, "pid": "CPU functions", "args": {}},
        {"name": "aten::mm", "ph": "s", "ts": 10.0, "tid": 1, "pid": "CPU functions", "id": 0, "cat": "cpu_to_cuda"},
        {"name": "sgemm", "ph": "X", "ts": 12.0, "dur": 9.0, "tid": 0, "pid": "CUDA functions", "args": {}},
    ]
    path = tmp_path / "t.json"
    path.write_text(json.dumps(old))
    assert kineto.recognises(path, path.read_bytes())
    analysis = kineto.inspect([path], {})
    assert analysis.metrics.find("kernel_time", (("kernel", "sgemm"),))[0].value == 9_000
    assert [problem.code for problem in analysis.problems] == ["trace-coverage"]
    path.write_text(json.dumps(old[:2]))
    assert kineto.inspect([path], {}).metrics.find("op_time", (("op", "aten::mm"),))[0].value == 5_000


def test_ranks_that_another_tool_fused_come_apart(kineto, tmp_path):
    both = [
        {**e, "pid": e["pid"] + 10 * r, "args": {**e["args"], "rank": r, "device": r}} for r in (0, 1) for e in step()
    ]
    analysis = kineto.inspect([written(tmp_path / "t.json", both)], {})
    assert [m.value for m in analysis.metrics.find("busy_time", (("rank", "*"),))] == [25_000, 25_000]


def test_a_launch_of_a_graph_owns_its_kernels(kineto, tmp_path):
    """Serving engines replay graphs: one launch, many kernels of one correlation."""
    events = [
        host("execute_model", 0, 50, cat="user_annotation"),
        host("cudaGraphLaunch", 5, 9, cat="cuda_runtime", correlation=7),
    ]
    events += [kernel(f"k{n}", 20 + 10 * n, 6, correlation=7, **{"graph id": 1, "graph node id": n}) for n in range(5)]
    metrics = kineto.inspect([written(tmp_path / "t.json", events)], {}).metrics
    assert metrics.find("coverage")[0].value == 1
    assert metrics.find("kernel_count")[0].value == 5


def test_launches_without_kernels_are_not_measured_and_say_how(kineto, tmp_path):
    from pytest_perfgate.core.judge.against_limit import judge_artifact
    from pytest_perfgate.core.limits.grammar import parse_limit
    from pytest_perfgate.core.metric_kinds import by_name

    limit = parse_limit("overlap >= 50%", kinds=by_name())
    host_only = [host("aten::mm", 0, 10)]
    for events, message in (
        (host_only, "limit what a host has: idle"),
        ([*host_only, launch(1, 1)], "ProfilerActivity.CUDA"),
    ):
        (verdict,) = judge_artifact(kineto.inspect([written(tmp_path / "t.json", events)], {}), [limit])
        assert message in verdict.next[0]
