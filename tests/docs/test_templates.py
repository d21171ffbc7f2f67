"""The templates end with what pytest came to, and never with 0 where there is no whole record."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

TEMPLATES = Path(__file__).resolve().parents[2] / "ci" / "templates"


def gitlab() -> str:
    """The script of the job, run as one shell does: the first line that fails ends it."""
    text = (TEMPLATES / "gitlab.yml").read_text(encoding="utf-8")
    lines = text.partition("  script:\n")[2].partition("  artifacts:\n")[0].splitlines()
    return "set -eo pipefail\n" + "\n".join(line.removeprefix("    - ") for line in lines)


def slurm() -> str:
    return (TEMPLATES / "slurm.sh").read_text(encoding="utf-8")


@pytest.mark.parametrize("script", [gitlab, slurm])
@pytest.mark.parametrize(("tests", "report", "comes"), [(0, 0, 0), (1, 0, 1), (0, 12, 12), (1, 12, 1)])
def test_a_template_keeps_the_exit_code(tmp_path: Path, script, tests: int, report: int, comes: int) -> None:
    for name, ends in {"python": 0, "pytest": tests, "perfgate": report, "srun": 0}.items():
        stand_in = tmp_path / name
        stand_in.write_text("#!/bin/sh\nexec pytest\n" if name == "srun" else f"#!/bin/sh\nexit {ends}\n")
        stand_in.chmod(0o755)
    env = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "CI_MERGE_REQUEST_IID": "7", "PERFGATE": "x"}
    env.pop("SLURM_SUBMIT_DIR", None)
    done = subprocess.run(["bash", "-c", script()], cwd=tmp_path, env=env, capture_output=True, check=False)
    assert done.returncode == comes, done.stderr


@pytest.mark.parametrize(
    ("script", "variables", "comments"),
    [
        (gitlab, {"CI_MERGE_REQUEST_IID": "7"}, ["report record.json --to gitlab"]),
        (gitlab, {}, []),
        (slurm, {"PERFGATE_COMMENT": "github:o/n#7"}, ["report record.json --to github:o/n#7"]),
        (slurm, {"PERFGATE_COMMENT": "gitlab:g/n!7"}, ["report record.json --to gitlab:g/n!7"]),
        (slurm, {}, []),
    ],
)
def test_a_template_leaves_the_comment_of_a_change(tmp_path: Path, script, variables, comments: list[str]) -> None:
    """Also where the gate failed, and where the comment itself cannot be written the job ends as the gate did."""
    stand_ins = {
        "python": "exit 0", "pytest": "exit 1", "srun": "exec pytest",
        "perfgate": f'echo "$@" >> "{tmp_path}/called"; case "$*" in *record.json*--to*) exit 2;; esac; exit 1',
    }  # fmt: skip
    for name, text in stand_ins.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    inherited = {k: v for k, v in os.environ.items() if k not in {"SLURM_SUBMIT_DIR", "CI_MERGE_REQUEST_IID"}}
    env = {**inherited, "PATH": f"{tmp_path}:{os.environ['PATH']}", "PERFGATE": "x", **variables}
    done = subprocess.run(["bash", "-c", script()], cwd=tmp_path, env=env, capture_output=True, check=False)
    assert done.returncode == 1, done.stderr
    calls = (tmp_path / "called").read_text(encoding="utf-8").splitlines()
    metrics = ["report record.json --to openmetrics:metrics.txt"] if script is gitlab else []
    assert calls == ["report --html report.html --to json:record.json", *metrics, *comments]


@pytest.mark.parametrize(("merge", "written"), [(0, True), (4, True), (12, False)])
def test_a_job_over_nodes_ends_as_the_merge_of_its_own_records_did(tmp_path: Path, merge: int, written: bool) -> None:
    """Whatever became of one task: its record says so, or is missing."""
    touch = "touch merged.json; " if written else ""
    stand_ins = {
        "srun": "exit 9",
        "perfgate": f'echo "$@" >> called; case "$1" in merge) {touch}exit {merge};; esac; exit 1',
    }
    for name, text in stand_ins.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    inherited = {k: v for k, v in os.environ.items() if k not in {"SLURM_SUBMIT_DIR", "PERFGATE_COMMENT"}}
    env = {**inherited, "PATH": f"{tmp_path}:{os.environ['PATH']}", "SLURM_JOB_ID": "77", "SLURM_NTASKS": "8"}
    script = (TEMPLATES / "slurm-shards.sh").read_text(encoding="utf-8")
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, env=env, capture_output=True, check=False)
    assert done.returncode == merge, done.stderr
    calls = (tmp_path / "called").read_text(encoding="utf-8").splitlines()
    assert calls[0] == "merge shards/77 --expect 8 --to merged.json"
    assert len(calls) == 1 + written
