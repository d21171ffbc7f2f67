"""The commands accept, review, prune, and the merge driver of baselines."""

from __future__ import annotations

import shlex
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_perfgate.cli.dispatch import Project, add_root
from pytest_perfgate.cli.doctor import build_faults
from pytest_perfgate.cli.output import columns, write, write_json
from pytest_perfgate.core.render.words import plural
from pytest_perfgate.model.errors import PerfgateError

if TYPE_CHECKING:
    from datetime import date

    from pytest_perfgate.app.accept import EntriesOf, Request
    from pytest_perfgate.core.judge.acceptance import Proposal
    from pytest_perfgate.core.judge.accepted_line import Signature
    from pytest_perfgate.model.measurement import Baseline, HistoryEntry
    from pytest_perfgate.model.verdict import CaseReport, RunReport


ACCEPT_ABOUT = """Accept measured times as the baseline, from the last record or the one that CI uploaded.

  perfgate accept                              every new or faster time; a slower one needs --reason
  perfgate accept 'test_gemm[4096]' --reason "exact rounding costs 8 %"
  perfgate accept --from https://ci.example/artifacts/record.json --new

It rewrites a line only where the time moved beyond its noise, or where the measured code now has a commit.
"""


def accept_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("names", nargs="*", metavar="NODEID", help="cases, tests, files or folders (default: all)")
    parser.add_argument("-k", dest="expression", default="", metavar="EXPR", help="cases whose names match")
    parser.add_argument("--reason", default="", metavar="TEXT", help="why; a slower time needs it")
    parser.add_argument("--new", action="store_true", help="only cases without a baseline")
    parser.add_argument("--improved", action="store_true", help="only cases that the run reported as faster")
    parser.add_argument("--add", action="store_true", help="count this run beside the accepted ones")
    parser.add_argument(
        "--metric", action="append", default=[], metavar="NAME", help="also accept this metric, without a limit on it"
    )
    parser.add_argument("--anchor", action="store_true", help="count the drift of the line anew from this time")
    parser.add_argument("--expires", default="", metavar="DATE", help="accept until this day, such as 2027-01-31")
    parser.add_argument("--from", dest="source", default="", metavar="RECORD|URL", help="this record, not the last")
    parser.add_argument("--dry-run", action="store_true", help="show what would be written")
    parser.add_argument("--in-ci", action="store_true", help="write although CI is set")
    add_root(parser)
    parser.set_defaults(each=False)


def run_accept(options: Namespace) -> int:
    from pytest_perfgate.app.accept import accept, check_decisions, decisions, refuse_busy_machine

    project = Project(options)
    check_place(options, project)
    report = project.records.read(options.source)
    request = request_of(options, project, report)
    decided = decisions(report, request, project.baselines, entries_of(project))
    if options.dry_run:
        _preview(decided, refusal(decided, request), options)
        return 0
    anchor = " --anchor" if any(d.drifts_too_far for d in decided) and not options.anchor else ""
    again = f'{shlex.join(["perfgate", "accept", *_without_reason(options.given)])}{anchor} --reason "..."'
    check_decisions(decided, request, again)
    if project.ci:
        refuse_busy_machine(decided, request, again)
    _show(decided, accept(decided, project.baselines), options, project, report)
    return 0


def _without_reason(command: Sequence[str]) -> list[str]:
    """Return the command's words without its reason, so that a better one can be added."""
    words, plain_words = iter(command), []
    for word in words:
        if word == "--reason":
            next(words, "")
        elif not word.startswith("--reason="):
            plain_words.append(word)
    return plain_words


def refusal(decisions: Sequence[Proposal], request: Request) -> str:
    """Return why these lines would be refused; "" if they would not."""
    from pytest_perfgate.app.accept import check_decisions

    try:
        check_decisions(decisions, request)
    except PerfgateError as fault:
        return f"{fault.what}\n  next  {fault.fix}" if fault.fix else fault.what
    return ""


