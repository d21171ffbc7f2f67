"""Files beside an ncu report: annotated source, machine code with its samples, PTX."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import PurePath

from pytest_perfgate.core.analysis.kernels.annotation import sampled, source_lines
from pytest_perfgate.core.analysis.kernels.diagnosis import Diagnosis
from pytest_perfgate.model.kernel import KernelFacts

_ODD = re.compile(r"[^\w.-]+")
_LONGEST = 80
_HEADER = "offset\tshare\tsamples\texecuted\twaits for\tinstruction\tsource"


def code_files(diagnoses: Sequence[Diagnosis]) -> Mapping[str, Callable[[], str]]:
    """``sass/KERNEL.tsv``, ``source/KERNEL/FILE.txt`` and ``ptx/KERNEL.ptx`` of all that the reports hold."""
    return dict(pair for stem, d in _stems(diagnoses) for pair in _files(stem, d.facts))


def _stems(diagnoses: Sequence[Diagnosis]) -> Iterator[tuple[str, Diagnosis]]:
    """A file name for each launch; a kernel launched again is numbered."""
    used: dict[str, int] = {}
    for diagnosis in diagnoses:
        name = _safe(diagnosis.name)
        used[name] = used.get(name, 0) + 1
        yield (name if used[name] == 1 else f"{name}-{used[name]}"), diagnosis


def _files(stem: str, facts: KernelFacts) -> Iterator[tuple[str, Callable[[], str]]]:
    if facts.lines:
        yield f"sass/{stem}.tsv", partial(sass_text, facts)
    for name in facts.sources:
        if any(line.place.startswith(f"{name}:") for line in facts.lines):
            yield f"source/{stem}/{_safe(PurePath(name).name)}.txt", partial(annotated_source, facts, name)
    if any(line.ptx for line in facts.lines):
        yield f"ptx/{stem}.ptx", partial(ptx_text, facts)


def _safe(name: str) -> str:
    return _ODD.sub("-", name).strip("-.")[:_LONGEST] or "kernel"


def sass_text(facts: KernelFacts) -> str:
    """Every instruction in the order of the code, tab-separated; what was not collected is an empty cell."""
    total = sampled(facts)
    rows = (
        (
            f"0x{line.offset:04x}",
            f"{line.samples / total:.4f}" if line.samples is not None and total else "",
            _cell(line.samples),
            _cell(line.executed),
            line.reason,
            line.text.replace("\t", " "),
            line.place,
        )
        for line in facts.lines
    )
    return "\n".join((_HEADER, *("\t".join(row) for row in rows))) + "\n"


def _cell(number: float | None) -> str:
    return "" if number is None else f"{number:.0f}"


def annotated_source(facts: KernelFacts, name: str) -> str:
    """The file as it was compiled, each line with its share of the samples and what it waits for."""
    total, seen = sampled(facts), source_lines(facts)
    lines = []
    for number, text in enumerate(facts.sources[name].splitlines(), 1):
        count, reason = seen.get(f"{name}:{number}", (0.0, ""))
        share = f"{100 * count / total:5.1f} %" if count and total else ""
        lines.append(f"{share:>7}  {reason if share else '':<22.22}  {number:>5} | {text}".rstrip())
    return "\n".join(lines) + "\n"


def ptx_text(facts: KernelFacts) -> str:
    """The PTX behind the instructions, in the order of the code; neighbours from one line are one line."""
    told: list[str] = []
    for line in facts.lines:
        if line.ptx and (not told or told[-1] != line.ptx):
            told.append(line.ptx)
    return "\n".join(told) + "\n"
