"""The command doctor."""

from __future__ import annotations

import os
import platform
import sys
import textwrap
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Iterator, Sequence
from importlib import metadata
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from pytest_perfgate.app.doctor import Check, Level, Remark
from pytest_perfgate.cli.dispatch import Project, add_root
from pytest_perfgate.cli.output import columns, from_zero, plain, room, write, write_json
from pytest_perfgate.core.render.words import plural
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.project import Config

if TYPE_CHECKING:
    from pytest_perfgate.app.diagnosis import DoctorTools
    from pytest_perfgate.model.project import Merging


DOCTOR_ABOUT = """Show what works here, what does not, why, and how to fix it: first the project, then each device.

It changes nothing. The last line times one call against itself for a few seconds.
--verbose and --json show all findings.
"""

_BELOW = " " * 17


def doctor_arguments(parser: ArgumentParser) -> None:
    add_root(parser)
    parser.add_argument("-v", "--verbose", action="store_true", help="show all findings, each part in a table")
    parser.add_argument("--seconds", type=from_zero, default=5.0, help="seconds to time a call against itself; 0: none")


def run_doctor(options: Namespace) -> int:
    from pytest_perfgate.app.diagnosis import diagnosis
    from pytest_perfgate.app.doctor import brief, examined, groups, screen
    from pytest_perfgate.core.render.text import render_text

    project = Project(options)
    findings = examined(CHECKS, project)
    if not options.json:  # before a driver is used, which may crash this process
        for finding in findings if options.verbose else brief(findings):
            write("\n".join(finding_lines(finding, verbose=options.verbose, width=columns())))
        sys.stdout.flush()
    try:
        doctor_tools, same = _machine(project, options.seconds)
    except ImportError as fault:
        fix = "pip install --force-reinstall pytest-perfgate"
        return _unexamined(options, findings, f"it cannot be looked at: {fault}", fix)
    except PerfgateError as fault:  # the settings may have data sheets of devices
        return _unexamined(options, findings, f"it cannot be checked: {fault.what}", fault.fix)
    if options.json:
        parts = {"instruments": (*doctor_tools.libraries, *doctor_tools.others), "devices": groups(doctor_tools)}
        rows = {name: [plain(one) for one in page] for name, page in parts.items()}
        write_json({"findings": plain(findings), **rows, "machine": plain(diagnosis(doctor_tools, same))})
    else:
        page = (
            render_text(diagnosis(doctor_tools, same), columns(), room())
            if options.verbose
            else screen(doctor_tools, same, columns())
        )
        write(f"\n{page}")
    return 1 if any(finding.level is Level.BAD for finding in findings) else 0


def _unexamined(options: Namespace, findings: Sequence[Remark], what: str, fix: str) -> int:
    """Report what is known if the settings are unreadable, or a required package is missing."""
    machine = Remark(name="machine", level=Level.BAD, what=what, fix=fix)
    if options.json:
        write_json({"findings": plain((*findings, machine))})
    else:
        write("\n".join(finding_lines(machine, verbose=options.verbose, width=columns())))
    return 1


def finding_lines(finding: Remark, *, verbose: bool, width: int = 100) -> list[str]:
    """Return lines of at most so many columns; a fix stays whole, to be copied, and good findings take one line."""
    line = f"{finding.level.value:<4}  {finding.name:<9}  {finding.what}"
    if verbose:
        return [*_folded(line, width), *([f"{_BELOW}next: {finding.fix}"] if finding.fix else [])]
    if finding.fix and len(f"{line}; next: {finding.fix}") <= width:
        return [f"{line}; next: {finding.fix}"]
    if finding.fix:
        return [*_folded(line, width), f"{_BELOW}next: {finding.fix}"]
    return _folded(line, width) if len(line) <= width or finding.level.value != "ok" else [f"{line[: width - 2]} …"]


def _folded(line: str, width: int) -> list[str]:
    return textwrap.wrap(line, width, subsequent_indent=_BELOW, break_long_words=False, break_on_hyphens=False)


def _machine(project: Project, seconds: float) -> tuple[DoctorTools, tuple[float, float] | None]:
    """Return what was examined on the machine, and a call measured against itself."""
    import numpy  # noqa: F401, ICN001 - if it is missing, drivers that need it report it themselves

    from pytest_perfgate.app.diagnosis import same_against_same
    from pytest_perfgate.wiring import devices
    from pytest_perfgate.wiring.profiling import doctor_tools

    same = None
    if seconds > 0:
        same = same_against_same(devices.reference_call(), devices.host_runtime(), devices.host_timer(), seconds)
    return doctor_tools(project.root, project.config), same