def _preview(decisions: Sequence[Proposal], refused: str, options: Namespace) -> None:
    """Show what would be written, and what prevents it."""
    from pytest_perfgate.core.render.block import acceptance_lines
    from pytest_perfgate.core.render.exports import acceptance_json

    if options.json:
        write_json({"decisions": acceptance_json(decisions), "files": [], "refused": refused})
    else:
        write("\n".join((*acceptance_lines(decisions, dry=True), *filter(None, (refused,)))))


def check_place(options: Namespace, project: Project) -> None:
    if project.ci and not options.in_ci and not options.dry_run:
        raise PerfgateError("accept-ci", "CI is set")


def request_of(options: Namespace, project: Project, report: RunReport) -> Request:
    """Return the request with the signature of the user who runs the command."""
    from pytest_perfgate.app.accept import Request, code_of

    signature = signature_of(options, project, report)
    return Request(
        names=tuple(map(text_of, options.names)),
        expression=text_of(options.expression),
        new=options.new,
        improved=options.improved,
        add=options.add,
        metrics=tuple(map(text_of, options.metric)),
        each=options.each,
        base=project.repository.base().commit,
        signature=signature,
        since=code_of(signature.commit, project.repository, project.config.baselines) if options.add else None,
    )


def signature_of(options: Namespace, project: Project, report: RunReport) -> Signature:
    """Return the author, the time and the commit."""
    import datetime as dt
    import getpass

    from pytest_perfgate.app.accept import measured_commit
    from pytest_perfgate.core.judge.accepted_line import Signature

    today, reason = dt.datetime.now(dt.timezone.utc).date(), " ".join(text_of(options.reason).split())
    if reason and not reason.strip(".…"):
        raise PerfgateError("accept-reason", f"'{reason}' is the place of a reason", fix="write why between the quotes")
    try:
        author = project.repository.author() or getpass.getuser()
    except (OSError, KeyError):
        author = ""
    return Signature(
        who=text_of(author),
        when=today.isoformat(),
        why=reason,
        commit=measured_commit(report.environment, None if options.source else project.repository),
        expires=_end(options.expires, today),
        started=report.started,
        anchor=options.anchor,
        creep=project.config.anchor,
        untracked=() if options.source or not options.add else project.repository.untracked(project.config.baselines),
    )


def text_of(word: str) -> str:
    """Return a word as typed; bytes that the locale could not decode are read as UTF-8."""
    import os

    if not any("\ud800" <= letter <= "\udfff" for letter in word):
        return word
    try:
        return os.fsencode(word).decode("utf-8", "replace")
    except UnicodeEncodeError:
        return word


def _end(text: str, today: date) -> str:
    """Return the last day of an acceptance, today at the earliest."""
    if not text:
        return ""
    try:
        end = type(today).fromisoformat(text)
    except ValueError as fault:
        raise PerfgateError("command-usage", f"--expires {text} is not a date", fix="write 2027-01-31") from fault
    if end < today:
        raise PerfgateError(
            "command-usage",
            f"--expires {text} has passed: today is {today.isoformat()} (UTC)",
            why="the baseline would expire before its first use",
            fix="name a day from today on, or leave --expires out",
        )
    return end.isoformat()


def _notes(
    decisions: Sequence[Proposal], options: Namespace, project: Project, report: RunReport
) -> Iterator[dict[str, str]]:
    """Yield notes on the lines: which stay in this checkout, which no commit holds, and what to do."""
    after = [decision.after for decision in decisions if decision.after is not None]
    measured = {case.measurement.device.key for case in report.cases if case.measurement}
    devices = {line.device for line in after} if after else measured
    for device in sorted(device for device in devices if not project.baselines.committed(device)):
        what = f"{device} is not in [tool.perfgate] devices: its baselines stay in this checkout, under .perfgate/"
        commit = f'add "{device}" to devices under [tool.perfgate], then perfgate accept --new'
        yield {"what": what, "next": "" if after else commit}
    if after:
        yield from ({"what": fault["what"], "next": fault["fix"]} for fault in build_faults(project))
        yield from _commit_notes(after, options, project)
    then = report.environment
    clean_other = not options.source and not then.dirty and then.commit not in ("", project.repository.head())
    if after and clean_other and project.repository.pages_alone(then.commit, project.config.baselines) is None:
        what = f"the last run measured {then.commit[:10]}, whose code is not the code that is checked out"
        yield {"what": what, "next": "run the tests here, then perfgate accept again"}


