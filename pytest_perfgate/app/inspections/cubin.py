"""Inspects cubins: the machine code of kernels, judged with the launches that a test made."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_perfgate.core.analysis.kernels.bottleneck import (
    OPTIONS,
    BottleneckOptions,
    parse_stated,
    run_figures,
    signals,
    stated_metrics,
    timing,
)
from pytest_perfgate.core.analysis.kernels.diagnosis import Diagnosis, diagnose, findings_of
from pytest_perfgate.core.analysis.kernels.metrics import (
    metrics_of,
    requested_launches,
    requested_metrics,
    requested_opcodes,
)
from pytest_perfgate.core.analysis.kernels.reports import analysis_report, devlog_part
from pytest_perfgate.core.analysis.kernels.sass_facts import kernels, labels_of, unread_note
from pytest_perfgate.core.analysis.kernels.views import (
    bottleneck_view,
    changes_view,
    code_overview,
    counters_compared,
    mix_view,
    slowdowns,
)
from pytest_perfgate.core.analysis.occupancy import LIMITS
from pytest_perfgate.core.render.words import distinct_names, pair_of_names, plural, quantity
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.metric import Analysis, Labels, MetricSet, Picture
from pytest_perfgate.model.profiles import CODE_SUFFIXES, PTXAS_LOG, SOURCE, Disassembly, KernelFacts, Launch
from pytest_perfgate.model.values import Dimension, array_value, first_of

if TYPE_CHECKING:
    from pytest_perfgate.model.device import DeviceSpec, SmLimits
    from pytest_perfgate.model.ports import Catalogue

Read = Callable[..., Sequence[Disassembly]]
"""The inputs: paths, and the option ``build`` if given."""

_HEADS = (b"\x50\xed\x55\xba", b"\x7fELF", b"!<arch>\n", b"__CLANG_OFFLOAD_BUNDLE__", b"CCOB")
"""First bytes of fatbins, object files and programs, archives, and AMD's bundles: read, or refused with their kind."""

_PTX = b".target"

_BY = "--set time"


def limits_by_arch(catalogue: Iterable[DeviceSpec]) -> dict[str, SmLimits]:
    """Return the limits of a multiprocessor by architecture; entries that users add take precedence."""
    return {**LIMITS} | {spec.arch: spec.sm for spec in catalogue if spec.sm is not None}


def earlier_report(options: Mapping[str, str]) -> list[Path]:
    """Return the file of the option ``baseline``; raise if it does not exist."""
    path = Path(options["baseline"])
    if not path.exists():
        raise PerfgateError("artifact-missing", f"baseline={path}: there is no such file")
    return [path]


def spec_of(options: Mapping[str, str], catalogue: Catalogue, hardware: str = "") -> DeviceSpec | None:
    """Return the data sheet of the device that the options name, or of the file's device."""
    name = options.get("device", "")
    device = catalogue.lookup(name or hardware) if name or hardware else None
    if device is not None or not name:
        return device
    alike = catalogue.find(name)
    if len(alike) != 1:
        names = ", ".join(spec.name for spec in alike or catalogue)
        raise PerfgateError("kernel-option", f"device={name} is not one device of the catalogue", fix=f"one of {names}")
    return alike[0]


