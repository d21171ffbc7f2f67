"""rocprof of three generations: AMD kernels in the same metrics and under the same classifier."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from pytest_perfgate.app.inspections.launches import Side, launches_compared
from pytest_perfgate.core.analysis.kernels.amd import amd_numbers
from pytest_perfgate.core.analysis.kernels.contract import contract_document
from pytest_perfgate.core.analysis.kernels.diagnosis import Diagnosis, diagnose
from pytest_perfgate.core.analysis.kernels.evidence import findings_of
from pytest_perfgate.core.analysis.kernels.measured import metrics_of
from pytest_perfgate.core.analysis.kernels.summary import analysis_report
from pytest_perfgate.core.analysis.kernels.views import counter_overview
from pytest_perfgate.core.analysis.sass.facts import labels_of
from pytest_perfgate.model.analysis import Analysis
from pytest_perfgate.model.device import DeviceSpec
from pytest_perfgate.model.kernel import KernelFacts

Read = Callable[[Sequence[Path]], Sequence[KernelFacts]]
_MARKS = (
    (b"Kernel_Name", b"Counter_Name"),
    (b"Kernel_Name", b"Workgroup_Size_X"),
    (b"Kernel_Name", b"Kernel_Id", b"Start_Timestamp"),
    (b"Kernel_Name", b"Mean(ns)"),
    (b"KernelName", b"wgr"),
    (b"Kernel_Name", b"Arch_VGPR"),
    (b"Name", b"Calls", b"TotalDurationNs"),
)
_FILES = ("*counter_collection.csv", "*kernel_trace.csv", "pmc_perf*.csv", "*kernel_stats.csv", "results*.csv")
"""What tells a folder of rocprof; its passes lie in folders of their own."""


class Rocprof:
    """Inspects the CSV files of rocprofv3, rocprof and rocprof-compute."""

    name = "rocprof"
    views = ("overview", "report", "contract")
    options = (("device", "the device of the catalogue, such as MI300X, where the file does not say"),)

    def __init__(self, read: Read, catalogue: Callable[[], Iterable[DeviceSpec]]) -> None:
        self._read = read
        self._catalogue = catalogue

    def recognises(self, path: Path, head: bytes) -> bool:
        if path.is_dir():
            return any(any(path.rglob(name)) for name in _FILES)
        first = head.partition(b"\n")[0]
        return path.suffix == ".csv" and any(all(word in first for word in mark) for mark in _MARKS)

    def inspect(self, paths: Sequence[Path], options: Mapping[str, str]) -> Analysis:
        found = self._diagnosed(paths, options)
        subject = ", ".join(str(path) for path in paths)
        title = f"Kernels in {subject}"
        return Analysis(
            kind=self.name,
            subject=subject,
            metrics=metrics_of(found, self.name),
            views={
                "overview": lambda: counter_overview(found, title),
                "report": lambda: analysis_report(found, title),
                "contract": lambda: contract_document(found),
            },
            findings=findings_of(found),
            window=f"{len(found)} dispatches under rocprof",
        )

    def compare(self, before: Sequence[Path], after: Sequence[Path], options: Mapping[str, str]) -> Analysis:
        old, new = (Side(paths=paths, found=self._diagnosed(paths, options)) for paths in (before, after))
        return launches_compared(self.name, old, new, "dispatches under rocprof")

    def _diagnosed(self, paths: Sequence[Path], options: Mapping[str, str]) -> list[Diagnosis]:
        specs = list(self._catalogue())
        facts = list(self._read(paths))
        names = labels_of(facts)
        return [
            diagnose(k, names[id(k)], None, extra=dict(amd_numbers(k, _spec(options.get("device") or k.device, specs))))
            for k in facts
        ]


def _spec(device: str, specs: Sequence[DeviceSpec]) -> DeviceSpec | None:
    """The data sheet that a name such as ``MI300X_A1`` means."""
    word = device.partition("_")[0].strip()
    return next((s for s in specs if word and word.casefold() in s.name.casefold()), None)
