"""Run pytest, and exit by what the gate found rather than by pytest's own codes."""

from __future__ import annotations

import subprocess
import sys
import time
from argparse import ArgumentParser, Namespace
from typing import Any

from pytest_perfgate.cli.looking import write_json
from pytest_perfgate.cli.project import Project, add_root

RUN_ABOUT = """Run pytest, and exit by what the gate found rather than by pytest's own codes.

  perfgate run tests/bench -k gemm --perfgate-against origin/main

Everything but --json, --policy and --root goes to pytest. Without --perfgate= it is a full run.
"""

RUN_PASSES_ON = True
"""Words that this command does not know are pytest's."""
_STDERR = 2
_NOTHING = 4


_UNGATED = "nothing was measured: no gated test ran, and pytest left no record; look at what was collected and chosen"


def run_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--policy",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="what an outcome does, such as undecided=fail; as --perfgate-policy, repeatable",
    )
    add_root(parser)


def run_run(options: Namespace) -> int:
    project = Project(options)
    words = options.words[1:] if options.words[:1] == ["--"] else options.words
    words = [*_policies(options.policy), *words]
    asked = any(word.startswith("--perfgate=") or word == "--perfgate" for word in words)
    began = time.time()
    command = [sys.executable, "-m", "pytest", *([] if asked else ["--perfgate=full"]), *words]
    status = _status(command, apart=options.json)
    report = _record(project, began)
    code = _code(status, report)
    if project.ci and report is None and status == 0 and not _lists(words):
        code = _NOTHING
        sys.stderr.write(f"perfgate: {_UNGATED}\n")
    if options.json:
        from pytest_perfgate.cli.output import plain

        write_json({"exit": code, "pytest": status, "record": plain(report) if report else None})
    return code


def _lists(words: list[str]) -> bool:
    """Whether the command asks pytest to list something: then no test was to run."""
    from pytest_perfgate.plugin.listing import LISTING

    spelled = tuple(word for words_of in LISTING.values() for word in words_of)
    return any(word.startswith(spelled) for word in words)


def _policies(pairs: list[str]) -> list[str]:
    """Policies as pytest knows them; one that does not exist is refused before anything runs."""
    from pytest_perfgate.core.gate.policy import parse_policy

    parse_policy(pairs, ci=False, place="--policy")
    return [f"--perfgate-policy={pair}" for pair in pairs]


def _status(command: list[str], *, apart: bool) -> int:
    """How pytest ended; where a program reads the answer, its terminal is what standard error shows."""
    try:
        return subprocess.run(command, check=False, stdout=_STDERR if apart else None).returncode
    except KeyboardInterrupt:
        return 2


def _record(project: Project, began: float) -> Any:
    """The record that this run left; one from before is not its own."""
    from pytest_perfgate.model.errors import PerfgateError

    try:
        path = project.records.last()
        return project.records.read(str(path)) if path.stat().st_mtime >= began - 1 else None
    except (PerfgateError, OSError):
        return None


def _code(status: int, report: Any) -> int:
    """The gate's own code; a test that failed for another reason fails the command too."""
    from pytest_perfgate.core.gate.policy import FROM_PYTEST, REGRESSED, run_code

    return FROM_PYTEST.get(status, REGRESSED) if report is None else run_code(report, status)
