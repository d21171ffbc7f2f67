"""Inspects kernels in results of ncu and rocprof."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_perfgate.app.inspections.cubin import (
    Side,
    earlier_report,
    launches_compared,
    limits_by_arch,
    named_kernels,
    pictures_of,
    spec_of,
    title_of,
)
from pytest_perfgate.core.analysis.foreign_files import GZIP, unpacked_head
from pytest_perfgate.core.analysis.kernels.bottleneck import (
    OPTIONS,
    BottleneckOptions,
    parse_stated,
    run_figures,
    stated_metrics,
    timing,
)
from pytest_perfgate.core.analysis.kernels.counters import amd_numbers
from pytest_perfgate.core.analysis.kernels.diagnosis import Diagnosis, diagnose, findings_of
from pytest_perfgate.core.analysis.kernels.metrics import metrics_of, requested_opcodes
from pytest_perfgate.core.analysis.kernels.reports import (
    ContractInputs,
    analysis_report,
    contract_document,
    contract_text,
    devlog_part,
)
from pytest_perfgate.core.analysis.kernels.sass_facts import labels_of
from pytest_perfgate.core.analysis.kernels.source import annotation_view, code_files
from pytest_perfgate.core.analysis.kernels.views import (
    bottleneck_view,
    counter_overview,
    counters_compared,
    health_view,
    rules_view,
)
from pytest_perfgate.model.metric import Analysis

if TYPE_CHECKING:
    from pytest_perfgate.model.device import DeviceSpec
    from pytest_perfgate.model.ports import Catalogue
    from pytest_perfgate.model.profiles import KernelFacts

    Read = Callable[[Sequence[Path]], Sequence[KernelFacts]]


def total_time(diagnoses: Sequence[Diagnosis]) -> float | None:
    """Return the sum over all launches; ``None`` if one launch has no value."""
    return sum(d.spent for d in diagnoses) if all("duration" in d.numbers for d in diagnoses) else None


def _contract_inputs(
    options: Mapping[str, str], stated: BottleneckOptions, earlier: Sequence[Diagnosis] = ()
) -> ContractInputs:
    """Return the given facts beside the report: version, configuration, earlier report."""
    return ContractInputs(
        version=options.get("version", ""), configuration=stated.configuration, baseline=tuple(earlier)
    )


def _plural(diagnoses: Sequence[Diagnosis], noun: str) -> str:
    return f"{len(diagnoses):,} {noun}{'' if len(diagnoses) == 1 else 'es'}"


_HEAD = 4096
"""The most bytes of a file's beginning that are examined."""

_PAGES = (
    b"#,Address,",
    b"Address,Source,",
    b"Line No,",
    b"Launch Attribute,",
    b"Session Attribute,",
    b"Device Attribute,",
)
"""Headers of the pages of source and session."""


def _is_header(line: bytes) -> bool:
    """Return whether a line is a page's header in any of its forms; rocprof's has underscores."""
    line = line.replace(b'"', b"").replace(b";", b",")
    launches = line.startswith((b"ID,", b"Process ID,")) and b"Kernel Name" in line
    return launches or line.startswith(_PAGES) or line.startswith((b"    Section: ", b"  Metric Name  "))


def _text(head: bytes) -> bytes:
    """Return the head as UTF-8 without a mark; shells of Windows redirect into UTF-16."""
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return head.decode("utf-16", "replace").encode()
    return head.removeprefix(b"\xef\xbb\xbf")


def _is_page(head: bytes) -> bool:
    """Return whether a text contains a page of ncu, or ncu's messages beside one."""
    text = _text(head)
    return b"==PROF==" in text or any(map(_is_header, text.splitlines()))