_OLD = 3600.0

DRIVER = (
    'perfgate merge-driver %O %A %B %P || { grep -q "^<<<<<<< " %A && exit 1; '
    "git merge-file -L ours -L base -L theirs %A %O %B; }"
)
"""If perfgate cannot start, it would leave our file without markers, so git's own merge follows."""

MERGE_DRIVER = f"git config merge.perfgate.driver '{DRIVER}'"
IGNORING = "echo .perfgate/ >> .gitignore"


def python(project: Project) -> Iterator[Remark]:
    del project
    text = f"{platform.python_implementation()} {platform.python_version()}{sys.abiflags} in {sys.prefix}"
    yield Remark(name="python", level=Level.GOOD, what=text)


def plugin(project: Project) -> Iterator[Remark]:
    """Yield whether pytest will load perfgate, or what prevents that."""
    from importlib import import_module

    home = Path(__file__).resolve().parents[2]
    for place in (project.root / "pytest_perfgate" / "__init__.py", project.root / "pytest_perfgate.py"):
        if place.is_file() and not place.resolve().is_relative_to(home):
            what = f"{place.relative_to(project.root)} of the project hides the plugin: pytest would load it instead"
            yield Remark(name="plugin", level=Level.BAD, what=what, fix="give it another name")
            return
    names = [e.value for e in metadata.entry_points(group="pytest11") if e.value.startswith("pytest_perfgate")]
    version = import_module("pytest").__version__
    what = f"pytest {version} loads {', '.join(names)}" if names else "pytest does not load the plugin"
    fix = "" if names else "pip install pytest-perfgate, or -p pytest_perfgate.plugin"
    yield Remark(name="plugin", level=Level.GOOD if names else Level.BAD, what=what, fix=fix)


def package(project: Project) -> Iterator[Remark]:
    """Yield packages of this checkout that an import takes from another one, whose code a run would measure."""
    from importlib.util import find_spec

    from pytest_perfgate.wiring import imported_elsewhere

    def origin(name: str) -> str | None:
        try:
            spec = find_spec(name)
        except (ImportError, ValueError):
            return None
        place = spec.origin if spec and spec.has_location else ""
        return None if spec is None else place or ""

    for text in imported_elsewhere(project.root, project.config, origin):
        yield Remark(name="package", level=Level.NOTE, what=text, fix="install this checkout (pip install -e .)")


def git(project: Project) -> Iterator[Remark]:
    """Yield whose accepted lines judge here, and why if it is not an earlier revision's."""
    repository = project.repository
    base = repository.base()
    at = f"{repository.branch() or 'detached'} at {repository.head()[:7]}; " if repository.head() else ""
    if base.commit:
        what = f"{at}baselines of {base.commit[:7]}, {base.name}, judge"
        yield Remark(name="git", level=Level.GOOD, what=what)
    elif base.why:
        what = f"{at}the work tree's baselines judge: {base.why}"
        yield Remark(name="git", level=Level.NOTE, what=what, fix=base.fix)
    else:
        yield Remark(name="git", level=Level.GOOD, what=f"{at}{base.name}: the work tree's baselines judge")


def settings(project: Project) -> Iterator[Remark]:
    """Yield the settings; if they are unreadable, the other checks use the defaults."""
    from pytest_perfgate.wiring import configuration

    try:
        config = project.config
        configuration(project.root, whole=True)
    except PerfgateError:
        project.config = Config()
        raise
    what = f"[tool.perfgate] of {config.source}" if config.source else "no [tool.perfgate]: defaults throughout"
    yield Remark(name="settings", level=Level.GOOD, what=what)
    if not config.devices:
        what = "no device is listed: every baseline stays in this checkout"
        fix = '[tool.perfgate] devices = ["NVIDIA-H200*"]: the devices that count'
        yield Remark(name="settings", level=Level.NOTE, what=what, fix=fix)


def hooks(project: Project) -> Iterator[Remark]:
    from pytest_perfgate import wiring

    tools = wiring.command_line_tools(project.root, project.config)
    yield Remark(name="hooks", level=Level.GOOD, what=f"files read: {', '.join(i.name for i in tools.inspectors)}")
    for path in invisible(project.root, project.config.plugins):
        what = f"{path.as_posix()} has hooks that perfgate's commands do not see"
        fix = 'move them to a module and name it in [tool.perfgate] plugins = ["..."]'
        yield Remark(name="hooks", level=Level.NOTE, what=what, fix=fix)
    in_pytest = {point.value for point in metadata.entry_points(group="pytest11")}
    for point in metadata.entry_points(group="pytest_perfgate"):
        if point.value not in in_pytest:
            what, fix = f"pytest does not load {point.value}", "its package names it in the group pytest11 as well"
            yield Remark(name="hooks", level=Level.NOTE, what=what, fix=fix)