def _commit_notes(lines: Sequence[Baseline], options: Namespace, project: Project) -> Iterator[dict[str, str]]:
    """Yield notes on lines that no build can confirm, because no commit holds what they measured."""
    from pytest_perfgate.model.measurement import DIRTY

    if count := sum(1 for line in lines if not line.commit):
        trouble, fix = ("", "") if options.source else project.repository.trouble() or ("", "")
        whose, nameless = "it" if count == 1 else "them", plural(count, "line names", "lines name")
        why = trouble or "the record names none"
        what = f"{nameless} no commit, so base and head cannot confirm a slowdown of {whose}: {why}"
        yield {"what": what, "next": fix}
    if changed := sum(1 for line in lines if line.commit.endswith(DIRTY)):
        measured = plural(changed, "line was", "lines were")
        what = f"{measured} measured with changes that no commit holds: no build of them can confirm a slowdown"
        yield {"what": what, "next": "commit the changes, then run the tests and perfgate accept again"}


def entries_of(project: Project) -> EntriesOf:
    """Return a function for the last runs of a case in the history that were measured in the same way."""
    from pytest_perfgate.app.accepted import comparable_entries

    def entries(case: CaseReport) -> Sequence[HistoryEntry]:
        return comparable_entries(case.measurement, project.history) if case.measurement else ()

    return entries


def _show(
    decisions: Sequence[Proposal], paths: Sequence[str], options: Namespace, project: Project, report: RunReport
) -> None:
    from pytest_perfgate.core.render.block import acceptance_lines
    from pytest_perfgate.core.render.exports import acceptance_json

    files, notes = [project.shown(Path(path)) for path in paths], [*_notes(decisions, options, project, report)]
    if options.json:
        write_json({"decisions": acceptance_json(decisions), "files": files, "notes": notes})
        return
    write("\n".join(acceptance_lines(decisions)))
    for file in files:
        write(f"wrote {file}")
    for note in notes:
        write(note["what"] + (f"\n  next  {note['next']}" if note["next"] else ""))


REVIEW_ABOUT = (
    """Walk through what moved, one case after the other, and accept or skip each; nothing is written before the end."""
)

_KEYS = "a or y accept, s or n skip, q stop asking, ? this help"

_MEANS = {"a": "a", "y": "a", "s": "s", "n": "s", "q": "q"}


def review_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("names", nargs="*", metavar="NODEID", help="only these cases")
    parser.add_argument("-k", dest="expression", default="", metavar="EXPR", help="cases whose names match")
    parser.add_argument("--from", dest="source", default="", metavar="RECORD|URL", help="this record, not the last")
    add_root(parser)
    parser.set_defaults(each=True, reason="", new=False, improved=False, add=False, metric=[], anchor=False, expires="")
    parser.set_defaults(dry_run=False, in_ci=False)


def run_review(options: Namespace) -> int:
    from pytest_perfgate.app.accept import accept, decisions, refuse_pinned
    from pytest_perfgate.core.render.exports import acceptance_json

    project = Project(options)
    check_place(options, project)
    report = project.records.read(options.source)
    request = request_of(options, project, report)
    every = decisions(report, request, project.baselines, entries_of(project))
    refuse_pinned(every)
    changes = [d for d in every if d.writes]
    if options.json:
        write_json({"decisions": acceptance_json(changes)})
        return 0
    if not changes:
        write("nothing moved beyond its noise")
        return 0
    if not sys.stdin.isatty():
        raise PerfgateError("review-terminal", "review asks questions, and this is not a terminal")
    chosen = _review_each(changes, request.signature)
    paths = accept(chosen, project.baselines)
    write(f"{len(chosen)} accepted, {len(changes) - len(chosen)} skipped")
    for path in paths:
        write(f"wrote {project.shown(Path(path))}")
    return 0


