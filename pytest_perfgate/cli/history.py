"""A case over time: its sittings, the commits they were measured at, what was accepted."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import Any

from pytest_perfgate.cli.looking import write, write_json
from pytest_perfgate.cli.numbers import whole
from pytest_perfgate.cli.output import plain, show, write_file
from pytest_perfgate.cli.project import Project, add_root
from pytest_perfgate.model.errors import PerfgateError

HISTORY_ABOUT = """A case over time: its sittings, the commits they were measured at, what was accepted."""


def history_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "case", nargs="?", default="", metavar="CASE", help="a node id or part of one (default: list all)"
    )
    parser.add_argument("--device", default="", metavar="KEY", help="only this device")
    parser.add_argument("--svg", default="", metavar="PATH", help="draw the case with its change points")
    parser.add_argument("--last", type=whole, default=20, metavar="N", help="so many sittings (default 20)")
    add_root(parser)


def run_history(options: Namespace) -> int:
    from pytest_perfgate.core.render.history import history_document

    project = Project(options)
    found = _selected(project.history.keys(options.device), options.case)
    one = bool(options.case) or (bool(options.svg) and len(found) == 1)
    cases = [
        (
            key,
            device,
            project.history.read(key, device, options.last if one else 1),
            _accepted(project, key, device),
        )
        for device, key in found
    ]
    if options.svg:
        write_file(options.svg, _drawn(cases))
    if options.json:
        write_json([{"case": str(k), "device": d, "sittings": plain(s), "accepted": plain(b)} for k, d, s, b in cases])
    else:
        show(history_document(cases, overview=not one, anchors=_anchors(project, cases)), options)
        if options.svg:
            write(f"wrote {options.svg}")
    return 0


def _drawn(cases: Any) -> str:
    """The one case that was found, as a picture."""
    from pytest_perfgate.core.render.svg import alone
    from pytest_perfgate.core.render.timeline import timeline
    from pytest_perfgate.core.stats.change_points import change_points

    if len(cases) != 1:
        raise PerfgateError("command-usage", f"--svg draws one case, and {len(cases)} were found", mend="name one case")
    key, _, sittings, baseline = cases[0]
    changes = change_points([s.time for s in sittings])
    return alone(timeline(str(key), sittings, changes, baseline.time if baseline else None).svg)


def _selected(keys: Any, name: str) -> list[Any]:
    from pytest_perfgate.core.gate.nearest import proposal
    from pytest_perfgate.core.gate.selection import named

    if not keys:
        mend = "full runs are remembered: pytest --perfgate=full"
        raise PerfgateError("history-empty", "no sitting was ever recorded here", mend=mend)
    exact = [(device, key) for device, key in keys if named([name])(key)] if name else list(keys)
    found = exact or [(device, key) for device, key in keys if name.lower() in str(key).lower()]
    if not found:
        mend = proposal(name, [str(key) for _, key in keys], all_of="the history has")
        raise PerfgateError("history-empty", f"the history has no case '{name}'", mend=mend)
    return found


def _anchors(project: Project, cases: Any) -> dict[tuple[str, str], Any]:
    """The lines of the revision that ``[tool.perfgate] anchor`` names, such as the last release."""
    revision = project.config.anchor
    if not revision:
        return {}
    found = {(d, str(k)): project.baselines.read(d, k.path, revision).get(str(k)) for k, d, _, _ in cases}
    return {at: line for at, line in found.items() if line is not None}


def _accepted(project: Project, key: Any, device: str) -> Any:
    return project.baselines.read(device, key.path).get(str(key))