class Cubin:
    """Inspects machine code of NVIDIA kernels."""

    name = "cubin"
    views = ("overview", "bottleneck", "mix", "report", "devlog")
    options = (
        ("threads", "threads a block, where no launch is known"),
        ("arch", "the architecture to judge occupancy on, such as sm_90"),
        ("smem", "shared memory that the launch adds, such as 48KiB"),
        ("kernel", "only kernels whose name contains this"),
        ("baseline", "an earlier build to compare with"),
        ("build", "the command that compiles a source (.cu), such as 'nvcc -arch=sm_90 -O3'"),
        ("time", "kernel time by device events, such as 11.2ms"),
        *OPTIONS,
        ("limits", "the limits to judge: launches and instructions in their scopes are worked out"),
    )

    def __init__(self, read: Read, catalogue: Callable[[], Catalogue]) -> None:
        self._read = read
        self._catalogue = catalogue

    def recognises(self, path: Path, head: bytes) -> bool:
        if path.is_dir():
            return any(any(path.rglob(f"*{suffix}")) for suffix in CODE_SUFFIXES)
        named = path.suffix in {".cubin", ".fatbin", SOURCE} or (path.suffix == ".ptx" and _PTX in head)
        return head.startswith(_HEADS) or named or PTXAS_LOG in b"\n" + head

    def inspect(self, paths: Sequence[Path], options: Mapping[str, str]) -> Analysis:
        catalogue, sources = self._catalogue(), (*paths, Path(options.get("baseline", "")))
        if "build" in options and all(path.suffix != SOURCE for path in sources):
            raise PerfgateError("kernel-option", "build= compiles a source (.cu), and none is here", fix="drop build=")
        limits, stated = limits_by_arch(catalogue), parse_stated(options, spec_of(options, catalogue))
        diagnoses = self._diagnosed(paths, options, limits, stated)
        earlier = self._diagnosed(earlier_report(options), options, limits) if "baseline" in options else []
        launches, time_ns = requested_launches(options), stated.time_ns
        shown = _for_architecture(diagnoses, options, limits, stated)
        subject = _listed(paths)
        title = title_of(paths)
        more = {"changes": lambda: changes_view(earlier, diagnoses, _changed(options["baseline"], subject))}
        return Analysis(
            kind=self.name,
            subject=subject,
            devices=tuple(dict.fromkeys(d.facts.arch for d in diagnoses)),
            metrics=metrics_of(diagnoses, self.name, requested_opcodes(options))
            | stated_metrics(stated, time_ns, _BY)
            | requested_metrics(diagnoses, launches, limits),
            views={
                "overview": lambda: code_overview(shown, title),
                "bottleneck": lambda: bottleneck_view(shown, title, timing(stated, time_ns, _BY)),
                "mix": lambda: mix_view(diagnoses, title),
                "report": lambda: analysis_report(
                    shown, title, (*_stated_time(stated), *run_figures(stated, time_ns)), stated.placed(time_ns)
                ),
                "devlog": lambda: devlog_part(shown, earlier),
                **(more if earlier else {}),
            },
            findings=findings_of(shown),
            reports={"report": "report", "bottleneck": "bottleneck"},
            tables=("overview", "mix"),
            window=_window(diagnoses),
            pictures=pictures_of(shown, ("occupancy",)),
        )

    def compare(self, before: Sequence[Path], after: Sequence[Path], options: Mapping[str, str]) -> Analysis:
        limits = limits_by_arch(self._catalogue())
        old, new = (self._diagnosed(paths, options, limits) for paths in (before, after))
        stated = parse_stated(options, spec_of(options, self._catalogue()))
        return Analysis(
            kind=self.name,
            subject=f"{_listed(before)} -> {_listed(after)}",
            metrics=metrics_of(new, self.name, requested_opcodes(options))
            | stated_metrics(stated, stated.time_ns, _BY)
            | requested_metrics(new, requested_launches(options), limits),
            views={"changes": lambda: changes_view(old, new, _changed(_listed(before), _listed(after)))},
            window=_window(new),
        )

    def _diagnosed(
        self,
        paths: Sequence[Path],
        options: Mapping[str, str],
        limits: Mapping[str, SmLimits],
        stated: BottleneckOptions | None = None,
    ) -> list[Diagnosis]:
        build = (_command(options["build"]),) if "build" in options else ()
        facts = [k for kernel_facts in self._read(paths, *build) for k in kernels(kernel_facts)]
        wanted = named_kernels(facts, options, paths)
        if stated and stated.time_ns and len(wanted) > 1:
            what = f"time= is of one kernel, and {len(wanted)} are here"
            raise PerfgateError("kernel-option", what, fix=f"--set kernel={wanted[0].name}")
        names, kernel_facts = labels_of(wanted), signals(stated, stated.time_ns) if stated else None
        return [diagnose(_launched(k, options), names[id(k)], limits.get(k.arch), kernel_facts) for k in wanted]


def _stated_time(stated: BottleneckOptions) -> tuple[tuple[str, str], ...]:
    return (("Kernel time", f"{quantity(stated.time_ns, Dimension.TIME)} by {_BY}"),) if stated.time_ns else ()


def named_kernels(facts: Sequence[KernelFacts], options: Mapping[str, str], paths: Sequence[Path]) -> list[KernelFacts]:
    """Return the kernels whose names hold the option ``kernel``; raise if there are none."""
    if not facts:
        raise PerfgateError("kernel-none", "no kernel in it", place=_listed(paths))
    part = options.get("kernel", "")
    if wanted := [k for k in facts if part in k.name]:
        return wanted
    fix = f"name one of {', '.join(sorted({k.name for k in facts})[:8])}"
    raise PerfgateError("kernel-unmatched", f"no kernel's name holds '{part}'", place=_listed(paths), fix=fix)


def _command(build: str) -> list[str]:
    try:
        return shlex.split(build)
    except ValueError as error:
        raise PerfgateError("kernel-option", f"build={build}: {error}") from error


_FEW = 3


