"""Commands on files without tests: check, compare, import, inspect, profile, scrub."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_perfgate.app.inspections import (
    analysed,
    check,
    compare,
    every_view,
    exit_of,
    inspect,
    parse_limits,
    view,
    views_of,
    with_pictures_first,
)
from pytest_perfgate.cli import output
from pytest_perfgate.cli.dispatch import Project, add_root
from pytest_perfgate.cli.output import placed, plain, say, say_written, write_file
from pytest_perfgate.core.render.text import render_text
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.plan import ClockPolicy, Compare, Plan, parse_case_key
from pytest_perfgate.wiring.built_ins import BENCHMARK_TOOLS

if TYPE_CHECKING:
    from pytest_perfgate.app.inspections import JudgingLook
    from pytest_perfgate.model.metric import Analysis, Document
    from pytest_perfgate.model.profiles import Scrubbed
    from pytest_perfgate.model.verdict import Verdict

CHECK_ABOUT = """Check limits on files, without running anything.

  perfgate check trace.json.gz "overlap >= 80%" "exposed_comm <= 400us"
  perfgate check kernel.cubin "spills == 0" "registers <= 128"

  perfgate check trace.json.gz "change(overlap(stage=stage2)) >= -2pp" --baseline

An argument with an operator is a limit, any other is a file. Exit codes: 0 kept, 1 broken, 4 not measured or invalid.
An error, such as a damaged file, has a code of its own (perfgate explain CODE).
With --baseline the file is a case of this project: limits on a change compare with its accepted line, and `perfgate
accept` accepts its figures.
A figure that was not measured fails here as in CI; --policy unmeasured=warn turns that into a warning.
"""


def check_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("words", nargs="+", metavar="FILE|LIMIT", help="files to read, and limits on their figures")
    output.add_limit_options(parser)
    parser.add_argument("--baseline", action="store_true", help="compare with this project's accepted figures")
    parser.add_argument(
        "--case", default="", metavar="NAME", help="the file's name in the baseline (default: its path)"
    )
    add_root(parser)
    output.add_options(parser)


def run_check(options: argparse.Namespace) -> int:
    from pytest_perfgate.app.inspections.results import refuse_changes_without_base

    files, texts = output.split_limits(options.words)
    look = output.judging_look(options)
    if options.baseline:
        return _check_baseline(options, output.named_files(files), texts, look)
    refuse_changes_without_base(parse_limits(texts, look.kinds))
    analysis, judged = check(output.named_files(files), texts, look)
    output.write_files(options, analysis, judged)
    output.deliver(options, analysis, judged)
    return exit_of(judged)


def _check_baseline(options: argparse.Namespace, files: list[Path], texts: list[str], look: JudgingLook) -> int:
    """Check a file as a case of the project, against its line, and write a record to accept from."""
    import datetime as dt

    from pytest_perfgate.app.inspections.results import FileGate, case_name, changes_of, gate_file, in_order, keep_file
    from pytest_perfgate.core.judge.against_limit import judge_artifact
    from pytest_perfgate.wiring import gate_tools

    project, limits = Project(options), parse_limits(texts, look.kinds)
    name = case_name(files, project.root, options.case)
    analysis = analysed(files, texts, look)
    changes = changes_of(limits, analysis.metrics)
    if not changes:
        fix = "perfgate check FILE 'change(registers) <= 0' --baseline"
        raise PerfgateError("limit-missing", "--baseline needs a limit on a change", fix=fix)
    started = dt.datetime.now(dt.timezone.utc).isoformat(timespec="milliseconds")
    tools = gate_tools(project.root, project.config, look.kinds)
    gate = FileGate(tools=tools, policy=replace(look.policy, ci=project.ci), root=project.root, started=started)
    report = gate_file(analysis, name, changes, gate)
    record = keep_file(report, gate)
    texts_of_changes = {change.text for change in changes}
    plain = judge_artifact(analysis, [limit for limit in limits if limit.text not in texts_of_changes], look.policy)
    judged = in_order(limits, plain, report.cases[0])
    output.write_files(options, analysis, judged)
    output.deliver(options, analysis, judged)
    if record is not None:
        say(f"wrote {project.shown(record)}", options)
    return exit_of(judged)


COMPARE_ABOUT = """Compare two files of one kind, or two records. The first is the reference. Limits are optional.

  perfgate compare before.sqlite after.sqlite "slowdown(kernel=*nccl*) <= 5%"
  perfgate compare before.cubin after.cubin "change(registers) <= 0"