class Ncu:
    """Inspects ``.ncu-rep`` and the pages of ``ncu --csv``."""

    name = "ncu"
    views = ("overview", "bottleneck", "health", "rules", "report", "contract", "annotation", "devlog")
    options = (
        ("kernel", "only kernels whose name contains this"),
        ("baseline", "an earlier report to compare with, in a view of its own and in the contract"),
        *OPTIONS,
        ("limits", "the limits to judge: instructions in their scopes are counted"),
    )

    def __init__(
        self, read: Read, catalogue: Callable[[], Catalogue], long_head: Callable[[Path], bytes] | None = None
    ) -> None:
        self._read = read
        self._catalogue = catalogue
        self._long_head = long_head
        """Reads further, since the program may have printed more than the first bytes before the page."""

    def recognises(self, path: Path, head: bytes) -> bool:
        file = path
        if head.startswith(GZIP):
            path, head = path.with_suffix(""), unpacked_head(head)
        if head.startswith(b"NVR\0"):
            return True
        if path.suffix in {".md", ".rst", ".py", ".html"}:  # these quote pages
            return False
        return _is_page(head) or (
            self._long_head is not None and len(head) >= _HEAD and _is_page(self._long_head(file))
        )

    def inspect(self, paths: Sequence[Path], options: Mapping[str, str]) -> Analysis:
        from pytest_perfgate.core.analysis.kernels.pictures import counted_instead

        diagnoses = self._diagnosed(paths, options)
        earlier = self._diagnosed(earlier_report(options), options) if "baseline" in options else []
        stated = parse_stated(options, spec_of(options, self._catalogue(), diagnoses[0].facts.device))
        inputs = _contract_inputs(options, stated, earlier)
        total = total_time(diagnoses)
        counted = counted_instead(diagnoses, stated.work.flops if stated.work else None)
        by = f"the profiler, which {counted}" if counted else "the profiler"
        subject = ", ".join(str(path) for path in paths)
        title = title_of(paths)
        views = {"comparison": lambda: counters_compared(earlier, diagnoses, options["baseline"])} if earlier else {}
        return Analysis(
            kind=self.name,
            subject=subject,
            devices=tuple(dict.fromkeys(d.facts.device or d.facts.arch for d in diagnoses)),
            metrics=metrics_of(diagnoses, self.name, requested_opcodes(options)) | stated_metrics(stated, total, by),
            views={
                "overview": lambda: counter_overview(diagnoses, title),
                "bottleneck": lambda: bottleneck_view(diagnoses, title, timing(stated, total, by)),
                "health": lambda: health_view(diagnoses, title),
                "rules": lambda: rules_view(diagnoses, title),
                "report": lambda: analysis_report(
                    diagnoses,
                    title,
                    (*run_figures(stated, total), *([("Doubt", f"the profiler {counted}")] if counted else [])),
                    stated.placed(total),
                ),
                "contract": lambda: contract_document(diagnoses, inputs),
                "annotation": lambda: annotation_view(diagnoses, title),
                "devlog": lambda: devlog_part(diagnoses, earlier),
                **views,
            },
            findings=findings_of(diagnoses),
            files=code_files(diagnoses),
            data={"contract.json": lambda: contract_text(diagnoses, inputs)},
            reports={"report": "report", "contract": "contract"},
            tables=("overview", "health"),
            window=f"{_plural(diagnoses, 'launch')} under ncu: times are of the profiled, serialised kernel",
            pictures=pictures_of(diagnoses, ("roofline", "occupancy", "launches")),
        )

    def compare(self, before: Sequence[Path], after: Sequence[Path], options: Mapping[str, str]) -> Analysis:
        old, new = (Side(paths=paths, diagnoses=self._diagnosed(paths, options)) for paths in (before, after))
        stated = parse_stated(options, spec_of(options, self._catalogue(), new.diagnoses[0].facts.device))
        more = stated_metrics(stated, total_time(new.diagnoses), "the profiler")
        return launches_compared(self.name, old, new, "launches under ncu", more, requested_opcodes(options))

    def _diagnosed(self, paths: Sequence[Path], options: Mapping[str, str]) -> list[Diagnosis]:
        limits = limits_by_arch(self._catalogue())
        wanted = named_kernels(self._read(paths), options, paths)
        names = labels_of(wanted)
        return [diagnose(k, names[id(k)], limits.get(k.arch)) for k in wanted]


MARKS = (
    (b"Kernel_Name", b"Counter_Name"),
    (b"Kernel_Name", b"Workgroup_Size_X"),
    (b"Kernel_Name", b"Kernel_Id", b"Start_Timestamp"),
    (b"Kernel_Name", b"Kind", b"Start_Timestamp"),
    (b"Kernel_Name", b"Mean(ns)"),
    (b"KernelName", b"wgr"),
    (b"Kernel_Name", b"Arch_VGPR"),
    (b"Name", b"Calls", b"TotalDurationNs"),
)
"""Columns of every header of rocprof; fewer than its reader needs, so that it can name missing ones."""