def build_faults(project: Project) -> Iterator[dict[str, str]]:
    """Yield what a build of this project does with files of perfgate, each with its fix."""
    from pytest_perfgate.wiring.stores import packaging_fix

    folder, pyproject = project.config.baselines, _text(project, "pyproject.toml")
    if (project.root / folder).is_dir() and (fix := packaging_fix(project.root, project.config)):
        what = f"setuptools takes {folder}/ for a package here, so 'pip install' fails or installs the wrong thing"
        yield {"what": what, "fix": fix}
    excluded = "include" in pyproject.partition("targets.sdist")[2] or ".perfgate" in _text(project, ".gitignore")
    if "hatchling.build" in pyproject and not excluded:
        yield {"what": "hatchling packs .perfgate/, which git ignores, into source distributions", "fix": IGNORING}


def _text(project: Project, name: str) -> str:
    path = project.root / name
    return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""


def baselines(project: Project) -> Iterator[Remark]:
    from pytest_perfgate.wiring import configuration

    devices = project.baselines.devices()
    for device in devices:
        lines = project.baselines.read_all(device)
        where, fix = _place_of(project, device, {line.key.path for line in lines.values()})
        level = Level.NOTE if fix else Level.GOOD
        yield Remark(name="baselines", level=level, what=f"{device}: {plural(len(lines), 'case')}, {where}", fix=fix)
    yield from (Remark(name="baselines", level=Level.NOTE, **fault) for fault in build_faults(project))
    if devices:
        return
    try:
        configuration(project.root, whole=True)
    except PerfgateError:
        what, fix = "not looked for: the settings that name their folder do not read", ""
    else:
        what, fix = "none yet", "pytest --perfgate=full, perfgate accept"
    yield Remark(name="baselines", level=Level.NOTE, what=what, fix=fix)


def _place_of(project: Project, device: str, tests: Iterable[str]) -> tuple[str, str]:
    """Return whether a device's lines are in the last commit, and what puts them there."""
    store, repository = project.baselines, project.repository
    if not store.committed(device):
        return "local", ""
    if trouble := repository.trouble():
        return f"not committed: {trouble[0]}", ""
    files = [store.path(device, test) for test in sorted(tests)]
    head = repository.head()
    texts = [repository.show(head, project.shown(file)) if head else None for file in files]
    now = [file.read_text(encoding="utf-8") for file in files]  # without the returns of Windows
    differing = sum((then or "").replace("\r\n", "\n") != here for then, here in zip(texts, now))
    if not differing:
        return "committed", ""
    of = f"{differing} of {plural(len(files), 'file')}" if len(files) > 1 else "the file"
    lost = f"{of} {'is' if differing == 1 else 'are'} not in the last commit as here"
    why = lost if head else "there is no commit yet"
    return f"not committed: {why}", f"git add {quote(project.config.baselines)} && git commit"


def commits(project: Project) -> Iterator[Remark]:
    """Yield whether suspects can be measured against the commits that their lines name."""
    from pytest_perfgate.model.measurement import DIRTY

    store, repository = project.baselines, project.repository
    lines = [line for device in store.devices() for line in store.read_all(device).values()]
    named = [line.commit for line in lines if line.commit and not line.commit.endswith(DIRTY)]
    missing = repository.missing(named)
    count = sum(commit in missing for commit in named)
    if count and repository.brought(min(missing), project.config.baselines):
        what = "not in this clone, as after a squash or a rebase: the commit that brought them is used instead"
        yield Remark(name="commits", level=Level.NOTE, what=f"{plural(count, 'line')} of a commit that is {what}")
    elif count:
        what = "not in this clone: their suspects cannot be compared with it"
        fix = "git fetch --unshallow, or accept again from a commit that is here"
        yield Remark(
            name="commits", level=Level.NOTE, what=f"{plural(count, 'line')} of a commit that is {what}", fix=fix
        )