For jobs of several files: perfgate compare before0 before1 -- after0 after1
"""


def compare_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("words", nargs="+", metavar="FILE|LIMIT", help="the reference, the other file, and limits")
    parser.add_argument("--view", default="", help="one view of the comparison; 'list' names them")
    output.add_picture_option(parser)
    output.add_limit_options(parser)
    parser.add_argument("--reports", metavar="FOLDER", help="write the reports of this comparison and all its tables")
    output.add_options(parser)


def run_compare(options: argparse.Namespace) -> int:
    words, limits = output.split_limits(options.words)
    before, after = output.split_sides(words, limits)
    look = output.judging_look(options)
    analysis, judged = _compared(output.named_files(before), output.named_files(after), limits, look)
    if options.view == "list":
        return _list_views(options, analysis)
    output.write_files(options, analysis, judged)
    drawn = output.write_pictures(options, analysis)
    if options.reports:
        from pytest_perfgate.wiring.profiling import write_reports

        say("\n".join(map(str, write_reports(Path(options.reports), analysis))), options)
    elif not (options.json or options.markdown or options.html or drawn):
        output.write(render_text(view(analysis, options.view), output.columns(), output.room()))
    if judged or options.json:
        output.deliver(options, analysis, judged)
    return exit_of(judged)


def _compared(
    before: list[Path], after: list[Path], texts: list[str], look: JudgingLook
) -> tuple[Analysis, tuple[Verdict, ...]]:
    """Compare two sides; return verdicts on limits of the comparison and of the change of any figure."""
    from pytest_perfgate.app.inspections.results import compared_files, in_order

    limits = parse_limits(texts, look.kinds) if texts else ()
    changes = [limit for limit in limits if limit.compare is not Compare.FIGURE]
    plain = [limit.text for limit in limits if limit.compare is Compare.FIGURE]
    analysis, judged = compare(before, after, plain, look)
    if not changes:
        return analysis, judged
    sides = [analysed(paths, texts, look) for paths in (before, after)]
    judged = (*judged, *compared_files(sides[0], sides[1], changes, look.policy, look.kinds))
    return analysis, in_order(limits, judged, None)


INSPECT_ABOUT = """Show what is in a file: a trace, an Nsight Systems export, an Nsight Compute report, a cubin.

perfgate knows the kind of a file by its content, not by its name.

