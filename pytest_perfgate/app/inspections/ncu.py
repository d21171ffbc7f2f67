"""Nsight Compute: what counters saw of each kernel launch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from pytest_perfgate.app.inspections.cubin import earlier_report, limits_by_arch, spec_of
from pytest_perfgate.app.inspections.launches import Side, launches_compared
from pytest_perfgate.core.analysis.foreign import GZIP, unpacked_head
from pytest_perfgate.core.analysis.kernels.annotation import annotation_view
from pytest_perfgate.core.analysis.kernels.asked import asked_opcodes
from pytest_perfgate.core.analysis.kernels.comparison import counters_compared
from pytest_perfgate.core.analysis.kernels.contract import contract_document, contract_text
from pytest_perfgate.core.analysis.kernels.devlog import devlog_part
from pytest_perfgate.core.analysis.kernels.diagnosis import Diagnosis, diagnose
from pytest_perfgate.core.analysis.kernels.evidence import findings_of
from pytest_perfgate.core.analysis.kernels.health import health_view
from pytest_perfgate.core.analysis.kernels.measured import metrics_of
from pytest_perfgate.core.analysis.kernels.rules import rules_view
from pytest_perfgate.core.analysis.kernels.source_files import code_files
from pytest_perfgate.core.analysis.kernels.stated import OPTIONS, parse_stated, run_figures, timing
from pytest_perfgate.core.analysis.kernels.summary import analysis_report
from pytest_perfgate.core.analysis.kernels.views import bottleneck_view, counter_overview
from pytest_perfgate.core.analysis.sass.facts import labels_of
from pytest_perfgate.model.analysis import Analysis
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.kernel import KernelFacts
from pytest_perfgate.model.ports import Catalogue

Read = Callable[[Sequence[Path]], Sequence[KernelFacts]]


def total_time(diagnoses: Sequence[Diagnosis]) -> float | None:
    """Of all launches; none where one of them has none."""
    times = [d.numbers.get("duration") for d in diagnoses]
    known = [time for time in times if time is not None]
    return sum(known) if len(known) == len(times) else None


def _launches(diagnoses: Sequence[Diagnosis]) -> str:
    return f"{len(diagnoses)} launch{'' if len(diagnoses) == 1 else 'es'}"


_HEAD = 4096
"""Bytes of a file's beginning that a longer file has."""
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
    """The header of a page in any of its forms; rocprof writes its names with underscores."""
    line = line.replace(b'"', b"").replace(b";", b",")
    launches = line.startswith((b"ID,", b"Process ID,")) and b"Kernel Name" in line
    return launches or line.startswith(_PAGES) or line.startswith(b"    Section: ")


def _text(head: bytes) -> bytes:
    """The head as UTF-8 without a mark: shells of Windows redirect into UTF-16."""
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return head.decode("utf-16", "replace").encode()
    return head.removeprefix(b"\xef\xbb\xbf")


def _is_page(head: bytes) -> bool:
    """Whether a text holds a page of ncu, or what ncu prints beside one."""
    text = _text(head)
    return b"==PROF==" in text or any(map(_is_header, text.splitlines()))


class Ncu:
    """Inspects ``.ncu-rep`` and the pages of ``ncu --csv``."""

    name = "ncu"
    views = ("overview", "bottleneck", "health", "rules", "report", "contract", "annotation", "devlog")
    options = (
        ("kernel", "only kernels whose name holds this"),
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
        """Reads on where the program may have printed more than the first bytes before the page."""

    def recognises(self, path: Path, head: bytes) -> bool:
        file = path
        if head.startswith(GZIP):
            path, head = path.with_suffix(""), unpacked_head(head)
        if head.startswith(b"NVR\0"):
            return True
        if path.suffix not in {".csv", ".txt", ".log", ".out", ""}:
            return False
        return _is_page(head) or (
            self._long_head is not None and len(head) >= _HEAD and _is_page(self._long_head(file))
        )

    def inspect(self, paths: Sequence[Path], options: Mapping[str, str]) -> Analysis:
        found = self._diagnosed(paths, options)
        earlier = self._diagnosed(earlier_report(options), options) if "baseline" in options else []
        stated = parse_stated(options, spec_of(options, self._catalogue(), found[0].facts.device))
        total = total_time(found)
        subject = ", ".join(str(path) for path in paths)
        title = f"Kernels in {subject}"
        views = {"comparison": lambda: counters_compared(earlier, found, options["baseline"])} if earlier else {}
        return Analysis(
            kind=self.name,
            subject=subject,
            metrics=metrics_of(found, self.name, asked_opcodes(options)),
            views={
                "overview": lambda: counter_overview(found, title),
                "bottleneck": lambda: bottleneck_view(found, title, timing(stated, total, "the profiler")),
                "health": lambda: health_view(found, title),
                "rules": lambda: rules_view(found, title),
                "report": lambda: analysis_report(found, title, tuple(run_figures(stated, total))),
                "contract": lambda: contract_document(found, configuration=stated.configuration, baseline=earlier),
                "annotation": lambda: annotation_view(found, title),
                "devlog": lambda: devlog_part(found, earlier),
                **views,
            },
            findings=findings_of(found),
            files=code_files(found),
            kept={"contract.json": lambda: contract_text(found)},
            window=f"{_launches(found)} under ncu: times are of the profiled, serialised kernel",
        )

    def compare(self, before: Sequence[Path], after: Sequence[Path], options: Mapping[str, str]) -> Analysis:
        old, new = (Side(paths=paths, found=self._diagnosed(paths, options)) for paths in (before, after))
        return launches_compared(self.name, old, new, "launches under ncu", asked_opcodes(options))

    def _diagnosed(self, paths: Sequence[Path], options: Mapping[str, str]) -> list[Diagnosis]:
        limits = limits_by_arch(self._catalogue())
        every = self._read(paths)
        wanted = [k for k in every if options.get("kernel", "") in k.name]
        if not wanted:
            raise PerfgateError(
                "kernel-none",
                f"no kernel's name holds '{options.get('kernel', '')}'",
                place=", ".join(map(str, paths)),
                mend=f"name one of {', '.join(sorted({k.name for k in every})[:8])}",
            )
        names = labels_of(wanted)
        return [diagnose(k, names[id(k)], limits.get(k.arch)) for k in wanted]
