"""Begin baselines from another tool's results: pytest-benchmark, asv, NVBench or Google Benchmark JSON."""

# ruff: noqa: N999
from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from pytest_perfgate.cli.looking import named_files, write, write_json
from pytest_perfgate.cli.project import Project, add_root

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

    from pytest_perfgate.app.imports import imported
    from pytest_perfgate.cli.accept import check_place
    from pytest_perfgate.wiring import stores

    project = Project(options)
    check_place(options, project)
    device = options.device or stores.host_device_key()
    who, when = project.repository.author(), dt.datetime.now(dt.timezone.utc).date().isoformat()
    said = []
    for path in named_files(options.files):
        found = imported(stores.read_benchmarks(path), device, project.baselines, who=who, when=when)
        paths = () if options.dry_run else project.baselines.write(found.lines)
        said.append({
            "file": str(path), "device": device, "imported": [str(line.key) for line in found.lines],
            "kept": list(found.kept),
            "without a time": list(found.left), "wrote": [project.shown(Path(p)) for p in paths],
        })  # fmt: skip
    if options.json:
        write_json(said)
        return 0
    for one in said:
        counts = ", ".join(f"{len(one[name])} {name}" for name in ("imported", "kept", "without a time"))
        write("\n".join([f"{one['file']}: {counts}, for {device}", *(f"wrote {path}" for path in one["wrote"])]))
    return 0
