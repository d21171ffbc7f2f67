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


def test_an_operation_is_repeated_at_least_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from pytest_perfgate.adapters.replay_runner import main

    monkeypatch.setattr("sys.argv", ["replay.py", "--repeat", "0"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert "--repeat is 1 or more" in capsys.readouterr().err


MATRIX = {"kind": "tensor", "dtype": "fp32", "shape": [4, 4], "strides": []}
FAILING = {
    "an index out of range": [{**MATRIX, "shape": [1, 4]}, {**MATRIX, "dtype": "int64", "shape": [64]}],
    "a dtype that is not made here": [{**MATRIX, "dtype": "fp4"}, MATRIX],
    "a dtype that PyTorch lacks": [{**MATRIX, "dtype": "int4"}, MATRIX],
}


@pytest.mark.torch
@pytest.mark.parametrize("case", FAILING)
def test_an_operation_that_does_not_run_says_why_and_does_not_end_the_others(case: str) -> None:
    pytest.importorskip("torch", reason="replaying needs torch")
    from pytest_perfgate.adapters.replay_runner import line, replay

    done = replay({"name": "aten::embedding", "inputs": FAILING[case]}, "cpu", 1)
    assert done["error"]
    assert line(done).startswith("aten::embedding: ")


@pytest.mark.torch
def test_the_device_that_is_named_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch", reason="replaying needs torch")
    from pytest_perfgate.adapters.replay_runner import timed

    waits: list[str] = []
    monkeypatch.setattr(torch.cuda, "synchronize", waits.append)
    timed(lambda: waits.append("call"), "cuda:1")
    timed(lambda: waits.append("host"), "cpu")
    monkeypatch.setattr(torch.mps, "synchronize", lambda: waits.append("mps"))
    timed(lambda: waits.append("host"), "mps")
    assert waits == ["cuda:1", "call", "cuda:1", "host", "mps", "host", "mps"]


def test_no_source_of_the_replay_evaluates_text():
    import pytest_perfgate.adapters.replay_runner as runner

    source = Path(runner.__file__).read_text(encoding="utf-8")
    assert "eval(" not in source
    assert "exec(" not in source