def title_of(paths: Sequence[Path]) -> str:
    """Return a page's heading: the names of files if they are few."""
    names = distinct_names([str(path) for path in paths])
    return f"Kernels in {', '.join(names) if len(names) <= _FEW else f'{len(names):,} files'}"


def _listed(paths: Sequence[Path]) -> str:
    return ", ".join(map(str, paths))


def _changed(before: str, after: str) -> str:
    return f"What the compiler changed: {before} -> {after}"


def _launched(facts: KernelFacts, options: Mapping[str, str]) -> KernelFacts:
    """Return the facts with the launch that the options name, for the code's own architecture."""
    requested = next((a for a in requested_launches({k: v for k, v in options.items() if k != "limits"})), None)
    if requested is None or (requested.arch and requested.arch != facts.arch):
        return facts
    shared = facts.launch.shared_dynamic if facts.launch and requested.shared is None else requested.shared or 0
    launch = Launch(block=(requested.threads, 1, 1), shared_dynamic=shared, source="--set threads")
    return replace(facts, launch=launch)


def _for_architecture(
    diagnoses: list[Diagnosis], options: Mapping[str, str], limits: Mapping[str, SmLimits], stated: BottleneckOptions
) -> list[Diagnosis]:
    """Return diagnoses for views; without code of the options' architecture, with its limits and the same registers."""
    arch = options.get("arch", "") if "threads" in options else ""
    if not arch or any(d.facts.arch == arch for d in diagnoses):
        return diagnoses
    launch, of_roofs = {n: text for n, text in options.items() if n != "arch"}, signals(stated, stated.time_ns)
    return [diagnose(_held_on(arch, d.facts, launch), d.name, limits.get(arch), of_roofs) for d in diagnoses]


def _held_on(arch: str, facts: KernelFacts, launch: Mapping[str, str]) -> KernelFacts:
    text = f"{facts.source} · occupancy on {arch}, registers as compiled for {facts.arch}"
    return replace(_launched(facts, launch), source=text)


def _window(diagnoses: Sequence[Diagnosis]) -> str:
    arches = sorted({d.facts.arch for d in diagnoses})
    compilers = sorted({d.facts.code.compiler for d in diagnoses if d.facts.code and d.facts.code.compiler})
    left_out = unread_note(d.facts for d in diagnoses)
    kernels_by_arch = f"{plural(len(diagnoses), 'kernel')} for {', '.join(arches)}"
    return "; ".join(filter(None, (kernels_by_arch, left_out, *compilers)))


def pictures_of(
    diagnoses: Sequence[Diagnosis], names: Sequence[str], before: Sequence[Diagnosis] = ()
) -> Mapping[str, Callable[[], Picture]]:
    """Return functions that draw pictures of kernels; each imports what it needs when it is called."""

    def draw(name: str) -> Picture:
        from pytest_perfgate.core.analysis.kernels import pictures

        return pictures.draw(name, diagnoses, before)

    return {name: partial(draw, name) for name in names}


@array_value
class Side:
    """The files of one side and their content."""

    paths: Sequence[Path]
    diagnoses: Sequence[Diagnosis]


def _refuse_unrelated(before: Side, after: Side) -> None:
    """Refuse two files without a common kernel, which are of two programs and not comparable."""
    sides = [{diagnosis.facts.name: diagnosis.name for diagnosis in side.diagnoses} for side in (before, after)]
    if not sides[0].keys() & sides[1].keys():
        first, second = (first_of(sorted(set(names.values())), 3) for names in sides)
        what = f"the two have no kernel in common: {first}; and {second}"
        fix = "compare two files of one program, or look at each: perfgate inspect FILE"
        raise PerfgateError("artifact-mixed", what, fix=fix, place=_listed([*before.paths, *after.paths]))


def launches_compared(
    kind: str, before: Side, after: Side, nouns: str, more: MetricSet, scopes: Iterable[Labels] = ()
) -> Analysis:
    """Compare launches: the figures of the second side, ``more`` on its stated work, slowdowns, and what changed."""
    old, new = before.diagnoses, after.diagnoses
    subject = pair_of_names(list(map(str, before.paths)), list(map(str, after.paths)), " -> ")
    _refuse_unrelated(before, after)
    return Analysis(
        kind=kind,
        subject=subject,
        metrics=metrics_of(new, kind, scopes) | MetricSet(metrics=tuple(slowdowns(old, new))) | more,
        views={"comparison": lambda: counters_compared(old, new, subject)},
        pictures=pictures_of(new, ("roofline", "occupancy"), old),
        window=f"{len(old)} and {len(new)} {nouns}",
    )
