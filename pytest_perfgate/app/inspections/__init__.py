"""Inspecting files, checking limits on them, and captures of a run; each kind of file has a module here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from pytest_perfgate.model.errors import PerfgateError, within_memory
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
    kind_title,
)
from pytest_perfgate.model.privacy import Names, named_in, shareable
from pytest_perfgate.model.values import texts_in, value, with_texts

if TYPE_CHECKING:
    from pytest_perfgate.app.profile import Profiled
    from pytest_perfgate.core.limits.grammar import Kinds
    from pytest_perfgate.model.plan import Case, Limit, Policy
    from pytest_perfgate.model.ports import Inspector
    from pytest_perfgate.model.protocol import Capture, CaseResult
    from pytest_perfgate.model.verdict import Verdict

    Take = Callable[[Case, Capture, str], Profiled]
    """Takes one capture of one call."""

T = TypeVar("T")

MOST = 200
"""The most files of a folder that are examined."""

Peek = Callable[[Path], bytes]
"""Reads the first bytes of a file; empty for a folder."""

Named = Callable[[Sequence[Path]], Names]
"""The people and machines that files name, and their project folders."""


def inspect(
    paths: Sequence[Path], options: Mapping[str, str], *, inspectors: Sequence[Inspector], peek: Peek
) -> Analysis:
    """Return the analysis of one file, or of the several files of one job."""
    return choose(paths, options, inspectors=inspectors, peek=peek).inspect(paths, options)


def choose(
    paths: Sequence[Path], options: Mapping[str, str], *, inspectors: Sequence[Inspector], peek: Peek
) -> Inspector:
    """Return the inspector that recognises every file; files of one job are of one kind."""
    chosen = {path: _recognised(path, inspectors, peek) for path in paths}
    kinds = {inspector.name: path for path, inspector in chosen.items()}
    if len(kinds) > 1:
        listed = "; ".join(f"{path} is {kind_title(name)}" for name, path in kinds.items())
        raise PerfgateError("artifact-mixed", f"these files are of different kinds: {listed}")
    inspector = next(iter(chosen.values()))
    _check_options(inspector, options)
    return inspector


def view(analysis: Analysis, name: str = "") -> Document:
    """Return one view of an analysis; by default the first."""
    name = name or next(iter(analysis.views))
    views: dict[str, Callable[[], Document]] = {**analysis.views}
    views |= {PICTURES: partial(pictures_document, analysis)} if analysis.pictures else {}
    name = analysis.reports.get("report", name) if name not in views and name in ("analysis", "report") else name
    if name not in views:
        there, kind = ", ".join(views_of(analysis)), kind_title(analysis.kind)
        raise PerfgateError("view-unknown", f"{kind} files have no view '{name}'", fix=f"one of: {there}")
    return views[name]()


PICTURES = "pictures"
"""The view with all pictures."""


def views_of(analysis: Analysis) -> tuple[str, ...]:
    return (*analysis.views, *([PICTURES] if analysis.pictures else []))


def picture(analysis: Analysis, name: str) -> Picture:
    """Return one picture; raise with the reason if it cannot be drawn."""
    if name not in analysis.pictures:
        fix = f"one of: {', '.join(analysis.pictures)}" if analysis.pictures else "perfgate inspect FILE"
        raise PerfgateError("view-unknown", f"{kind_title(analysis.kind)} files have no picture '{name}'", fix=fix)
    return analysis.pictures[name]()


def pictures_document(analysis: Analysis) -> Document:
    """Return all pictures, and why others are absent."""
    pictures, absent = _draw_all(analysis)
    blocks: tuple[Block, ...] = pictures or (Paragraph(text="There is nothing to draw."),)
    if absent:
        blocks = (*blocks, Section(title="Not drawn", blocks=(Bullets(items=absent),)))
    return Document(title=f"Pictures of {analysis.subject}", subtitle=analysis.window, blocks=blocks)


def with_pictures_first(document: Document, analysis: Analysis, names: Sequence[str] = ()) -> Document:
    """Return the page with all its pictures, or those of these names, first or after the section of its answer."""
    chosen = {name: draw for name, draw in analysis.pictures.items() if name in names or not names}
    drawings, _ = _draw_all(replace(analysis, pictures=chosen))
    first = next(iter(document.blocks), None)
    opening = next(iter(first.blocks), None) if isinstance(first, Section) else first
    at = 1 if isinstance(opening, Paragraph) else 0
    pictures = (Section(title="Pictures", blocks=drawings, anchor=PICTURES),) if drawings else ()
    return replace(document, blocks=(*document.blocks[:at], *pictures, *document.blocks[at:]))


def _draw_all(analysis: Analysis) -> tuple[tuple[Picture, ...], tuple[str, ...]]:
    built = {name: _build(draw) for name, draw in analysis.pictures.items()}
    errors = {name: error for name, error in built.items() if isinstance(error, PerfgateError)}
    absent = tuple(
        f"{name}: {error.what}" + (f"; {error.fix}" if error.fix != error.code.fix else "")
        for name, error in errors.items()
    )
    return tuple(picture for picture in built.values() if isinstance(picture, Picture)), absent


def every_view(analysis: Analysis) -> dict[str, Document]:
    """Return all views of an analysis; those that do not apply to this file are listed last, with the reason."""
    built = {name: _build(build) for name, build in analysis.views.items()}
    documents = {name: view for name, view in built.items() if isinstance(view, Document)}
    absent = {name: view for name, view in built.items() if isinstance(view, PerfgateError)}
    if absent and not documents:
        raise next(iter(absent.values()))
    if absent:
        items = tuple(f"{name}: {error.what}" for name, error in absent.items())
        documents["not applicable"] = Document(title="Views that do not apply", blocks=(Bullets(items=items),))
    return documents


def _build(build: Callable[[], T]) -> T | PerfgateError:
    try:
        return build()
    except PerfgateError as error:
        return error


def _recognised(path: Path, inspectors: Sequence[Inspector], peek: Peek) -> Inspector:
    head = peek(path)
    inspector = next((candidate for candidate in inspectors if candidate.recognises(path, head)), None)
    if inspector is None:
        raise _folder(path, inspectors, peek) or unknown(path, head, inspectors)
    return inspector


def _folder(path: Path, inspectors: Sequence[Inspector], peek: Peek) -> PerfgateError | None:
    """Return the error for a folder of readable files: the user must say which of them belong to one job."""
    files = [file for file in sorted(path.iterdir())[:MOST] if file.is_file()] if path.is_dir() else []
    kinds: dict[str, list[Path]] = {}
    for file in files:
        head = peek(file)
        inspector = next((candidate for candidate in inspectors if candidate.recognises(file, head)), None)
        if inspector is not None:
            kinds.setdefault(inspector.name, []).append(file)
    if not kinds:
        return None
    counts = ", ".join(f"{len(files_of_kind)} of {kind_title(name)}" for name, files_of_kind in kinds.items())
    first = next(iter(kinds.values()))
    fix = f"name the files of one job, such as {first[0] if len(first) == 1 else path / ('*' + first[0].suffix)}"
    what = f"a folder is not read as a whole; its files are: {counts}"
    return PerfgateError("artifact-unknown", what, place=str(path), fix=fix)


def unknown(path: Path, head: bytes, inspectors: Sequence[Inspector]) -> PerfgateError:
    """Return the error for an unreadable file, with its kind if the first bytes show it, else the readable kinds."""
    from pytest_perfgate.core.analysis.foreign_files import GZIP, foreign, unpacked_head

    kind, fix = foreign(head) if head.strip() or path.is_dir() else ("is empty", "copy it again from where it was made")
    if head.startswith(GZIP) and any(tool.recognises(path.with_suffix(""), unpacked_head(head)) for tool in inspectors):
        kind, fix = kind or "is a gzip file", "unpack it: gunzip FILE"
    what = f"the {'folder' if path.is_dir() else 'file'} {kind or 'is of a kind that perfgate cannot read'}"
    kinds = "name a file of one of these kinds: " + ", ".join(kind_title(inspector.name) for inspector in inspectors)
    return PerfgateError("artifact-unknown", what, place=str(path), fix=fix or kinds)


def _check_options(inspector: Inspector, options: Mapping[str, str]) -> None:
    unknown, title = [name for name in options if name not in dict(inspector.options)], kind_title(inspector.name)
    if unknown:
        fix = f"options for {title}: {', '.join(dict(inspector.options)) or 'none'}"
        raise PerfgateError("option-unknown", f"'{unknown[0]}' is not an option for {title} files", fix=fix)


class AnonymousInspector:
    """An inspector without names of people, machines or home folders in its output, which is pasted in public."""

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
        with within_memory(paths):
            analysis = self._inspector.inspect(paths, options)
        if len(set(paths)) < len(paths):  # an inspector that knows ranks has refused it by now
            what = f"{max(paths, key=paths.count)} is given twice"
            raise PerfgateError("artifact-mixed", what, why="both would count", fix="give each file once")
        return _Cleaner(self._named(paths), paths).shared(analysis)

    def compare(self, before: Sequence[Path], after: Sequence[Path], options: Mapping[str, str]) -> Analysis:
        both = (*before, *after)
        with within_memory(both):
            return _Cleaner(self._named(both), both).shared(self._inspector.compare(before, after, options))


class _Cleaner:
    """Removes names from one analysis; a name found in one part is also removed from parts that are built later."""

    def __init__(self, names: Names, paths: Sequence[Path]) -> None:
        self._names, self._paths = names, paths

    def shared(self, analysis: Analysis) -> Analysis:
        plain = (analysis.metrics, analysis.findings, analysis.problems, analysis.subject, analysis.window)
        metrics, findings, problems, subject, window = self._clean(plain)
        return replace(
            analysis, metrics=metrics, findings=findings, problems=problems, subject=subject, window=window,
            views=self._lazy(analysis.views or {analysis.kind: lambda: Document(title=subject, blocks=())}),
            files=self._lazy(analysis.files), data=self._lazy(analysis.data), pictures=self._lazy(analysis.pictures),
        )  # fmt: skip

    def _lazy(self, builds: Mapping[str, Callable[[], T]]) -> dict[str, Callable[[], T]]:
        return {name: partial(self._build, build) for name, build in builds.items()}

    def _build(self, build: Callable[[], T]) -> T:
        with within_memory(self._paths):
            return self._clean(build())

    def _clean(self, content: T) -> T:
        texts = texts_in(content)
        self._names = names = named_in(texts, self._names)
        changed = {text: clean for text in texts if (clean := shareable(text, names)) != text}
        return with_texts(content, changed) if changed else content


@value
class InspectContext:
    """What a command needs to read files."""

    inspectors: tuple[Inspector, ...]
    peek: Peek
    kinds: Kinds
    options: Mapping[str, str]


@value
class JudgingLook(InspectContext):
    """What a command needs to judge files."""

    policy: Policy


def parse_limits(texts: Sequence[str], kinds: Kinds) -> tuple[Limit, ...]:
    """Return the limits of a command line; raise if there is none, since the check would always pass."""
    from pytest_perfgate.core.limits.grammar import parse_limit

    if not texts:
        raise PerfgateError("limit-missing", "no limit was given")
    return tuple(parse_limit(text, kinds=kinds, source="command line") for text in texts)


def parse_strict_policy(pairs: Sequence[str]) -> Policy:
    """Return the policy of ``--policy`` over the defaults of CI, since a check of files needs a definite answer."""
    from pytest_perfgate.core.judge.policy import parse_policy

    return parse_policy(pairs, ci=True, place="--policy")


def analysed(paths: Sequence[Path], texts: Sequence[str], look: InspectContext) -> Analysis:
    """Return the analysis of one job, with the figures that limits ask for."""
    inspector = choose(paths, look.options, inspectors=look.inspectors, peek=look.peek)
    return inspector.inspect(paths, _options(inspector, look, texts))


def check(paths: Sequence[Path], texts: Sequence[str], look: JudgingLook) -> tuple[Analysis, tuple[Verdict, ...]]:
    """Return the analysis of one job and a verdict for each limit."""
    from pytest_perfgate.core.judge.against_limit import judge_artifact

    limits = parse_limits(texts, look.kinds)
    analysis = analysed(paths, texts, look)
    return analysis, judge_artifact(analysis, limits, look.policy)


def compare(
    before: Sequence[Path], after: Sequence[Path], texts: Sequence[str], look: JudgingLook
) -> tuple[Analysis, tuple[Verdict, ...]]:
    """Compare two jobs of one kind, the first as the reference; limits are optional."""
    from pytest_perfgate.core.judge.against_limit import judge_artifact

    limits = parse_limits(texts, look.kinds) if texts else ()
    inspector = choose([*before, *after], look.options, inspectors=look.inspectors, peek=look.peek)
    analysis = inspector.compare(before, after, _options(inspector, look, texts))
    return analysis, judge_artifact(analysis, limits, look.policy)


def _options(inspector: Inspector, look: InspectContext, texts: Sequence[str]) -> Mapping[str, str]:
    """Return the options, with the limits' texts if the inspector's figures depend on them."""
    reads_limits = any(name == "limits" for name, _ in inspector.options)
    return {**look.options, "limits": "\n".join(texts)} if reads_limits else look.options


def exit_of(verdicts: Sequence[Verdict]) -> int:
    """Return the exit code of the command; a missed limit outranks one that could not be judged."""
    from pytest_perfgate.core.judge.policy import exit_code
    from pytest_perfgate.model.plan import CaseKey
    from pytest_perfgate.model.verdict import CaseReport

    return exit_code([CaseReport(key=CaseKey(nodeid=""), verdicts=tuple(verdicts))])


_BROUGHT = frozenset({"record", "read", "cubin"})
"""Timers of what a test took itself, which a run for a capture would not see."""

LOST = "was not taken"


def with_captures(result: CaseResult, take: Take) -> CaseResult:
    """Add the captures' metrics to the case's last round; its timing is unchanged."""
    if not result.captures or result.outcome != "passed":
        return result
    *rounds, last = result.captures
    return replace(result, captures=(*rounds, tuple(_captured(result.case, capture, take) for capture in last)))


def _captured(case: Case, capture: Capture, take: Take) -> Capture:
    if capture.identity.timer in _BROUGHT:
        return capture
    from pytest_perfgate.model.protocol import external

    for mode in external(case.plan.captures):
        capture = _with_profile(case, capture, mode, take)
    return capture


def _with_profile(case: Case, capture: Capture, mode: str, take: Take) -> Capture:
    """Add the capture's figures and files, and a finding that names their source."""
    try:
        profiled = take(case, capture, mode)
    except PerfgateError as fault:
        return _without_profile(case, capture, mode, fault)
    title = f"captured by {profiled.mode} {profiled.version}".rstrip()
    finding = Finding(title=title, detail=profiled.evidence, scope=profiled.mode)
    return replace(
        capture,
        metrics=capture.metrics | trusted(profiled.analysis),
        findings=(*capture.findings, finding, *profiled.analysis.findings),
        artifacts=(*capture.artifacts, *profiled.artifacts),
    )


