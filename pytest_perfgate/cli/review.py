"""Walk through what moved, one case after the other, and accept or skip each; nothing is written before the end."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pytest_perfgate.cli.accept import check_place, request_of, sittings_of, text_of
from pytest_perfgate.cli.looking import columns, write, write_json
from pytest_perfgate.cli.project import Project, add_root
from pytest_perfgate.model.errors import PerfgateError

REVIEW_ABOUT = (
    """Walk through what moved, one case after the other, and accept or skip each; nothing is written before the end."""
)

_KEYS = "a or y accept, s or n skip, q stop asking, ? this help"
_MEANS = {"a": "a", "y": "a", "s": "s", "n": "s", "q": "q"}


def review_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("names", nargs="*", metavar="NODEID", help="only these cases")
    parser.add_argument("-k", dest="expression", default="", metavar="EXPR", help="cases whose names match")
    parser.add_argument("--from", dest="source", default="", metavar="RECORD|URL", help="instead of the last record")
    add_root(parser)
    parser.set_defaults(
        reason="", each=True, new=False, improved=False, add=False, expires="", dry_run=False, in_ci=False
    )


def run_review(options: Namespace) -> int:
    from pytest_perfgate.app.accept import accept, decisions, refuse_pinned

    project = Project(options)
    check_place(options, project)
    report = project.records.read(options.source)
    request = request_of(options, project, report)
    every = decisions(report, request, project.baselines, sittings_of(project))
    refuse_pinned(every)
    found = [d for d in every if d.writes]
    if options.json:
        from pytest_perfgate.core.render.acceptance import acceptance_json

        write_json({"decisions": acceptance_json(found)})
        return 0
    if not found:
        write("nothing moved beyond its noise")
        return 0
    if not sys.stdin.isatty():
        raise PerfgateError("review-terminal", "review asks questions, and nobody can answer here")
    chosen = _walk(found, request.signature)
    paths = accept(chosen, project.baselines)
    write(f"{len(chosen)} accepted, {len(found) - len(chosen)} skipped")
    for path in paths:
        write(f"wrote {project.shown(Path(path))}")
    return 0


def _walk(found: Sequence[Any], signature: Any) -> list[Any]:
    from pytest_perfgate.core.render.acceptance import decision_lines
    from pytest_perfgate.core.render.block import render_block

    chosen: list[Any] = []
    for number, decision in enumerate(found, 1):
        write(f"\n[{number}/{len(found)}]  " + "\n".join(decision_lines(decision)))
        write(render_block(decision.report, columns()).rstrip("\n"))
        try:
            answer = _answer()
            if answer == "a":
                chosen.append(_reasoned(decision, signature))
        except EOFError:  # the end of input stops the walk, and is no reason of anything
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


def _reasoned(decision: Any, signature: Any) -> Any:
    """The decision with a reason, of whoever gives it; a slower time has none without."""
    from pytest_perfgate.app.accept import says_nothing_new

    needed = decision.asks
    while True:
        reason = " ".join(text_of(input("reason: " if needed else "reason (may be empty): ")).split())
        signed = {"why": reason, "who": signature.who, "when": signature.when} if reason else {}
        given = replace(decision, after=replace(decision.after, **signed))
        if needed and reason and says_nothing_new(given):
            write("this one stands there from an acceptance of today: say what is new")
        elif reason or not needed:
            return given
        else:
            write("this needs a reason")
