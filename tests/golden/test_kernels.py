"""Reports of our own kernels as text. PERFGATE_GOLDEN=write rewrites the files; read the difference before you commit."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_perfgate.adapters.devices.visible import DeviceCatalogue
from pytest_perfgate.adapters.readers.ncu_csv import parse_csv
from pytest_perfgate.app.inspections.cubin import Cubin, limits_by_arch
from pytest_perfgate.app.inspections.ncu import Ncu
from pytest_perfgate.core.analysis.kernels.bottleneck import Timing, bottleneck_report
from pytest_perfgate.core.analysis.kernels.diagnosis import diagnose
from pytest_perfgate.core.analysis.kernels.reports import ContractInputs, contract_data
from pytest_perfgate.core.analysis.roofline import place, ridge
from pytest_perfgate.core.render.html import render_html, render_markdown
from pytest_perfgate.core.render.text import render_text
from pytest_perfgate.model.device import Basis, Roof
from pytest_perfgate.model.profiles import Disassembly, KernelFacts, Launch
from pytest_perfgate.model.values import Work
from tests.kernels import disassembly, kernel

HERE = Path(__file__).parent / "kernels"
ARTIFACTS = Path(__file__).parents[1] / "artifacts"
PAGE = Path("ncu_stages.csv")


SCHEMA: dict = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "perfgate profiler contract",
    "type": "object",
    "required": ["schema", "kernel", "version", "configuration", "stages", "bottleneck", "opportunities", "baseline"],
    "properties": {
        "schema": {"const": 1},
        "kernel": {"type": "string"},
        "version": {"type": ["string", "null"], "description": "of the kernel, as stated"},
        "configuration": {
            "type": "object",
            "description": "of the longest stage and its profiler, with what was stated of the call",
            "additionalProperties": {"type": ["string", "null"]},
        },
        "stages": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "required": ["name", "class", "duration", "tc_util", "dram", "sm", "occupancy", "l2_hit"],
                "properties": {
                    "duration": {"type": ["number", "null"], "description": "nanoseconds"},
                    **{
                        n: {"type": ["number", "null"], "description": "0 to 1"}
                        for n in ("tc_util", "dram", "sm", "occupancy", "l2_hit")
                    },
                },
            },
        },
        "bottleneck": {"type": "object", "required": ["class", "measured", "evidence", "runner_up", "distance"]},
        "opportunities": {
            "type": "array",
            "maxItems": 3,
            "items": {
                "type": "object",
                "required": ["name", "kernel", "gain", "trigger", "advice", "doubt", "conflicts"],
            },
        },
        "baseline": {
            "type": "array",
            "description": "stages that an earlier report has too",
            "items": {"type": "object", "required": ["name", "previous", "current"]},
        },
    },
}


def hold_to(name: str, text: str) -> None:
    file = HERE / name
    if os.environ.get("PERFGATE_GOLDEN") == "write":
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8")


def committed(paths: Sequence[Path]) -> tuple[Disassembly, ...]:
    return tuple(disassembly(path.name) for path in paths)


def page(paths: Sequence[Path]) -> tuple[KernelFacts, ...]:
    return tuple(facts for path in paths for facts in parse_csv((ARTIFACTS / path).read_bytes(), path.name))


CUBIN = Cubin(committed, DeviceCatalogue)
NCU = Ncu(page, DeviceCatalogue)


def test_the_bottleneck_report_of_a_measured_kernel() -> None:
    """Machine code, a launch, a time and the test's own statement of work, all together."""
    facts = replace(kernel("gemm_tiled", "sm_86"), launch=Launch(block=(256, 1, 1)), device="RTX 3070 Ti")
    roof = Roof(basis=Basis.DATASHEET, compute=(("fp32", 21.7e12),), bandwidth=608e9)
    n = 4096
    placed = place(Work(flops=2.0 * n**3, bytes=3.0 * 4 * n * n, dtype="fp32"), 11.2e6, roof)
    timing = Timing(
        problem=f"GEMM, M=N=K={n}",
        time_ns=11.2e6,
        placement=placed,
        ridge=ridge(roof, "fp32"),
        dtype="fp32",
        basis=roof.basis.value,
    )
    limits = limits_by_arch(DeviceCatalogue())["sm_86"]
    from pytest_perfgate.core.analysis.classify import Signals

    signals = Signals(compute=placed.compute, memory=placed.memory, intensity=placed.intensity, ridge=timing.ridge)
    document = bottleneck_report(diagnose(facts, "gemm_tiled", limits, signals), timing)
    hold_to("bottleneck.md", render_markdown(document))
    assert "Recommendations" in render_html([document])


@pytest.mark.parametrize("name", ["spilling", "above_cliff", "attention_tile"])
def test_the_bottleneck_report_of_a_cubin_alone(name: str) -> None:
    analysis = CUBIN.inspect([Path(f"{name}.sm_86.cubin")], {})
    hold_to(f"bottleneck_{name}.md", render_markdown(analysis.views["bottleneck"]()))


def test_the_overview_and_the_difference_of_builds() -> None:
    analysis = CUBIN.inspect(
        [Path(f"{n}.sm_90.cubin") for n in ("gemm_naive", "gemm_tiled", "copy")], {"threads": "256"}
    )
    hold_to("overview.txt", render_text(analysis.views["overview"]()))
    moved = CUBIN.compare([Path("attention_tile.sm_80.cubin")], [Path("attention_tile.sm_80.cubin")], {})
    assert "the same machine code" in render_text(moved.views["changes"]())


def test_the_contract_and_the_analysis_report_of_two_stages() -> None:
    analysis = NCU.inspect([PAGE], {})
    hold_to("contract.md", render_markdown(analysis.views["contract"](), level=2))
    hold_to("analysis.md", render_markdown(analysis.views["report"](), level=2))
    hold_to("counters.txt", render_text(analysis.views["overview"]()))
    moved = NCU.compare([PAGE], [PAGE], {})
    assert [m.value for m in moved.metrics.find("slowdown")] == [0.0, 0.0]


def test_the_contract_as_json_keeps_its_schema() -> None:
    limits = limits_by_arch(DeviceCatalogue())
    contract = contract_data(
        [diagnose(k, k.name, limits.get(k.arch)) for k in page([PAGE])], ContractInputs(version="v3")
    )
    hold_to("contract.json", json.dumps(contract, indent=2) + "\n")
    check(contract, SCHEMA)


def check(value: object, schema: dict) -> None:
    """As much of JSON Schema as ours uses."""
    kinds = {"object": dict, "array": list, "string": str, "number": (int, float), "null": type(None)}
    wanted = schema.get("type")
    if wanted:
        assert any(isinstance(value, kinds[k]) for k in ([wanted] if isinstance(wanted, str) else wanted)), (
            value,
            schema,
        )
    assert value == schema.get("const", value)
    if isinstance(value, dict):
        assert set(schema.get("required", ())) <= set(value)
        for name, inner in schema.get("properties", {}).items():
            check(value[name], inner)
    if isinstance(value, list):
        assert schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value))
        for item in value:
            check(item, schema.get("items", {}))
