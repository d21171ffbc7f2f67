"""A replay package runs by itself and repeats what the trace recorded."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from pytest_perfgate.adapters.formats.files import write_replay
from pytest_perfgate.core.analysis.trace.operators import operators
from pytest_perfgate.core.analysis.trace.passes import parse_scalar, render_ir, replay_ir

WANTED = {"aten::addmm", "aten::_flash_attention_forward", "aten::native_layer_norm", "aten::cudnn_convolution"}
TORCH = {"bf16": "bfloat16", "fp32": "float32"}


def test_products_and_attention_repeat_shapes_dtypes_and_strides(look, tmp_path):
    pytest.importorskip("torch", reason="replaying needs torch")
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


def test_lists_and_packed_sequences_repeat():
    pytest.importorskip("torch", reason="replaying needs torch")
    from pytest_perfgate.adapters.formats.replay_runner import replay
    from pytest_perfgate.core.analysis.operators.call import Call
    from pytest_perfgate.core.analysis.trace.passes import inputs

    foreach = Call(
        name="aten::_foreach_add_",
        dims=(((8, 4), (3,)), ((8, 4), (3,)), ()),
        types=("TensorList", "TensorList", "Scalar"),
        strides=(((1, 8), (1,)), ((4, 1), (1,)), ()),
        concrete=("", "", "-0.5"),
        kernel="multi_tensor_apply_kernel<TensorListMetadata<2>, BinaryOpListAlphaFunctor<double, 2, 2, 0> >",
    )
    done = replay({"name": foreach.name, "inputs": inputs(foreach)}, "cpu", 1)
    assert [(t["dtype"], t["strides"]) for t in done["inputs"][:2]] == [("float64", [1, 8]), ("float64", [1])]
    assert "error" not in done, done
    heads, ends = ((10, 4, 8), "float"), ((4,), "int")
    given = [heads, heads, heads, ends, ends]
    packed = Call(
        name="aten::_flash_attention_forward",
        dims=(*(shape for shape, _ in given), (), (), (), ()),
        types=(*(kind for _, kind in given), "Scalar", "Scalar", "Scalar", "Scalar"),
        strides=((32, 8, 1),) * 3,
        concrete=("",) * 5 + ("4", "4", "0.", "True"),
    )
    made = inputs(packed)
    assert made[3]["values"] == [0, 3, 6, 10]
    done = replay({"name": packed.name, "inputs": made}, "cpu", 1)
    assert "error" not in done, done
    assert done["outputs"][0]["shape"] == [10, 4, 8]


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


def test_no_source_of_the_replay_evaluates_text():
    import pytest_perfgate.adapters.formats.replay_runner as runner

    source = Path(runner.__file__).read_text(encoding="utf-8")
    assert "eval(" not in source
    assert "exec(" not in source
