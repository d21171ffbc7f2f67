"""Inspect, check, captures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from pytest_perfgate.core.judge.policy import CI, exit_code, parse_policy
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.metric import (
    Absent,
    Analysis,
    Block,
    Bullets,
    Document,
    Finding,
    MetricSet,
    Paragraph,
    Picture,
    Section,
    Severity,
)
from pytest_perfgate.model.plan import Case, CaseKey, Limit, Outcome, Policy
from pytest_perfgate.model.project import Names, named_in, shareable
from pytest_perfgate.model.protocol import Capture, CaseResult, external
from pytest_perfgate.model.values import texts_in, value, with_texts
from pytest_perfgate.model.verdict import CaseReport, SuiteNote, Verdict

if TYPE_CHECKING:
    from pytest_perfgate.app.profile import Profiled
    from pytest_perfgate.core.limits.grammar import Kinds
    from pytest_perfgate.model.ports import Inspector

T = TypeVar("T")

MOST = 200
"""Files of a folder that are looked into."""

Peek = Callable[[Path], bytes]
"""Reads the first bytes of a file; a folder has none."""

Named = Callable[[Sequence[Path]], Names]
"""The people and machines that files name, and the folders of their projects."""


def inspect(
    paths: Sequence[Path], options: Mapping[str, str], *, inspectors: Sequence[Inspector], peek: Peek
) -> Analysis:
    """The analysis of one file, or of the several files of one job."""
    return choose(paths, options, inspectors=inspectors, peek=peek).inspect(paths, options)


def choose(
    paths: Sequence[Path], options: Mapping[str, str], *, inspectors: Sequence[Inspector], peek: Peek
) -> Inspector:
    """The inspector that recognises every file; a job is of one kind."""
    chosen = {path: _recognised(path, inspectors, peek) for path in paths}
    kinds = {inspector.name: path for path, inspector in chosen.items()}
    if len(kinds) > 1:
        listed = "; ".join(f"{path} is {name}" for name, path in kinds.items())
        raise PerfgateError("artifact-mixed", f"these files are of different kinds: {listed}")
    inspector = next(iter(chosen.values()))
    _check_options(inspector, options)
    return inspector


def view(analysis: Analysis, name: str = "") -> Document:
    """One view of an analysis; the first is the default."""
    if not name:
        return next(iter(analysis.views.values()))()
    if name == PICTURES and analysis.pictures:
        return pictures_document(analysis)
    if name not in analysis.views:
        there = ", ".join(views_of(analysis))
        raise PerfgateError("view-unknown", f"a {analysis.kind} file has no view '{name}'", fix=f"one of: {there}")
    return analysis.views[name]()


PICTURES = "pictures"
"""The view that has all of them."""


def views_of(analysis: Analysis) -> tuple[str, ...]:
    """The names of what can be shown."""
    return (*analysis.views, *([PICTURES] if analysis.pictures else []))


def picture(analysis: Analysis, name: str) -> Picture:
    """One picture, or an error with the reason why there is none."""
    if name not in analysis.pictures:
        fix = f"one of: {', '.join(analysis.pictures)}" if analysis.pictures else "perfgate inspect FILE"
        raise PerfgateError("view-unknown", f"a {analysis.kind} file has no picture '{name}'", fix=fix)
    return analysis.pictures[name]()


def pictures_document(analysis: Analysis) -> Document:
    """All pictures, and why others are not there."""
    drawn, left = _drawn(analysis)
    blocks: tuple[Block, ...] = drawn or (Paragraph(text="There is nothing to draw."),)
    if left:
        blocks = (*blocks, Section(title="Not drawn", blocks=(Bullets(items=left),)))
    return Document(title=f"Pictures of {analysis.subject}", subtitle=analysis.window, blocks=blocks)


def led_by_pictures(document: Document, analysis: Analysis, names: Sequence[str] = ()) -> Document:
    """The same page with its pictures, or with those of these names, before all else."""
    chosen = {name: draw for name, draw in analysis.pictures.items() if name in names or not names}
    drawn, _ = _drawn(replace(analysis, pictures=chosen))
    if not drawn:
        return document
    return replace(document, blocks=(Section(title="Pictures", blocks=drawn, anchor=PICTURES), *document.blocks))


def _drawn(analysis: Analysis) -> tuple[tuple[Picture, ...], tuple[str, ...]]:
    built = {name: _built(draw) for name, draw in analysis.pictures.items()}
    left = tuple(
        f"{name}: {one.what}" + (f"; {one.fix}" if one.fix != one.code.fix else "")
        for name, one in built.items()
        if isinstance(one, PerfgateError)
    )
    return tuple(one for one in built.values() if isinstance(one, Picture)), left


def every_view(analysis: Analysis) -> dict[str, Document]:
    """All views of an analysis; those that do not apply to this file are listed at the end, each with its reason."""
    built = {name: _built(build) for name, build in analysis.views.items()}
    documents = {name: view for name, view in built.items() if isinstance(view, Document)}
    left = {name: view for name, view in built.items() if isinstance(view, PerfgateError)}
    if left and not documents:
        raise next(iter(left.values()))
    if left:
        items = tuple(f"{name}: {error.what}" for name, error in left.items())
        documents["not applicable"] = Document(title="Views that do not apply", blocks=(Bullets(items=items),))
    return documents


def _built(build: Callable[[], T]) -> T | PerfgateError:
    try:
        return build()
    except PerfgateError as error:
        return error


def _recognised(path: Path, inspectors: Sequence[Inspector], peek: Peek) -> Inspector:
    head = peek(path)
    inspector = next((one for one in inspectors if one.recognises(path, head)), None)
    if inspector is None:
        raise _folder(path, inspectors, peek) or unknown(path, head, inspectors)
    return inspector


def _folder(path: Path, inspectors: Sequence[Inspector], peek: Peek) -> PerfgateError | None:
    """The error for a folder whose files are read one by one: which of them are one job is for a person to say."""
    files = [file for file in sorted(path.iterdir())[:MOST] if file.is_file()] if path.is_dir() else []
    kinds: dict[str, list[Path]] = {}
    for file in files:
        head = peek(file)
        for one in inspectors:
            if one.recognises(file, head):
                kinds.setdefault(one.name, []).append(file)
                break
    if not kinds:
        return None
    counts = ", ".join(f"{len(files_of_kind)} of {name}" for name, files_of_kind in kinds.items())
    first = next(iter(kinds.values()))
    fix = f"name the files of one job, such as {first[0] if len(first) == 1 else path / ('*' + first[0].suffix)}"
    what = f"a folder is not read as a whole; its files are: {counts}"
    return PerfgateError("artifact-unknown", what, place=str(path), fix=fix)


def unknown(path: Path, head: bytes, inspectors: Sequence[Inspector]) -> PerfgateError:
    """The error for a file that nothing reads: what it is where its first bytes tell, else what is read."""
    from pytest_perfgate.core.analysis.foreign_files import GZIP, foreign, unpacked_head

    kind, fix = foreign(head)
    if head.startswith(GZIP) and any(one.recognises(path.with_suffix(""), unpacked_head(head)) for one in inspectors):
        fix = "unpack it: gunzip FILE"
    what = kind or ("is empty" if not head and path.is_file() else "is of no kind that anything here reads")
    kinds = "kinds: " + ", ".join(one.name for one in inspectors)
    thing = "folder" if path.is_dir() else "file"
    return PerfgateError("artifact-unknown", f"the {thing} {what}", place=str(path), fix=fix or kinds)


def _check_options(inspector: Inspector, options: Mapping[str, str]) -> None:
    options_of = [name for name, _ in inspector.options]
    strange = [name for name in options if name not in options_of]
    if strange:
        fix = f"options for {inspector.name}: {', '.join(options_of) or 'none'}"
        raise PerfgateError("option-unknown", f"'{strange[0]}' means nothing to a {inspector.name} file", fix=fix)


class Shareable:
    """An inspector whose answers name no person, machine or home folder: they are pasted where anybody reads them."""

    def __init__(self, inspector: Inspector, named: Named) -> None:
        self.name, self._inspector, self._named = inspector.name, inspector, named

    @property
    def views(self) -> Sequence[str]:
        return self._inspector.views

    @property
    def options(self) -> Sequence[tuple[str, str]]:
        return self._inspector.options

    def recognises(self, path: Path, head: bytes) -> bool:
        return self._inspector.recognises(path, head)

    def inspect(self, paths: Sequence[Path], options: Mapping[str, str]) -> Analysis:
        analysis = self._inspector.inspect(paths, options)
        if len(set(paths)) < len(paths):  # a kind that knows ranks has refused it by now, and says more
            what = f"{max(paths, key=paths.count)} is given twice"
            raise PerfgateError("artifact-mixed", what, why="both would count", fix="give each file once")
        return _Cleaner(self._named(paths)).shared(analysis)

    def compare(self, before: Sequence[Path], after: Sequence[Path], options: Mapping[str, str]) -> Analysis:
        return _Cleaner(self._named([*before, *after])).shared(self._inspector.compare(before, after, options))


class _Cleaner:
    """Takes names out of one analysis; whoever is named in one part of it is known in those that are built later."""

    def __init__(self, names: Names) -> None:
        self._names = names

    def shared(self, analysis: Analysis) -> Analysis:
        plain = (analysis.metrics, analysis.findings, analysis.problems, analysis.subject, analysis.window)
        metrics, findings, problems, subject, window = self._clean(plain)
        return replace(
            analysis, metrics=metrics, findings=findings, problems=problems, subject=subject, window=window,
            views=self._later(analysis.views), files=self._later(analysis.files), kept=self._later(analysis.kept),
            pictures=self._later(analysis.pictures),
        )  # fmt: skip

    def _later(self, builds: Mapping[str, Callable[[], T]]) -> dict[str, Callable[[], T]]:
        return {name: partial(self._built, build) for name, build in builds.items()}

    def _built(self, build: Callable[[], T]) -> T:
        return self._clean(build())

    def _clean(self, thing: T) -> T:
        texts = texts_in(thing)
        self._names = names = named_in(texts, self._names)
        changed = {text: clean for text in texts if (clean := shareable(text, names)) != text}
        return with_texts(thing, changed) if changed else thing


@value
class Look:
    """What a command needs to look into files."""

    inspectors: tuple[Inspector, ...]
    peek: Peek
    kinds: Kinds
    options: Mapping[str, str]
    policy: Policy = CI


def parse_limits(texts: Sequence[str], kinds: Kinds) -> tuple[Limit, ...]:
    """The limits of a command line; none at all would pass in silence."""
    from pytest_perfgate.core.limits.grammar import parse_limit

    if not texts:
        raise PerfgateError("limit-missing", "no limit was given")
    return tuple(parse_limit(text, kinds=kinds, source="command line") for text in texts)


def parse_strict_policy(pairs: Sequence[str]) -> Policy:
    """What ``--policy`` says, over the choices of CI: who holds limits against a file asks for an answer."""
    return parse_policy(pairs, ci=True, place="--policy")


def analysed(paths: Sequence[Path], texts: Sequence[str], look: Look) -> Analysis:
    """The analysis of one job, with the figures that limits ask for."""
    inspector = choose(paths, look.options, inspectors=look.inspectors, peek=look.peek)
    return inspector.inspect(paths, _asked(inspector, look, texts))


def check(paths: Sequence[Path], texts: Sequence[str], look: Look) -> tuple[Analysis, tuple[Verdict, ...]]:
    """The analysis of one job and a verdict for each limit."""
    from pytest_perfgate.core.judge.against_limit import judge_artifact

    limits = parse_limits(texts, look.kinds)
    analysis = analysed(paths, texts, look)
    return analysis, judge_artifact(analysis, limits, look.policy)


def compare(
    before: Sequence[Path], after: Sequence[Path], texts: Sequence[str], look: Look
) -> tuple[Analysis, tuple[Verdict, ...]]:
    """Two jobs of one kind, the first being the reference; limits are optional."""
    from pytest_perfgate.core.judge.against_limit import judge_artifact

    limits = parse_limits(texts, look.kinds) if texts else ()
    inspector = choose([*before, *after], look.options, inspectors=look.inspectors, peek=look.peek)
    analysis = inspector.compare(before, after, _asked(inspector, look, texts))
    return analysis, judge_artifact(analysis, limits, look.policy)


def _asked(inspector: Inspector, look: Look, texts: Sequence[str]) -> Mapping[str, str]:
    """The options, with the limits' texts for an inspector whose figures depend on what is asked."""
    wants = any(name == "limits" for name, _ in inspector.options)
    return {**look.options, "limits": "\n".join(texts)} if wants else look.options


