"""Tests of core/analysis/trace/passes."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from importlib.util import find_spec

import pytest

from pytest_perfgate.adapters.formats import write_replay
from pytest_perfgate.core.analysis.trace.operators import operators
from pytest_perfgate.core.analysis.trace.passes import parse_scalar, passes, render_ir, replay_ir
from tests.kineto_file import host, kernel, launch, surveyed


def test_backward_passes_find_their_forward_operators(tmp_path):
    engine = "autograd::engine::evaluate_function: MmBackward0"
    events = [
        host("aten::linear", 0, 20, **{"Sequence number": 7}),
        host("aten::mm", 2, 15, **{"Sequence number": 7}),
        launch(5, 1),
        host(engine, 100, 30, tid=2, **{"Sequence number": 7, "Fwd thread id": 1}),
        host("aten::mm", 105, 20, tid=2, **{"Sequence number": 9}),
        launch(110, 2, tid=2),
        kernel("forward", 30, 10, correlation=1),
        kernel("gradient", 140, 25, correlation=2),
    ]
    (operator,) = passes(surveyed(tmp_path / "t.json", events))
    assert (operator.name, operator.calls, operator.matched) == ("aten::linear", 1, 1)
    assert (operator.forward, operator.backward) == (10_000, 25_000)


def test_an_operator_has_the_gradients_of_all_that_runs_inside_it(tmp_path):
    """A linear layer transposes its weight, with a number of its own, before it multiplies; a fill has no gradient."""
    engine = "autograd::engine::evaluate_function:"
    events = [
        host("aten::linear", 0, 20, **{"Sequence number": 7}),
        host("aten::t", 1, 2, **{"Sequence number": 7}),
        host("aten::addmm", 4, 12, **{"Sequence number": 8}),
        launch(5, 1),
        host("aten::zero_", 30, 5, **{"Sequence number": 9}),
        launch(31, 4),
        host(f"{engine} AddmmBackward0", 100, 30, tid=2, **{"Sequence number": 8, "Fwd thread id": 1}),
        launch(110, 2, tid=2),
        host(f"{engine} TBackward0", 140, 10, tid=2, **{"Sequence number": 7, "Fwd thread id": 1}),
        launch(145, 3, tid=2),
        *(kernel("k", 200 + 50 * n, length, correlation=n) for n, length in enumerate([10, 25, 2, 1], 1)),
    ]
    (operator,) = passes(surveyed(tmp_path / "t.json", events))
    assert (operator.name, operator.calls, operator.matched) == ("aten::linear", 1, 1)
    assert (operator.forward, operator.backward) == (10_000, 27_000)


WANTED = {"aten::addmm", "aten::_flash_attention_forward", "aten::native_layer_norm", "aten::cudnn_convolution"}
TORCH = {"bf16": "bfloat16", "fp32": "float32"}


@pytest.mark.skipif(find_spec("torch") is None, reason="needs torch")
def test_products_and_attention_repeat_shapes_dtypes_and_strides(look, tmp_path):
    rows = [row for row in operators(look("vit_h100")) if row.name in WANTED]
    package = write_replay(tmp_path / "replay.zip", render_ir(replay_ir(rows, "vit_h100")))
    zipfile.ZipFile(package).extractall(tmp_path)
    command = [sys.executable, str(tmp_path / "replay.py"), "--device", "cpu", "--repeat", "1", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    results = json.loads(done.stdout)
    assert {r["name"] for r in results} == WANTED
    for row, result in zip(rows, results):
        assert "error" not in result, result
        recorded = [
            {
                "shape": list(row.call.shape(at)),
                "dtype": TORCH[row.call.dtype(at)],
                "strides": list(row.call.strides[at]),
            }
            for at in row.call.tensors()
        ]
        assert result["inputs"] == recorded
        assert result["outputs"]
    attention = next(r for r in results if "flash" in r["name"])
    assert attention["ran_as"].startswith("scaled_dot_product_attention")


def test_a_package_is_the_same_every_time(tmp_path):
    one, two = (write_replay(tmp_path / name, "{}\n") for name in ("a.zip", "b.zip"))
    assert one.read_bytes() == two.read_bytes()


@pytest.mark.parametrize(
    ("text", "value"),
    [("True", True), ("False", False), ("", None), ("1", 1), ("0.", 0.0), ("[16, 16]", [16, 16]), ("[True, False]", [True, False]),
     ("9.9999999999999998e-13", 1e-12), ("__import__('os').system('x')", "__import__('os').system('x')"), ("none", "none")],
)  # fmt: skip
def test_scalars_are_read_and_never_evaluated(text, value):
    assert parse_scalar(text) == value
