"""A replay package runs by itself and repeats what the trace recorded."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.mark.torch
def test_lists_and_packed_sequences_repeat():
    pytest.importorskip("torch", reason="replaying needs torch")
    from pytest_perfgate.adapters.replay_runner import replay
    from pytest_perfgate.core.analysis.operators import OperatorCall
    from pytest_perfgate.core.analysis.trace.passes import inputs

    foreach = OperatorCall(
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
    arguments = [heads, heads, heads, ends, ends]
    packed = OperatorCall(
        name="aten::_flash_attention_forward",
        dims=(*(shape for shape, _ in arguments), (), (), (), ()),
        types=(*(kind for _, kind in arguments), "Scalar", "Scalar", "Scalar", "Scalar"),
        strides=((32, 8, 1),) * 3,
        concrete=("",) * 5 + ("4", "4", "0.", "True"),
    )
    made = inputs(packed)
    assert made[3]["values"] == [0, 3, 6, 10]
    done = replay({"name": packed.name, "inputs": made}, "cpu", 1)
    assert "error" not in done, done
    assert done["outputs"][0]["shape"] == [10, 4, 8]


def test_no_source_of_the_replay_evaluates_text():
    import pytest_perfgate.adapters.replay_runner as runner

    source = Path(runner.__file__).read_text(encoding="utf-8")
    assert "eval(" not in source
    assert "exec(" not in source