def exit_of(verdicts: Sequence[Verdict]) -> int:
    """The command line's exit code: a broken limit outweighs one that could not be judged."""
    return exit_code([CaseReport(key=CaseKey(nodeid=""), verdicts=tuple(verdicts))])


Take = Callable[[Case, Capture, str], "Profiled"]
"""Takes one capture of one call."""

_BROUGHT = frozenset({"record", "read", "cubin"})
"""What a test took by itself: no run of ours would see it."""

LOST = "was not taken"


def with_captures(result: CaseResult, take: Take) -> CaseResult:
    """The case's last round with what its captures say; its timing stays as it was."""
    if not result.captures or result.outcome != "passed":
        return result
    *rounds, last = result.captures
    return replace(result, captures=(*rounds, tuple(_captured(result.case, one, take) for one in last)))


def _captured(case: Case, one: Capture, take: Take) -> Capture:
    if one.identity.timer in _BROUGHT:
        return one
    for mode in external(case.plan.captures):
        one = _joined(case, one, mode, take)
    return one


def _joined(case: Case, one: Capture, mode: str, take: Take) -> Capture:
    try:
        return _with(one, take(case, one, mode))
    except PerfgateError as fault:
        return _without(case, one, mode, fault)


def _with(one: Capture, done: Profiled) -> Capture:
    """The figures, the files, and the line that says where the figures are from."""
    version = f" {done.version}" if done.version else ""
    finding = Finding(title=f"captured by {done.mode}{version}", detail=done.evidence, scope=done.mode)
    return replace(
        one,
        metrics=one.metrics | trusted(done.analysis),
        findings=(*one.findings, finding, *done.analysis.findings),
        artifacts=(*one.artifacts, *done.artifacts),
    )


