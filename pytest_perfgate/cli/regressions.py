"""Regressions, site: what all runs say together."""

from __future__ import annotations

import datetime as dt
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any

from pytest_perfgate.cli.dispatch import Project, add_root
from pytest_perfgate.cli.output import plain, say, show, whole, write, write_file, write_json
from pytest_perfgate.clock import HOST_CLOCK
from pytest_perfgate.model.errors import PerfgateError

REGRESSIONS_ABOUT = """What got slower and did not go away, by the commit that moved it; and cases that nobody measured.

  perfgate regressions --since 7d --markdown digest.md

A change of level shows from three runs after it. A level that somebody accepted is listed apart.
"""


def regressions_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--since", default="", metavar="DAY", help="2026-06-01, or 7d: the last seven days")
    parser.add_argument("--device", default="", metavar="KEY", help="only devices like this, such as 'NVIDIA-*'")
    parser.add_argument("--over", type=share, default=None, metavar="SHARE", help="smallest change (default 2%%)")
    parser.add_argument("--stale", type=whole, default=14, metavar="N", help="days without a sitting (default 14)")
    parser.add_argument("--markdown", default="", metavar="FILE", help="write it as Markdown; - for standard output")
    parser.add_argument("--fail", action="store_true", help="exit with 1 where something got slower and stayed so")
    add_root(parser)


def run_regressions(options: Namespace) -> int:
    from pytest_perfgate.core.analysis.regressions import OVER, findings, findings_document
    from pytest_perfgate.core.render.html import render_markdown

    today = dt.datetime.fromtimestamp(HOST_CLOCK.date(), dt.timezone.utc).date()
    since, before = day(options.since, today), day(f"{options.stale}d", today)
    lines = list(trends(Project(options), options.device or "*"))
    if not lines:
        raise PerfgateError("history-empty", f"the history has nothing of {options.device or 'any device'}")
    every = findings(lines, since=since, before=before, over=OVER if options.over is None else options.over)
    document = findings_document(every, since=since, stale_days=options.stale)
    if options.markdown == "-":
        write(render_markdown(document))
    elif options.markdown:
        write_file(options.markdown, render_markdown(document))
        say(f"wrote {options.markdown}", options)
    if options.json:
        write_json(plain(every))
    elif not options.markdown:
        show(document, options)
    return 1 if options.fail and every.slower else 0


def trends(project: Project, device: str = "*", last: int = 500, detailed: int = 0) -> Iterator[Any]:
    """The newest runs of every case and device, with what was accepted."""
    from pytest_perfgate.core.analysis.regressions import Trend

    lines: dict[str, tuple[Any, Any]] = {}
    revision = project.config.anchor
    for sittings in project.history.lines(last, detailed):
        name = sittings[-1].device if sittings else ""
        if not sittings or not fnmatchcase(name, device):
            continue
        if name not in lines:
            lines[name] = project.baselines.read_all(name), {}
        accepted, anchors = lines[name]
        key = sittings[-1].key
        if revision and key.path not in anchors:
            anchors[key.path] = project.baselines.read(name, key.path, revision)
        yield Trend(sittings, accepted.get(str(key)), anchors.get(key.path, {}).get(str(key)))


def day(text: str, today: dt.date) -> str:
    """A day as people write it, ISO: one of the calendar, or so many days ago."""
    try:
        if text.endswith("d"):
            return (today - dt.timedelta(days=int(text[:-1]))).isoformat()
        return dt.date.fromisoformat(text).isoformat() if text else ""
    except (ValueError, OverflowError) as fault:
        raise PerfgateError("command-usage", f"{text!r} is no day", mend="2026-06-01, or 7d") from fault


def share(text: str) -> float:
    """A share as people write it: 2% or 0.02."""
    try:
        number = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        number = -1.0
    if not 0 <= number < 1:
        raise ArgumentTypeError(f"{text!r} is not a share, such as 2%")
    return number