def merging(project: Project) -> Iterator[Remark]:
    """Yield whether parallel acceptances merge automatically: git must ask for the driver, and know it."""
    from pytest_perfgate.wiring import stores

    if not (project.root / project.config.baselines).is_dir():
        return
    git_says = stores.merging(project.root, project.config)
    if git_says is None:
        return
    files = f"{project.config.baselines.rstrip('/')}/**/*.yaml"
    line = (f'"{files}"' if " " in files else files) + " merge=perfgate"
    missing = [] if git_says.attribute else [f"echo {quote(line)} >> .gitattributes"]
    missing += [] if "merge-file" in git_says.driver else [MERGE_DRIVER]
    if not missing:
        yield Remark(name="merging", level=Level.GOOD, what="baselines merge by 'perfgate merge-driver'")
        return
    yield Remark(name="merging", level=Level.NOTE, what=_unmerged(git_says), fix="; ".join(missing))


def _unmerged(git_says: Merging) -> str:
    if not git_says.attribute:
        return "parallel acceptance may conflict"
    if not git_says.driver:
        return "parallel acceptance may conflict: .gitattributes names a driver that this clone's git config lacks"
    return "if the merge driver does not start, git keeps our side and drops the other without a marker"


def record(project: Project) -> Iterator[Remark]:
    from pytest_perfgate.core.render.report import summary_line

    try:
        project.records.last()
    except PerfgateError as fault:
        fix = "pytest --perfgate=full"
        if project.records.pointer.closed():
            fix = "wait while a run goes on; otherwise run it again, or name an earlier record: ls .perfgate/records"
        yield Remark(name="record", level=Level.NOTE, what=fault.what, fix=fix)
        return
    report = project.records.read()
    yield Remark(name="record", level=Level.GOOD, what=f"{report.started}, {report.mode}: {summary_line(report)}")


def history(project: Project) -> Iterator[Remark]:
    keys = project.history.keys()
    devices = plural(len({device for device, _ in keys}), "device")
    yield Remark(name="history", level=Level.GOOD, what=f"{plural(len(keys), 'case')} on {devices}")


def leftovers(project: Project) -> Iterator[Remark]:
    """Yield what a crash may have left behind."""
    roots = (project.root / ".perfgate", project.root / project.config.baselines)
    files = [p for root in roots for p in root.rglob(".*.new") if time.time() - p.stat().st_mtime > _OLD]
    for path in files:
        what = f"{project.shown(path)} is an incomplete file that a crash left"
        yield Remark(name="leftovers", level=Level.NOTE, what=what, fix=f"rm {quote(project.shown(path))}")
    by_itself = not roots[0].is_dir() or (roots[0] / ".gitignore").is_file()  # a run creates the folder with one
    if project.repository.present() and not by_itself and ".perfgate" not in _text(project, ".gitignore"):
        yield Remark(name="leftovers", level=Level.NOTE, what="git does not ignore .perfgate/", fix=IGNORING)


def builds(project: Project) -> Iterator[Remark]:
    """Yield what a killed run of two builds left behind."""
    from pytest_perfgate.wiring import stores

    for leftover in stores.leftovers(project.root, project.config) if project.repository.present() else ():
        name = project.shown(Path(leftover.path)) if "/" in leftover.path else f"process {leftover.path}"
        yield Remark(name="builds", level=Level.NOTE, what=f"{name} is {leftover.what}", fix=leftover.fix)


CHECKS: list[tuple[str, Check]] = [
    ("python", python),
    ("plugin", plugin),
    ("settings", settings),
    ("package", package),
    ("git", git),
    ("hooks", hooks),
    ("baselines", baselines),
    ("commits", commits),
    ("merging", merging),
    ("record", record),
    ("history", history),
    ("leftovers", leftovers),
    ("builds", builds),
]

_HOOK, _FOLDERS = b"def pytest_perfgate_", 2000
_SKIPPED = {"node_modules", "site-packages", "build", "dist", "__pycache__"}


def invisible(root: Path, plugins: Sequence[str]) -> tuple[Path, ...]:
    """Return conftests below a folder that define our hooks, and that the command line does not load as plugins."""
    named = {name.replace(".", "/") + ".py" for name in plugins}
    paths = (path.relative_to(root) for path in _conftests(root))
    return tuple(p for p in paths if p.as_posix() not in named and _HOOK in (root / p).read_bytes())


def _conftests(root: Path) -> Iterator[Path]:
    for number, (folder, names, files) in enumerate(os.walk(root)):
        if number > _FOLDERS:
            return
        names[:] = [n for n in names if not n.startswith(".") and n not in _SKIPPED]
        names[:] = [n for n in names if not (Path(folder) / n / "pyvenv.cfg").exists()]
        if "conftest.py" in files:
            yield Path(folder) / "conftest.py"
