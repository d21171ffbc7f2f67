"""The commands regressions and site, which summarise all runs."""

from __future__ import annotations

import datetime as dt
import gc
import json
import os
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from fnmatch import fnmatchcase
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_perfgate.cli.dispatch import Project, add_root
from pytest_perfgate.cli.history import add_records, nothing_of
from pytest_perfgate.cli.output import from_one, plain, say, show, write, write_file, write_json
from pytest_perfgate.clock import HOST_CLOCK
from pytest_perfgate.core.render.words import plural
from pytest_perfgate.model.errors import PerfgateError

if TYPE_CHECKING:
    from pytest_perfgate.core.analysis.regressions import Trend
    from pytest_perfgate.model.measurement import Baseline, HistoryEntry
    from pytest_perfgate.model.metric import Levels
    from pytest_perfgate.model.plan import CaseKey

REGRESSIONS_ABOUT = """List lasting slowdowns by the commit that caused them, and cases that were not measured lately.

  perfgate regressions --since 7d --markdown digest.md

A change of level shows once three runs follow it. Accepted levels have a list of their own. Runs of pull requests are
left out, as far as CI named them so.
"""


def regressions_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--since", default="", metavar="DAY", help="2026-06-01, or 7d: the last seven days")
    parser.add_argument("--device", default="", metavar="KEY", help="only devices that match, such as 'NVIDIA-*'")
    parser.add_argument("--over", type=parse_share, default=None, metavar="SHARE", help="smallest change (default 2%%)")
    parser.add_argument("--stale", type=from_one, default=14, metavar="N", help="days without a run (default 14)")
    parser.add_argument("--markdown", default="", metavar="FILE", help="write it as Markdown; - for standard output")
    parser.add_argument("--fail", action="store_true", help="exit with 1 if there is a lasting slowdown")
    add_root(parser)


def run_regressions(options: Namespace) -> int:
    from pytest_perfgate.core.analysis.regressions import OVER, findings, findings_document
    from pytest_perfgate.core.render.html import render_markdown

    since, before = day(options.since, today()), day(f"{options.stale}d", today())
    if since > (today() + dt.timedelta(days=1)).isoformat():  # days are those of UTC; in the east, tomorrow has begun
        raise PerfgateError("command-usage", f"--since {since} is in the future", fix="2026-06-01, or 7d")
    project, device = Project(options), options.device or "*"
    lines, figures = trends(project, device)
    if not lines:
        raise nothing_of(options.device, project)
    every = findings(lines, figures, since=since, before=before, over=OVER if options.over is None else options.over)
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


SITE_ABOUT = """Write the history of the project as pages: an overview, a page for each device and for each case.

  perfgate site public
  perfgate site public runs/          add these records first

They open from disk or from any file server. A second call writes only the pages that changed.
"""


def site_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("folder", metavar="DIR", help="folder for the pages")
    parser.add_argument(
        "records", nargs="*", default=[], metavar="RECORD", help="records, folders of them, addresses: added first"
    )
    parser.add_argument("--last", type=from_one, default=500, metavar="N", help="runs of a case to show (default 500)")
    parser.add_argument("--stale", type=from_one, default=14, metavar="N", help="days without a run (default 14)")
    parser.add_argument("--title", default="", metavar="TEXT", help="title of the overview (default: the folder)")
    parser.add_argument("--commits", default="", metavar="URL", help="the page of a commit, {} for its hash")
    add_root(parser)


def run_site(options: Namespace) -> int:
    """Write the site without garbage collection, which would take a fifth of the time and find nothing."""
    if options.commits and "{}" not in options.commits:
        fix = f"--commits '{options.commits.rstrip('/')}/{{}}': the hash of the commit replaces {{}}"
        raise PerfgateError("command-usage", "--commits has no {}, so each link would open the same page", fix=fix)
    project = Project(options)
    code = add_records(project, options) if options.records else 0
    collecting = gc.isenabled()
    gc.disable()
    try:
        _write_site(project, options)
    finally:
        if collecting:
            gc.enable()
    return code


def _write_site(project: Project, options: Namespace) -> None:
    from pytest_perfgate.core.analysis.regressions import findings
    from pytest_perfgate.core.render.site import Site, site_pages

    folder = Path(options.folder)
    lines, figures = trends(project, last=options.last, detailed=_DETAILED)
    if not lines:
        raise nothing_of("", project)
    tested = [line for line in (*lines, *figures) if not line.of.exact]
    _reuse_change_points(folder, tested)
    every = findings(lines, figures, before=day(f"{options.stale}d", today()))
    site = Site(name=options.title or project.root.name, commits=options.commits or commit_page(os.environ))
    renewed = [path for path, text in site_pages(site, lines, every, figures) if _write_if_changed(folder / path, text)]
    write_file(str(folder / _CHANGES), json.dumps({t.digest: [asdict(c) for c in t.changes] for t in tested}))
    if options.json:
        write_json({"folder": str(folder), "cases": len(lines), "written": renewed})
    else:
        write(f"{plural(len(renewed), 'page')} written, of {plural(len(lines), 'case')}: {folder / 'index.html'}")