def _without(case: Case, one: Capture, mode: str, fault: PerfgateError) -> Capture:
    """A capture that failed: whatever is limited and came from nowhere else says why it is not there."""
    reason = fault.what.partition("\n")[0].removesuffix("; it said:")
    reason += f"; see {fault.place}" if "\n" in fault.what and fault.place else ""
    finding = capture_failed(mode, reason, fault.fix)
    why = f"{finding.title}: {reason}"
    return replace(one, metrics=one.metrics | lacking(case, why, fault.fix), findings=(*one.findings, finding))


def capture_failed(mode: str, why: str, fix: str) -> Finding:
    """A capture that was asked for and is not there."""
    title = f"capture {mode} {LOST}"
    return Finding(title=title, detail=why, advice=fix, trigger=why, severity=Severity.INFO, scope=mode)


def lacking(case: Case, why: str, fix: str) -> MetricSet:
    """The reason in the place of every metric that the case limits."""
    names = dict.fromkeys(limit.metric for limit in case.limits)
    return MetricSet(absent=tuple(Absent(name=name, why=why, fix=fix) for name in names))


def trusted(analysis: Analysis) -> MetricSet:
    """The metrics of an analysis; with a problem none of them counts, and limits on them are INVALID."""
    if not analysis.problems:
        return analysis.metrics
    first = analysis.problems[0]
    why = "; ".join(problem.what for problem in analysis.problems)
    figures = [(m.name, m.labels) for m in analysis.metrics.metrics]
    figures += [(a.name, a.labels) for a in analysis.metrics.absent]
    return MetricSet(absent=tuple(Absent(name=n, labels=s, why=why, code=first.code) for n, s in figures))


def capture_notes(reports: Iterable[CaseReport], policy: Policy) -> tuple[SuiteNote, ...]:
    """Captures that failed where no limit says so already: asked for and not taken must not look taken."""
    names = tuple(
        f"{report.key}: {finding.title}: {finding.detail}" + (f"; next: {finding.advice}" if finding.advice else "")
        for report in reports
        if report.measurement and all(v.outcome is not Outcome.NOT_MEASURED for v in report.verdicts)
        for finding in report.measurement.findings
        if finding.title.endswith(LOST)
    )
    text = f"{len(names)} capture{'' if len(names) == 1 else 's'} asked for and not taken"
    return (SuiteNote(kind="captures", effect=policy.effect("unmeasured"), text=text, names=names),) if names else ()
