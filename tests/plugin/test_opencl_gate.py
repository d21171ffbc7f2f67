"""A real device queue through the whole gate: PoCL where it is installed."""

from __future__ import annotations

import pytest

from pytest_perfgate.adapters.runtimes.opencl import OpenClRuntime
from pytest_perfgate.adapters.stores.records import Records
from tests.plugin.forked import forked, inherited

FOUND = OpenClRuntime().availability()
pytestmark = pytest.mark.skipif(not FOUND.usable, reason=f"no OpenCL device: {FOUND.why}")

SUITE = '''
import pytest
import pyopencl as cl

SOURCE = """__kernel void spin(__global float *d, const int n) {
    int i = get_global_id(0); float x = d[i];
    for (int k = 0; k < n; ++k) x = x * 1.0001f + 0.5f;
    d[i] = x; }"""


@pytest.fixture
def launch():
    context = cl.Context([cl.get_platforms()[0].get_devices()[0]])
    queue = cl.CommandQueue(context, properties=cl.command_queue_properties.PROFILING_ENABLE)
    buffer = cl.Buffer(context, cl.mem_flags.READ_WRITE, 4 * 4096)
    kernel = cl.Kernel(cl.Program(context, SOURCE).build(), "spin")
    kernel.set_args(buffer, cl.cltypes.int(300))
    yield lambda: cl.enqueue_nd_range_kernel(queue, kernel, (4096,), None)
    queue.finish()
    del buffer


@pytest.mark.perfgate("time <= 10s", budget="20ms")
def test_kept(perfgate, launch):
    perfgate(launch)


@pytest.mark.perfgate("time <= 1ns", budget="20ms")
def test_broken(perfgate, launch):
    perfgate(launch)


@pytest.mark.perfgate("time <= 10s", budget="20ms", timer="graph")
def test_refused(perfgate, launch):
    perfgate(launch)


@pytest.mark.perfgate("time <= 10s", budget="20ms")
def test_of_the_host(perfgate):
    perfgate(sorted, [3, 1, 2])
'''


def test_kernels_are_timed_by_their_queue_and_limits_hold(tmp_path) -> None:
    (tmp_path / "test_cl.py").write_text(SUITE)
    (tmp_path / "pyproject.toml").write_text("[tool.pytest.ini_options]\n")
    words = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "pytest_perfgate.plugin", "--perfgate=quick")
    _, text = forked(words, tmp_path, {**inherited(), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}, children=True)
    assert "2 failed, 2 passed" in text, text
    assert "BROKEN" in text, text
    assert "OpenCL has no graphs" in text, text
    cases = {case.key.test: case.measurement for case in Records(tmp_path).read().cases}
    queued, host = cases["test_kept"], cases["test_of_the_host"]
    assert queued.identity.timer in {"events", "blocking"}
    assert dict(queued.processes[0].notes)["timer"].startswith(queued.identity.timer)
    assert host.identity.timer == "host"
    assert host.device.key != queued.device.key
