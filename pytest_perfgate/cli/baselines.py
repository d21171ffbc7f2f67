"""Import, prune, merge-driver."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from pytest_perfgate.cli.dispatch import Project, add_root
from pytest_perfgate.cli.output import named_files, write, write_json

IMPORT_ABOUT = """Begin baselines from another tool's results: pytest-benchmark, asv, NVBench or Google Benchmark JSON.

  perfgate import .benchmarks/Linux-CPython-3.11-64bit/0001_main.json

A line that stands already is not touched. Imported times were measured differently: they screen until accepted anew.
"""


def import_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", metavar="FILE")
    parser.add_argument(
        "--device", default="", metavar="KEY", help="the device they were measured on (default: this host)"
    )
    parser.add_argument("--dry-run", action="store_true", help="show what would be written")
    parser.add_argument("--in-ci", action="store_true", help="write although CI is set")
    add_root(parser)


def run_import(options: Namespace) -> int:
    import datetime as dt

    from pytest_perfgate.app.accept import imported
    from pytest_perfgate.cli.accept import check_place
    from pytest_perfgate.wiring import stores

    project = Project(options)
    check_place(options, project)
    device = options.device or stores.host_device_key()
    who, when = project.repository.author(), dt.datetime.now(dt.timezone.utc).date().isoformat()
    lines = []
    for path in named_files(options.files):
        outcome = imported(stores.read_benchmarks(path), device, project.baselines, who=who, when=when)
        paths = () if options.dry_run else project.baselines.write(outcome.lines)
        lines.append({
            "file": str(path), "device": device, "imported": [str(line.key) for line in outcome.lines],
            "kept": list(outcome.kept),
            "without a time": list(outcome.left), "wrote": [project.shown(Path(p)) for p in paths],
        })  # fmt: skip
    if options.json:
        write_json(lines)
        return 0
    for one in lines:
        counts = ", ".join(f"{len(one[name])} {name}" for name in ("imported", "kept", "without a time"))
        write("\n".join([f"{one['file']}: {counts}, for {device}", *(f"wrote {path}" for path in one["wrote"])]))
    return 0


PRUNE_ABOUT = """Remove baselines whose tests are gone; only after a full run, nothing left out, that passed."""


def prune_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--dry-run", action="store_true", help="show what would be removed")
    parser.add_argument("--in-ci", action="store_true", help="write although CI is set")
    add_root(parser)


def run_prune(options: Namespace) -> int:
    from pytest_perfgate.app.accept import prune, unused
    from pytest_perfgate.cli.accept import check_place

    project = Project(options)
    check_place(options, project)
    lines = unused(project.records.read(), project.baselines)
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


MERGE_DRIVER_ABOUT = """Merge baseline files for git, line by line: cases that one side changed are taken, others stay.

  perfgate doctor    tells the two commands that set it up, where they are missing

A case that both sides accepted differently stays a conflict, of that line alone. A side that does not read is
left as git leaves a conflict: both sides between markers.
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