def _review_each(decisions: Sequence[Proposal], signature: Signature) -> list[Proposal]:
    from pytest_perfgate.core.render.block import decision_lines, render_block

    chosen: list[Proposal] = []
    for number, decision in enumerate(decisions, 1):
        write(f"\n[{number}/{len(decisions)}]  " + "\n".join(decision_lines(decision)))
        write(render_block(decision.report, columns()).rstrip("\n"))
        try:
            answer = _answer()
            if answer == "a":
                chosen.append(_with_reason(decision, signature))
        except EOFError:  # the end of input ends the review, and is not a reason
            write("")
            break
        if answer == "q":
            break
    return chosen


def _answer() -> str:
    while True:
        answer = input("accept? [a/s/q/?] ").strip().lower()[:1]
        if answer in _MEANS:
            return _MEANS[answer]
        write(_KEYS)


def _with_reason(decision: Proposal, signature: Signature) -> Proposal:
    """Return the decision with the entered reason; a slower time requires one."""
    from pytest_perfgate.app.accept import repeats_reason

    assert decision.after is not None
    while True:
        reason = " ".join(text_of(input("reason: " if decision.asks else "reason (may be empty): ")).split())
        signed = replace(decision.after, why=reason, who=signature.who, when=signature.when)
        reasoned = replace(decision, after=signed) if reason else decision
        if decision.asks and reason and repeats_reason(reasoned):
            write("the same reason was given today: say what is new")
        elif reason or not decision.asks:
            return reasoned
        else:
            write("this needs a reason")


PRUNE_ABOUT = """Remove baselines whose tests are gone. This needs a full run that passed and left out no test."""


def prune_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--from", dest="source", default="", metavar="RECORD|URL", help="this record, not the last")
    parser.add_argument("--dry-run", action="store_true", help="show what would be removed")
    parser.add_argument("--in-ci", action="store_true", help="write although CI is set")
    add_root(parser)


def run_prune(options: Namespace) -> int:
    from pytest_perfgate.app.accept import prune, unused

    project = Project(options)
    check_place(options, project)
    lines = unused(project.records.read(options.source), project.baselines)
    paths = () if options.dry_run else prune(lines, project.baselines)
    files = [project.shown(Path(path)) for path in paths]
    if options.json:
        write_json({"unused": [{"case": str(line.key), "device": line.device} for line in lines], "files": files})
        return 0
    verb = "unused" if options.dry_run else "removed"
    for line in lines:
        write(f"{verb}  {line.device}  {line.key}")
    write(f"{len(lines)} {verb}" if lines else "nothing to remove: every baseline has a test and a limit that needs it")
    return 0


MERGE_DRIVER_ABOUT = """Merge baseline files for git, line by line: it takes each line that one side changed.

  perfgate doctor    prints the two commands that set it up, where they are missing

A case that both sides accepted differently stays a conflict of that line alone. Where one side cannot be read, the file
keeps both sides between markers, as in any conflict of git.
"""


def merge_driver_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("base", metavar="BASE", help="the common ancestor (%%O)")
    parser.add_argument("ours", metavar="OURS", help="our file, which gets the result (%%A)")
    parser.add_argument("theirs", metavar="THEIRS", help="their file (%%B)")
    parser.add_argument("path", nargs="?", default="", metavar="PATH", help="its path, for messages (%%P)")


def run_merge_driver(options: Namespace) -> int:
    from pytest_perfgate.wiring.stores import merge_baselines

    conflicts = merge_baselines(Path(options.base), Path(options.ours), Path(options.theirs), options.path)
    if options.json:
        by_case = dict(conflicts)
        write_json({"conflicts": list(by_case), "what": by_case, "path": options.path})
    else:
        for name, what in conflicts:
            write(f"{options.path or options.ours}: {name}: {what}")
    return 1 if conflicts else 0
