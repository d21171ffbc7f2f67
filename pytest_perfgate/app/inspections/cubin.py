"""Cubins, fatbins, object files: what machine code says without a GPU."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from pytest_perfgate.core.analysis.kernels.asked import asked_launches, asked_metrics
from pytest_perfgate.core.analysis.kernels.diagnosis import Diagnosis, diagnose
from pytest_perfgate.core.analysis.kernels.evidence import findings_of
from pytest_perfgate.core.analysis.kernels.measured import metrics_of
from pytest_perfgate.core.analysis.kernels.views import bottleneck_view, changes_view, code_overview, mix_view
from pytest_perfgate.core.analysis.sass.facts import kernels, labels_of
from pytest_perfgate.model.analysis import Analysis
from pytest_perfgate.model.device import DeviceSpec, SmLimits
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.kernel import Disassembly, KernelFacts, Launch
from pytest_perfgate.model.metric import MetricSet

Read = Callable[[Sequence[Path]], Sequence[Disassembly]]
_FATBIN, _ELF, _CUDA = b"\x50\xed\x55\xba", b"\x7fELF", b"\xbe\x00"
_SUFFIXES = (".cubin", ".fatbin", ".o", ".so")


def limits_by_arch(catalogue: Iterable[DeviceSpec]) -> dict[str, SmLimits]:
    """What a multiprocessor of each architecture holds."""
    return {spec.arch: spec.sm for spec in catalogue if spec.sm is not None}


class Cubin:
    """Inspects machine code of NVIDIA kernels."""

    name = "cubin"
    views = ("overview", "bottleneck", "mix")
    options = (
        ("threads", "threads a block, where no launch is known"),
        ("arch", "the architecture to judge occupancy on, such as sm_90"),
        ("smem", "shared memory that the launch adds, such as 48KiB"),
        ("kernel", "only kernels whose name holds this"),
        ("limits", "the limits to judge: launches in their scopes are worked out"),
    )

    def __init__(self, read: Read, catalogue: Callable[[], Iterable[DeviceSpec]]) -> None:
        self._read = read
        self._catalogue = catalogue

    def recognises(self, path: Path, head: bytes) -> bool:
        if path.is_dir():
            return any(path.rglob("*.cubin")) or any(path.rglob("*.fatbin"))
        if head[:4] == _FATBIN:
            return True
        return head[:4] == _ELF and (head[18:20] == _CUDA or path.suffix in _SUFFIXES)

    def inspect(self, paths: Sequence[Path], options: Mapping[str, str]) -> Analysis:
        limits = limits_by_arch(self._catalogue())
        found = self._diagnosed(paths, options, limits)
        asked = asked_launches(options)
        subject = ", ".join(str(path) for path in paths)
        title = f"Kernels in {subject}"
        return Analysis(
            kind=self.name,
            subject=subject,
            metrics=metrics_of(found, self.name) | MetricSet(metrics=tuple(asked_metrics(found, asked, limits))),
            views={
                "overview": lambda: code_overview(found, title),
                "bottleneck": lambda: bottleneck_view(found, title),
                "mix": lambda: mix_view(found, title),
            },
            findings=findings_of(found),
            window=_window(found),
        )

    def compare(self, before: Sequence[Path], after: Sequence[Path], options: Mapping[str, str]) -> Analysis:
        limits = limits_by_arch(self._catalogue())
        old, new = (self._diagnosed(paths, options, limits) for paths in (before, after))
        subject = f"{', '.join(map(str, before))} -> {', '.join(map(str, after))}"
        return Analysis(
            kind=self.name,
            subject=subject,
            metrics=metrics_of(new, self.name),
            views={"changes": lambda: changes_view(old, new, f"What the compiler changed: {subject}")},
            window=_window(new),
        )

    def _diagnosed(
        self, paths: Sequence[Path], options: Mapping[str, str], limits: Mapping[str, SmLimits]
    ) -> list[Diagnosis]:
        facts = [k for seen in self._read(paths) for k in kernels(seen)]
        wanted = [k for k in facts if options.get("kernel", "") in k.name]
        if not wanted:
            raise PerfgateError(
                "kernel-none",
                f"no kernel's name holds '{options.get('kernel', '')}'" if facts else "no kernel in it",
                place=", ".join(map(str, paths)),
                mend=f"name one of {', '.join(sorted({k.name for k in facts})[:8])}" if facts else "",
            )
        names = labels_of(wanted)
        return [diagnose(_launched(k, options), names[id(k)], limits.get(k.arch)) for k in wanted]


def _launched(facts: KernelFacts, options: Mapping[str, str]) -> KernelFacts:
    """The facts with the launch that the options name for the code's own architecture."""
    asked = next((a for a in asked_launches({k: v for k, v in options.items() if k != "limits"})), None)
    if asked is None or (asked.arch and asked.arch != facts.arch):
        return facts
    given = facts.launch.shared_dynamic if facts.launch and asked.shared is None else asked.shared or 0
    launch = Launch(block=(asked.threads, 1, 1), shared_dynamic=given, source="--set threads")
    return KernelFacts(
        name=facts.name, arch=facts.arch, source=facts.source, resources=facts.resources, code=facts.code, launch=launch
    )


def _window(found: Sequence[Diagnosis]) -> str:
    arches = sorted({d.facts.arch for d in found})
    compilers = sorted({d.facts.code.compiler for d in found if d.facts.code and d.facts.code.compiler})
    return "; ".join(filter(None, (f"{len(found)} kernels for {', '.join(arches)}", *compilers)))