_DETAILED = 60
"""The number of newest runs whose figures a page shows in full."""

_CHANGES = "changes.json"
"""The file of earlier change points by the digest of their series, since finding them takes the most time."""


def _reuse_change_points(folder: Path, lines: Iterable[Any]) -> None:
    """Reuse each series' earlier change points; unreadable ones are computed again."""
    from pytest_perfgate.core.stats.change_points import ChangePoint

    try:
        stored = json.loads((folder / _CHANGES).read_text(encoding="utf-8"))
        for line in lines:
            if line.digest in stored:
                line.changes = tuple(ChangePoint(**change) for change in stored[line.digest])
    except (OSError, ValueError, TypeError, AttributeError, RecursionError):
        return


def _write_if_changed(path: Path, text: str) -> bool:
    """Write the page if it is new or differs, and return whether it was."""
    try:
        if path.read_bytes() == text.encode("utf-8"):
            return False
    except OSError:
        pass
    write_file(str(path), text)
    return True


def commit_page(environment: Mapping[str, str]) -> str:
    """Return the address of a commit in CI; "" elsewhere."""
    server, name = environment.get("GITHUB_SERVER_URL", ""), environment.get("GITHUB_REPOSITORY", "")
    if server and name:
        return f"{server}/{name}/commit/{{}}"
    project = environment.get("CI_PROJECT_URL", "")
    return f"{project}/-/commit/{{}}" if project else ""


def today() -> dt.date:
    return dt.datetime.fromtimestamp(HOST_CLOCK.date(), dt.timezone.utc).date()


def trends(project: Project, device: str = "*", last: int = 500, detailed: int = 1) -> tuple[list[Trend], list[Trend]]:
    """Return the newest runs of every case and device with the accepted value, and those of every gated figure."""
    from pytest_perfgate.core.analysis.regressions import Trend
    from pytest_perfgate.core.judge.accepted_line import figure_levels, fixed_anchor

    revision = fixed_anchor(project.config.anchor_revision, project.repository.last_release())
    anchors: dict[tuple[str, str], Any] = {}
    of, lines, figures = _cases(project, device), list[Trend](), list[Trend]()
    names = {at: [(f.name, f.labels) for f in line.figures] if line else [] for at, line in of.items()}
    for entries, levels in map(_merged, project.history.levels(names, last, detailed)):
        if not entries:
            continue
        at = name, key = entries[-1].device, entries[-1].key
        if revision and (name, key.path) not in anchors:
            anchors[name, key.path] = project.baselines.read(name, key.path, revision)
        timed = [entry for entry in entries if entry.processes]
        accepted_line, anchor = (of[at], anchors.get((name, key.path), {}).get(str(key))) if timed else (None, None)
        lines.append(Trend(timed or entries, accepted_line, anchor))
        if (line := of[at]) is not None:
            for own, numbers, accepted, figure in figure_levels(entries, line, levels):
                figures.append(Trend(own, accepted, of=figure, levels=numbers))
    return sorted(lines, key=lambda trend: not trend.entries), figures


def _merged(case: tuple[Sequence[HistoryEntry], Levels]) -> tuple[Sequence[HistoryEntry], Levels]:
    """Leave out runs of pull requests, whose commits may never be merged; a case without another run keeps them."""
    entries, levels = case
    other = [not entry.branch for entry in entries]
    if all(other) or not any(other):
        return case
    return list(compress(entries, other)), {name: list(compress(numbers, other)) for name, numbers in levels.items()}


def _cases(project: Project, device: str) -> dict[tuple[str, CaseKey], Baseline | None]:
    """Return every measured case of matching devices, with its accepted line."""
    keys = [(name, key) for name, key in project.history.keys("") if fnmatchcase(name, device)]
    lines = {name: project.baselines.read_all(name) for name in dict.fromkeys(name for name, _ in keys)}
    return {(name, key): lines[name].get(str(key)) for name, key in keys}


def day(text: str, now: dt.date) -> str:
    """Return a day from an ISO date, or from so many days ago."""
    try:
        if text.endswith("d"):
            return (now - dt.timedelta(days=int(text[:-1]))).isoformat()
        return dt.date.fromisoformat(text).isoformat() if text else ""
    except (ValueError, OverflowError) as fault:
        raise PerfgateError("command-usage", f"{text!r} is not a day", fix="2026-06-01, or 7d") from fault


def parse_share(text: str) -> float:
    """Return a share from 2% or 0.02."""
    try:
        number = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        number = -1.0
    if not 0 <= number < 1:
        raise ArgumentTypeError(f"{text!r} is not a share, such as 2%")
    return number
