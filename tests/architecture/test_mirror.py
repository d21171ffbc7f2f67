"""Tests mirror modules: each larger module has a file of tests of its name, and no file of tests imports another."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from ci.bench.house import PACKAGE, ROOT, nodes

TESTS = ROOT / "tests"
LARGE = 100

ELSEWHERE = {
    "adapters/arms/__init__.py": "unit/adapters/arms/test_arms.py",
    "adapters/readers/ncu_csv.py": "unit/adapters/readers/test_ncu_report.py",
    "adapters/readers/ncu_labels.py": "unit/adapters/readers/test_ncu_report_pages.py",
    "adapters/readers/rocprof_forms.py": "unit/adapters/readers/test_rocprof.py",
    "adapters/runtimes/host.py": "unit/plugin/test_measuring.py",
    "adapters/stores/baseline_line.py": "unit/adapters/stores/test_baseline_text.py",
    "adapters/system/git.py": "unit/adapters/arms/test_store.py",
    "app/inspections/__init__.py": "unit/app/inspections/test_inspections.py",
    "app/inspections/kineto_trace.py": "unit/app/inspections/test_kineto.py",
    "compat.py": "plugin/test_compat.py",
    "perf_report.py": "plugin/test_perf_report.py",
    "core/analysis/intervals.py": "properties/test_intervals.py",
    "core/analysis/kernels/sections.py": "unit/core/analysis/kernels/test_diagnosis.py",
    "core/analysis/nsys/compare.py": "golden/test_nsys.py",
    "core/analysis/nsys/metrics.py": "golden/test_nsys.py",
    "core/analysis/nsys/timeline.py": "golden/test_nsys.py",
    "core/analysis/operators/__init__.py": "unit/core/analysis/operators/test_operators.py",
    "core/analysis/operators/pointwise.py": "unit/core/analysis/operators/test_layers.py",
    "core/analysis/trace/matching.py": "unit/core/analysis/trace/test_comparison.py",
    "core/analysis/trace/tables.py": "unit/app/inspections/test_kineto_views.py",
    "core/analysis/tracelens/__init__.py": "unit/core/analysis/tracelens/test_tracelens.py",
    "core/analysis/tracelens/models.py": "unit/core/analysis/tracelens/test_tracelens.py",
    "core/analysis/tracelens/nodes.py": "unit/core/analysis/tracelens/test_tracelens.py",
    "core/trace_kinds.py": "unit/core/test_metric_kinds.py",
    "model/__init__.py": "docs/test_public_names.py",
    "model/codes/device.py": "unit/model/test_codes.py",
    "model/codes/gate.py": "unit/model/test_codes.py",
    "model/codes/profiles.py": "unit/model/test_codes.py",
    "model/codes/run.py": "unit/model/test_codes.py",
    "model/codes/store.py": "unit/model/test_codes.py",
    "model/device.py": "unit/core/analysis/test_roofline.py",
    "model/nsys.py": "unit/core/analysis/nsys/test_lanes.py",
    "model/ports.py": "unit/app/test_instrument.py",
    "model/profiles.py": "unit/app/inspections/test_cubin.py",
    "model/protocol.py": "unit/adapters/children/test_channel.py",
    "model/verdict.py": "unit/core/judge/test_judge.py",
    "plugin/__init__.py": "plugin/test_conventions.py",
    "plugin/profiled.py": "plugin/test_profile.py",
    "testing.py": "unit/adapters/timers/test_host.py",
    "wiring/__init__.py": "unit/app/test_instrument.py",
    "wiring/built_ins.py": "unit/app/inspections/test_kineto.py",
    "wiring/devices.py": "unit/adapters/devices/test_visible.py",
    "wiring/profiling.py": "unit/app/test_profile.py",
    "wiring/stores.py": "unit/adapters/test_delivery.py",
}
"""Values, tables and wiring, and modules that are tested as a part of another: the file that tests each."""


def large_modules() -> Iterator[str]:
    for path in sorted(PACKAGE.rglob("*.py")):
        if path.read_text(encoding="utf-8").count("\n") >= LARGE:
            yield path.relative_to(PACKAGE).as_posix()


def mirrored(module: str) -> list[Path]:
    """The files of tests of a module's name, or of its name and a part; commands are tested beside the others."""
    path = Path(module)
    folders = [TESTS / "unit" / path.parent, *([TESTS / "cli"] if path.parts[0] == "cli" else ())]
    named = (f"test_{path.stem}.py", f"test_{path.stem}_*.py")
    return [file for folder in folders for name in named for file in folder.glob(name)]


def test_every_large_module_has_a_file_of_tests() -> None:
    missing = [module for module in large_modules() if module not in ELSEWHERE and not mirrored(module)]
    assert not missing, "\n".join(["write tests/unit/FOLDER/test_NAME.py, or name their place in ELSEWHERE:", *missing])


@pytest.mark.parametrize(("module", "tests"), ELSEWHERE.items(), ids=list(ELSEWHERE))
def test_what_is_tested_elsewhere_is_there_and_has_no_file_of_its_own(module: str, tests: str) -> None:
    assert (PACKAGE / module).exists(), "the module is gone: take it off the list"
    assert (TESTS / tests).exists(), "the tests are gone"
    assert not mirrored(module), "the module has a file of its own: take it off the list"


def imported(syntax: list[ast.AST]) -> Iterator[str]:
    for node in syntax:
        if isinstance(node, ast.ImportFrom):
            yield from (f"{node.module or ''}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def faults(syntax: list[ast.AST]) -> list[str]:
    """Modules of tests that a file imports; the package's own names may begin with the word."""
    names = [name for name in imported(syntax) if not name.startswith("pytest_perfgate")]
    return [name for name in names if any(part.startswith("test_") for part in name.split(".")[:-1])]


def test_no_file_of_tests_imports_another() -> None:
    names_by_file = {path.relative_to(TESTS).as_posix(): faults(nodes(path)) for path in TESTS.rglob("*.py")}
    assert len(names_by_file) > 200
    importing = {path: names for path, names in names_by_file.items() if names}
    assert importing == {}, "move what both use into a module that is no file of tests, as tests/reports.py"


def test_an_import_of_a_file_of_tests_is_seen() -> None:
    def of(line: str) -> list[str]:
        return faults(list(ast.walk(ast.parse(line))))

    assert of("from tests.unit.test_a import build") == ["tests.unit.test_a.build"]
    assert of("from .test_a import build") == ["test_a.build"]
    assert of("from tests.reports import case") == []