Several files are the ranks or processes of one job. This command judges nothing; `perfgate check` does.
"""


def inspect_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", metavar="FILE", help="the file, or the files of one job")
    parser.add_argument("--view", default="", help="one view of the file; 'list' names them, 'all' shows all")
    parser.add_argument("--html", metavar="FILE", help="write pictures and views as one HTML page")
    output.add_picture_option(parser)
    parser.add_argument("--markdown", metavar="FILE", help="write the views as Markdown; - for standard output")
    parser.add_argument("--csv", metavar="FOLDER", help="write every table as CSV, all rows")
    parser.add_argument("--code", metavar="FOLDER", help="write annotated source, machine code and PTX of a report")
    parser.add_argument("--xlsx", metavar="FILE", help="write every table into one workbook (the xlsx extra)")
    parser.add_argument("--reports", metavar="FOLDER", help="write the reports of this kind of file and all its tables")
    output.add_options(parser)


def run_inspect(options: argparse.Namespace) -> int:
    look = output.inspect_context(options)
    files = output.named_files(options.files)
    analysis = inspect(files, look.options, inspectors=look.inspectors, peek=look.peek)
    if options.view == "list":
        return _list_views(options, analysis)
    chosen = options.view or next(iter(analysis.views))
    documents = every_view(analysis) if chosen == "all" else {chosen: view(analysis, chosen)}
    written = _write_files(options, documents, analysis) | _write_more(options, documents, analysis)
    if options.json:
        output.write_json(output.analysis_json(analysis, documents))
    elif not written:
        if not options.view:
            documents[chosen] = output.glance(documents[chosen], analysis)
        texts = [render_text(document, output.columns(), output.room()) for document in documents.values()]
        output.write("\n".join(texts))
    return 0


def _list_views(options: argparse.Namespace, analysis: Analysis) -> int:
    from pytest_perfgate.core.trace_kinds import view_lines

    names = list(views_of(analysis))
    output.write_json(names) if options.json else output.write("\n".join(view_lines(names)))
    return 0


def _write_files(options: argparse.Namespace, documents: dict[str, Document], analysis: Analysis) -> bool:
    from pytest_perfgate.wiring import write_pages, write_tables

    if not options.view and (options.markdown or options.html):
        from pytest_perfgate.core.render.report import with_findings_first

        name, *_ = documents
        documents = {**documents, name: with_findings_first(documents[name])}
    if options.markdown:
        from pytest_perfgate.core.render.html import render_markdown

    if options.markdown == "-":
        output.write("\n".join(render_markdown(document) for document in documents.values()))
    elif options.markdown:
        write_file(options.markdown, "\n".join(map(render_markdown, documents.values())))
    if options.html:
        first, *others = documents.values()
        first = first if options.view == "pictures" else with_pictures_first(first, analysis)
        write_pages(placed(options.html), [first, *others])
    say_written(options)
    if options.csv:
        for path in write_tables(Path(options.csv), documents):
            say(str(path), options)
    return bool(options.markdown or options.html or options.csv)


def _write_more(options: argparse.Namespace, documents: dict[str, Document], analysis: Analysis) -> bool:
    if options.xlsx:
        from pytest_perfgate.wiring.profiling import write_workbook

        say(str(write_workbook(placed(options.xlsx), documents)), options)
    if options.reports:
        from pytest_perfgate.wiring.profiling import write_reports

        say("\n".join(map(str, write_reports(Path(options.reports), analysis))), options)
    if options.code:
        for path in _write_texts(Path(options.code), analysis.files):
            say(str(path), options)
    return output.write_pictures(options, analysis) | bool(options.xlsx or options.reports or options.code)


def _write_texts(folder: Path, texts: Mapping[str, Callable[[], str]]) -> Iterator[Path]:
    """Write the files that belong to a report; raise if it has none."""
    if not texts:
        raise PerfgateError("view-unknown", "the file has no code to write", fix="perfgate profile NODEID --mode ncu")
    for name, build in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(build(), encoding="utf-8")
        yield path


PROFILE_ABOUT = """Profile one test, and keep the profile and its reports under .perfgate/profiles.

  perfgate profile 'tests/test_gemm.py::test_gemm[4096]'
  perfgate profile 'tests/test_gemm.py::test_gemm[4096]#backward' --mode ncu --mode nsys