def _without_profile(case: Case, capture: Capture, mode: str, fault: PerfgateError) -> Capture:
    """Return the capture after a failure: limited metrics without another source are absent with the reason."""
    reason = fault.what.partition("\n")[0].removesuffix("; it said:")
    reason += f"; see {fault.place}" if "\n" in fault.what and fault.place else ""
    finding, why = capture_failed(mode, reason, fault.fix), f"capture {mode} {LOST}: {reason}"
    findings = (*capture.findings, finding)
    return replace(capture, metrics=capture.metrics | absent_metrics(case, why, fault.fix), findings=findings)


def capture_failed(mode: str, why: str, fix: str) -> Finding:
    """Return the finding of a requested capture that failed."""
    title = f"capture {mode} {LOST}"
    return Finding(title=title, detail=why, advice=fix, trigger=why, severity=Severity.INFO, scope=mode)


def absent_metrics(case: Case, why: str, fix: str) -> MetricSet:
    """Return every metric that the case limits as absent, with the reason."""
    names = dict.fromkeys(limit.metric for limit in case.limits)
    return MetricSet(absent=tuple(Absent(name=name, why=why, fix=fix) for name in names))


def trusted(analysis: Analysis) -> MetricSet:
    """Return the metrics of an analysis; after a problem they do not count, and limits on them are INVALID."""
    if not analysis.problems:
        return analysis.metrics
    code, why = analysis.problems[0].code, "; ".join(problem.what for problem in analysis.problems)
    figures = [(m.name, m.labels) for m in analysis.metrics.metrics]
    figures += [(a.name, a.labels) for a in analysis.metrics.absent]
    return MetricSet(absent=tuple(Absent(name=n, labels=s, why=why, code=code) for n, s in figures))
