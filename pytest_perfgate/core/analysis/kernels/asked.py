"""Launches that people ask about: by option, or in the scope of a limit."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from pytest_perfgate.core.analysis.cliff import cliff
from pytest_perfgate.core.analysis.kernels.diagnosis import Diagnosis
from pytest_perfgate.core.analysis.kernels.measured import metric
from pytest_perfgate.core.analysis.occupancy import occupancy
from pytest_perfgate.core.analysis.sass.facts import static_shared
from pytest_perfgate.core.gate.fault import Span, Written
from pytest_perfgate.core.gate.scope import closing, parse_scope
from pytest_perfgate.core.metrics.kernel import KINDS
from pytest_perfgate.model.device import SmLimits
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.metric import Labels, Metric, labels
from pytest_perfgate.model.values import value

_SCOPED = re.compile(r"\b(?:occupancy_limit|cliff_distance)\s*\(([^)]*)\)")
_COUNTS = re.compile(r"\s*(count|executed)\s*\(")
_KINDS = {kind.name: kind for kind in KINDS}
_SIZE = re.compile(r"(\d+)\s*(B|KiB|KB|MiB|MB)?")
_FAMILY = re.compile(r"^(sm_\d+)[af]$")
"""Code for one architecture alone, or for its family: a multiprocessor of it holds the same."""
_UNITS = {"": 1, "B": 1, "KB": 1000, "KiB": 1024, "MB": 1000**2, "MiB": 1024**2}


@value
class AskedLaunch:
    """A block of so many threads on an architecture, with what the launch adds to shared memory."""

    threads: int
    arch: str = ""
    """Empty: the one that the code was compiled for."""
    shared: int | None = None
    """Dynamic bytes as asked; ``None`` where nothing was said."""
    written: tuple[tuple[str, str], ...] = ()
    """The scope as it was written, which the metric must answer to."""


def asked_launches(options: Mapping[str, str]) -> tuple[AskedLaunch, ...]:
    """From the options ``threads``, ``arch`` and ``smem``, and from ``limits``: the text of the limits to judge."""
    scopes = [_pairs(inside) for inside in _SCOPED.findall(options.get("limits", ""))]
    if "threads" in options:
        scopes.append({name: options[name] for name in ("threads", "arch", "smem") if name in options})
    return tuple(dict.fromkeys(_asked(scope) for scope in scopes if "threads" in scope))


def _pairs(inside: str) -> dict[str, str]:
    parts = (part.partition("=") for part in inside.split(","))
    return {name.strip(): text.strip() for name, sign, text in parts if sign}


def _asked(scope: Mapping[str, str]) -> AskedLaunch:
    written = {name: text for name, text in scope.items() if name in {"threads", "smem", "arch"}}
    return AskedLaunch(
        threads=_number("threads", scope["threads"]),
        arch=_FAMILY.sub(r"\1", scope.get("arch", "")),
        shared=_number("smem", scope["smem"]) if "smem" in scope else None,
        written=labels(**written),
    )


def _number(name: str, text: str) -> int:
    read = _SIZE.fullmatch(text.strip())
    if not read:
        raise PerfgateError("kernel-option", f"{name}={text} is no number", mend=f"write {name}=256 or {name}=48KiB")
    return int(read[1]) * _UNITS[read[2] or ""]


def asked_opcodes(options: Mapping[str, str]) -> tuple[Labels, ...]:
    """Instructions that the limits to judge count: ``count(LDG.E.128)`` or ``count(LDG, modifiers=E.128)``."""
    scopes = (dict(_scope(line)) for line in options.get("limits", "").splitlines())
    return tuple(dict.fromkeys(instruction(**scope) for scope in scopes if "opcode" in scope))


def instruction(opcode: str, modifiers: str = "", **_: str) -> Labels:
    """Modifiers are a label of their own, so that a pattern of opcodes selects opcodes alone."""
    told = modifiers or opcode.partition(".")[2]
    return (*((("modifiers", told),) if told else ()), ("opcode", opcode))


def _scope(line: str) -> Labels:
    found = _COUNTS.match(line)
    if found is None:
        return ()
    written, opened = Written(text=line), found.end() - 1
    return parse_scope(written, Span(start=opened + 1, end=closing(written, opened)), _KINDS[found[1]])


def asked_metrics(
    diagnoses: Sequence[Diagnosis], asked: Sequence[AskedLaunch], limits: Mapping[str, SmLimits]
) -> Iterator[Metric]:
    """Occupancy and cliff distance of each kernel under each asked launch.

    Code compiled for the asked architecture answers alone; without any, every build answers with its registers.
    """
    for launch in asked:
        exact = [d for d in diagnoses if d.facts.arch == launch.arch]
        for diagnosis in exact or diagnoses:
            yield from _answers(diagnosis, launch, limits)


def _answers(diagnosis: Diagnosis, asked: AskedLaunch, limits: Mapping[str, SmLimits]) -> Iterator[Metric]:
    facts = diagnosis.facts
    arch = asked.arch or facts.arch
    if facts.resources is None:
        return
    if arch not in limits:
        known = ", ".join(sorted(limits, key=lambda a: int(re.sub(r"\D", "", a) or 0)))
        raise PerfgateError("kernel-arch", f"the catalogue has no limits of {arch}", mend=f"name one of {known}")
    given = facts.launch.shared_dynamic if facts.launch else 0
    shared = static_shared(facts) + (given if asked.shared is None else asked.shared)
    who = labels(**{"arch": arch, **dict(asked.written), "kernel": diagnosis.name})
    note = "" if arch == facts.arch else f"registers as compiled for {facts.arch}"
    resources = facts.resources.registers
    held = occupancy(limits[arch], threads=asked.threads, registers=resources, shared=shared)
    step = cliff(limits[arch], threads=asked.threads, registers=resources, shared=shared)
    most = facts.most_threads
    over = f"compiled for {most} threads at the most" if most and asked.threads > most else ""
    why = over or held.why_none or ", ".join(held.limiting)
    yield metric("occupancy_limit", 0.0 if over else held.fraction, who, "; ".join(filter(None, (why, note))))
    if not step.moot:
        yield metric("cliff_distance", step.edge - step.shared, who, note)