The test runs in a child process, twice: once to compile and tune, once under the profiler. #NAME profiles only the call
of that name. Modes: annotation (the default: the counters that classify a kernel), ncu (also source and machine code),
nsys (timeline, overlap, launch order), torch (operators), cupti (kernel records without a tool), event (time by the
device's own events), cubin (machine code that the test attaches), and those that plugins add.
"""


def profile_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("nodeid", metavar="NODEID[#CALL]")
    parser.add_argument("--mode", action="append", default=[], metavar="MODE", help="may be given several times")
    parser.add_argument(
        "--clocks",
        choices=[policy.value for policy in ClockPolicy],
        default="observe",
        help="of the device (default: observe)",
    )
    parser.add_argument(
        "--out", default="", metavar="FOLDER", help="folder for the profile (default: .perfgate/profiles)"
    )
    parser.add_argument("--kernel", default="", metavar="NAME", help="only kernels whose name contains this (ncu)")
    parser.add_argument(
        "--launches", type=output.from_one, default=0, metavar="N", help="at most this many launches (ncu)"
    )


def run_profile(options: argparse.Namespace) -> int:
    from pytest_perfgate.app.profile import AGAIN, metrics_data, profile
    from pytest_perfgate.wiring.profiling import profile_tools

    tools = profile_tools(Path.cwd(), out=Path(options.out).resolve() if options.out else None)
    tools = replace(tools, only=(options.kernel, options.launches))
    plan = Plan(clocks=ClockPolicy(options.clocks))
    key = parse_case_key(options.nodeid)
    results = [profile(key, mode, plan, tools) for mode in options.mode or ["annotation"]]
    if getattr(options, "json", False):
        folders = [{"folder": str(profiled.folder), **metrics_data(profiled.analysis)} for profiled in results]
        output.write_json(plain(folders))
        return 0
    for profiled in results:
        output.write(render_text(next(iter(profiled.analysis.views.values()))(), output.columns(), output.room()))
        for problem in profiled.analysis.problems:
            output.write(f"not to be trusted: {problem.what}  [{problem.code}]")
        if profiled.again:
            output.write(AGAIN)
        output.write(f"kept in {profiled.folder}")
    return 0


SCRUB_ABOUT = """Remove the environment from an Nsight Systems export before you share it.

nsys stores the variables of every process it sees, tokens included, and what the program printed. The clean copy is
written beside the export unless --in-place asks for the export itself. A .nsys-rep cannot be cleaned: export it first.
"""


def scrub_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE")
    parser.add_argument("--output", metavar="FILE", help="path of the clean copy; default FILE.clean.sqlite")
    parser.add_argument("--in-place", action="store_true", help="replace the export itself, in one step")
    parser.add_argument("--force", action="store_true", help="overwrite the file of --output")


def run_scrub(options: argparse.Namespace) -> int:
    from pytest_perfgate.app.inspections.nsys import scrub
    from pytest_perfgate.wiring.profiling import scrubber

    (path,) = output.named_files([options.file])
    out = Path(options.output) if options.output else None
    scrubbed = scrub(path, out, scrubber(), in_place=options.in_place, force=options.force)
    if options.json:
        output.write_json(plain(scrubbed))
    else:
        output.write(scrub_sentence(scrubbed))
    return 0


def scrub_sentence(scrubbed: Scrubbed) -> str:
    """Return the message on what was removed."""
    from pytest_perfgate.core.render.words import plural

    tables = f"without {', '.join(scrubbed.tables)}" if scrubbed.tables else "there was no table of the environment"
    texts = f"{', and' if scrubbed.tables else ';'} without {plural(scrubbed.strings, 'text')}"
    lines = f"{texts} that nothing in it points to" if scrubbed.strings else ""
    named = f"; names of people, machines and home folders are gone from {plural(scrubbed.named, 'text')}"
    return f"{scrubbed.out}: {tables}{lines}{named if scrubbed.named else ''}"


*_TOOLS, _LAST_TOOL = BENCHMARK_TOOLS.values()

IMPORT_ABOUT = f"""Start baselines from JSON of {", ".join(_TOOLS)} or {_LAST_TOOL}.

  perfgate import .benchmarks/Linux-CPython-3.11-64bit/0001_main.json

An existing line is not changed. Imported times were measured in another way: accept anew after the first full run.
"""


def import_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", metavar="FILE", help="JSON of another benchmark tool")
    parser.add_argument("--device", default="", metavar="KEY", help="the device of the times (default: this host)")
    parser.add_argument("--dry-run", action="store_true", help="show what would be written")
    parser.add_argument("--in-ci", action="store_true", help="write although CI is set")
    add_root(parser)


def run_import(options: argparse.Namespace) -> int:
    import datetime as dt

    from pytest_perfgate.app.inspections.results import imported
    from pytest_perfgate.cli.accept import check_place
    from pytest_perfgate.wiring import stores

    project = Project(options)
    check_place(options, project)
    device = options.device or stores.host_device_key()
    author, when = project.repository.author(), dt.datetime.now(dt.timezone.utc).date().isoformat()
    lines = []
    for path in output.named_files(options.files):
        outcome = imported(stores.read_benchmarks(path), device, project.baselines, author=author, when=when)
        paths = () if options.dry_run else project.baselines.write(outcome.lines)
        lines.append({
            "file": str(path), "device": device, "imported": [str(line.key) for line in outcome.lines],
            "kept": list(outcome.unchanged),
            "without a time": list(outcome.omitted), "wrote": [project.shown(Path(p)) for p in paths],
        })  # fmt: skip
    if options.json:
        output.write_json(lines)
        return 0
    for one in lines:
        counts = ", ".join(f"{len(one[name])} {name}" for name in ("imported", "kept", "without a time"))
        names = [f"would write {key}" for key in one["imported"] if options.dry_run]
        names += [f"wrote {path}" for path in one["wrote"]] + [f"no time: {name}" for name in one["without a time"]]
        output.write("\n".join([f"{one['file']}: {counts}, for {device}", *names]))
    return 0