_FILES = ("*counter_collection.csv", "*kernel_trace.csv", "pmc_perf*.csv", "*kernel_stats.csv", "results*.csv")
"""Files that identify a folder of rocprof; its passes are in folders of their own."""


class Rocprof:
    """Inspects the CSV files of rocprofv3, rocprof and rocprof-compute."""

    name = "rocprof"
    views = ("overview", "report", "contract")
    options = OPTIONS

    def __init__(self, read: Read, catalogue: Callable[[], Catalogue]) -> None:
        self._read = read
        self._catalogue = catalogue

    def recognises(self, path: Path, head: bytes) -> bool:
        if path.is_dir():
            return any(any(path.rglob(name)) for name in _FILES)
        archive = head.startswith(b"PK\3\4") or head[257:262] == b"ustar"
        columns = {cell.strip(b' "\r') for cell in _text(head).lstrip().partition(b"\n")[0].split(b",")}
        return not archive and any(columns.issuperset(mark) for mark in MARKS)

    def inspect(self, paths: Sequence[Path], options: Mapping[str, str]) -> Analysis:
        diagnoses = self._diagnosed(paths, options)
        subject = ", ".join(str(path) for path in paths)
        title, total = title_of(paths), total_time(diagnoses)
        stated = parse_stated(options, spec_of(options, self._catalogue(), diagnoses[0].facts.device))
        inputs = _contract_inputs(options, stated)
        return Analysis(
            kind=self.name,
            subject=subject,
            devices=tuple(dict.fromkeys(d.facts.device or d.facts.arch for d in diagnoses)),
            metrics=metrics_of(diagnoses, self.name) | stated_metrics(stated, total, "the profiler"),
            views={
                "overview": lambda: counter_overview(diagnoses, title),
                "report": lambda: analysis_report(
                    diagnoses, title, tuple(run_figures(stated, total)), stated.placed(total)
                ),
                "contract": lambda: contract_document(diagnoses, inputs),
            },
            data={"contract.json": lambda: contract_text(diagnoses, inputs)},
            reports={"report": "report", "contract": "contract"},
            tables=("overview",),
            findings=findings_of(diagnoses),
            window=_dispatches(diagnoses),
            pictures=pictures_of(diagnoses, ("launches",)),
        )

    def compare(self, before: Sequence[Path], after: Sequence[Path], options: Mapping[str, str]) -> Analysis:
        old, new = (Side(paths=paths, diagnoses=self._diagnosed(paths, options)) for paths in (before, after))
        stated = parse_stated(options, spec_of(options, self._catalogue(), new.diagnoses[0].facts.device))
        more = stated_metrics(stated, total_time(new.diagnoses), "the profiler")
        return launches_compared(self.name, old, new, "dispatches under rocprof", more)

    def _diagnosed(self, paths: Sequence[Path], options: Mapping[str, str]) -> list[Diagnosis]:
        catalogue, facts = self._catalogue(), list(self._read(paths))
        specs = {device: spec_of(options, catalogue, device) for device in {k.device for k in facts}}
        names = labels_of(facts)
        alike: dict[object, Diagnosis] = {}
        return [_diagnosed_once(k, names[id(k)], specs[k.device], alike) for k in facts]


def _diagnosed_once(k: KernelFacts, name: str, spec: DeviceSpec | None, alike: dict[object, Diagnosis]) -> Diagnosis:
    """Diagnose a dispatch; those of one kernel and one launch that have no counters differ only in their times."""
    which = (k.name, k.launch, k.resources, k.device, k.arch, k.duration is None)
    if k.counters or which not in alike:
        diagnosis = diagnose(k, name, None, extra=dict(amd_numbers(k, spec)))
        return diagnosis if k.counters else alike.setdefault(which, diagnosis)
    times = {} if k.duration is None else {"duration": k.duration}
    return replace(alike[which], facts=k, numbers={**alike[which].numbers, **times})


def _dispatches(diagnoses: Sequence[Diagnosis]) -> str:
    """Return the number of dispatches, or of kernels if each row is the mean of a kernel's dispatches."""
    if all(d.facts.notes.get("duration") for d in diagnoses):
        return f"{len(diagnoses)} kernel{'s' * (len(diagnoses) > 1)} in a table of means under rocprof"
    return f"{_plural(diagnoses, 'dispatch')} under rocprof"
