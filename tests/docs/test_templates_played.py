"""The templates are played: their own steps, real runs, and a forge that lies in a folder."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.forge import TEMPLATES, Workflow, api, environment, shell, tools

pytestmark = pytest.mark.slow
SLOW = pytest.mark.skipif(not os.environ.get("PERFGATE_SLOW"), reason="it takes a minute: PERFGATE_SLOW=1")

SETTINGS = '[tool.perfgate]\ndevices = ["*"]\nbudget = 0.02\nwarmup = 0.0\nrounds = 1\n'
TESTS = """
import pytest

@pytest.mark.perfgate("time <= 1 s")
def test_kept(perfgate):
    perfgate(sum, range(100))

@pytest.mark.perfgate("time <= {limit}")
def test_asked(perfgate):
    perfgate(sum, range(100))
"""


@pytest.fixture
def forge() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    with api() as served:
        yield served


def project(folder: Path, limit: str = "1 s") -> Path:
    """A project of two gated tests, committed."""
    (folder / "tests" / "bench").mkdir(parents=True)
    (folder / "pyproject.toml").write_text(SETTINGS)
    (folder / "tests" / "bench" / "test_sums.py").write_text(TESTS.format(limit=limit))
    (folder / ".gitignore").write_text(".perfgate/\n__pycache__/\n")
    who = ("-c", "user.name=n", "-c", "user.email=e")
    for command in (("init", "-qb", "main"), ("add", "-A"), (*who, "commit", "-qm", "kernels")):
        subprocess.run(["git", *command], cwd=folder, check=True)
    return folder


def read(name: str) -> str:
    return (TEMPLATES / name).read_text(encoding="utf-8")


def matrix(tmp_path: Path, url: str, limit: str) -> Workflow:
    """The matrix with one kind of runner and two shards, on a pull request of the project's own."""
    text = read("github-matrix.yml")
    for theirs, ours in (
        ("[h200, a100]", "[cpu]"),
        ("[1, 2, 3, 4]", "[1, 2]"),
        ("}}/4", "}}/2"),
        ("expect 8", "expect 2"),
    ):
        assert theirs in text
        text = text.replace(theirs, ours)
    (tmp_path / "event.json").write_text(json.dumps({"pull_request": {"number": 7, "head": {"sha": "c0ffee"}}}))
    names = environment(
        tools(tmp_path / "bin"), GITHUB_API_URL=url, GITHUB_REPOSITORY="o/n", GITHUB_STEP_SUMMARY=str(tmp_path / "summary"),
        GITHUB_EVENT_PATH=str(tmp_path / "event.json"), GITHUB_ACTIONS="true",
    )  # fmt: skip
    contexts = {
        "github.repository": "o/n", "github.event.pull_request.head.repo.full_name": "o/n", "secrets.GITHUB_TOKEN": "t0ken",
    }  # fmt: skip
    return Workflow(text, project(tmp_path / "project", limit), tmp_path, names, contexts)


@SLOW
def test_a_matrix_that_is_clean_passes_and_says_nothing(tmp_path: Path, forge) -> None:
    run = matrix(tmp_path, forge[0], "1 s")
    assert run.job("measure"), run.failed
    assert run.job("verdict"), run.failed
    assert forge[1] == []
    assert "2 cases: 2 passed" in (tmp_path / "summary").read_text(encoding="utf-8")
    merged = json.loads((tmp_path / "artifacts" / "perfgate" / "merged.json").read_text(encoding="utf-8"))
    assert len(merged["run"]["cases"]) == 2


@SLOW
def test_a_matrix_that_lost_a_runner_fails_and_comments(tmp_path: Path, forge) -> None:
    run = matrix(tmp_path, forge[0], "1 s")
    assert run.job("measure", only=lambda at: at["shard"] == 1), run.failed
    assert not run.job("verdict")
    (comment,) = forge[1]
    assert comment["path"] == "/repos/o/n/issues/7/comments"
    assert "NOT MEASURED" in comment["body"]


@SLOW
def test_a_fork_that_breaks_a_limit_fails_and_is_commented_on_by_the_second_job_alone(tmp_path: Path, forge) -> None:
    run = matrix(tmp_path, forge[0], "1 ns")
    run.context["github.event.pull_request.head.repo.full_name"] = "somebody/n"
    assert not run.job("measure")
    assert not run.job("verdict")
    assert forge[1] == []
    steps = yaml.safe_load(read("github-fork-comment.yml"))["jobs"]["comment"]["steps"]
    gh = f'case "$1" in run) cp -r {tmp_path}/artifacts/perfgate record;; api) echo 7;; *) exit 9;; esac'
    names = environment(tools(tmp_path / "trusted", gh=gh), GITHUB_TOKEN="t0ken", GITHUB_REPOSITORY="o/n")
    names |= {"GITHUB_API_URL": forge[0], "RUN": "1", "HEAD": "c0ffee", "OWNER": "somebody", "BRANCH": "b"}
    (tmp_path / "empty").mkdir()
    for step in (step for step in steps if "run" in step):
        done = shell(step["run"], tmp_path / "empty", names)
        assert done.returncode == 0, done.stderr
    (comment,) = forge[1]
    assert comment["path"] == "/repos/o/n/issues/7/comments"
    assert "BROKEN" in comment["body"]


SRUN = """
while [ "${1#-}" != "$1" ]; do shift; done
worst=0
for at in $(seq 0 $((SLURM_NTASKS - 1))); do SLURM_PROCID=$at "$@" || worst=$?; done
exit $worst
"""


@SLOW
@pytest.mark.parametrize(("limit", "lost", "ends"), [("1 ns", "", 1), ("1 s", "1", 4)])
def test_slurm_gives_each_task_a_shard_and_one_verdict(tmp_path: Path, forge, limit: str, lost: str, ends: int) -> None:
    """Also where a task dies before it measures: its tests are missed."""
    dies = f'[ "$SLURM_PROCID" = "{lost}" ] && exit 137; ' if lost else ""
    commands = tools(tmp_path / "bin", srun=SRUN)
    pytest_of_task = commands / "pytest"
    pytest_of_task.write_text(pytest_of_task.read_text().replace("#!/bin/bash\n", f"#!/bin/bash\n{dies}"))
    names = environment(commands, SLURM_NTASKS="2", SLURM_JOB_ID="77", GITHUB_TOKEN="t0ken", GITHUB_API_URL=forge[0])
    names |= {"PERFGATE_COMMENT": "github:o/n#12"}
    home = project(tmp_path / "project", limit)
    done = shell(read("slurm-shards.sh"), home, names)
    assert done.returncode == ends, done.stdout + done.stderr
    assert {"shards", "merged.json", "report.html"} <= {path.name for path in home.iterdir()}
    assert [comment["path"] for comment in forge[1]] == ["/repos/o/n/issues/12/comments"]


def test_gitlab_ends_as_the_gate_did_and_leaves_a_note(tmp_path: Path, forge) -> None:
    script = "\n".join(yaml.safe_load(read("gitlab.yml"))["perfgate"]["script"])
    names = environment(
        tools(tmp_path / "bin"), GITLAB_CI="true", CI_API_V4_URL=forge[0], CI_PROJECT_ID="9", CI_MERGE_REQUEST_IID="7",
        GITLAB_TOKEN="t0ken",
    )  # fmt: skip
    done = shell(script, project(tmp_path / "project", "1 ns"), names)
    assert done.returncode == 1, done.stdout + done.stderr
    assert [comment["path"] for comment in forge[1]] == ["/projects/9/merge_requests/7/notes"]


@SLOW
@pytest.mark.parametrize(("limit", "jobs", "ends"), [("1 ns", 2, 1), ("1 s", 1, 4)])
def test_gitlab_joins_the_records_of_its_jobs(tmp_path: Path, forge, limit: str, jobs: int, ends: int) -> None:
    """Also where one of them is lost. What a job left reaches the next one where it failed too."""
    pipeline = yaml.safe_load(read("gitlab-shards.yml").replace("--expect 4", "--expect 2"))
    names = environment(
        tools(tmp_path / "bin"), GITLAB_CI="true", CI_API_V4_URL=forge[0], CI_PROJECT_ID="9", CI_MERGE_REQUEST_IID="7",
        GITLAB_TOKEN="t0ken",
    )  # fmt: skip
    home = project(tmp_path / "project", limit)
    assert pipeline["measure"]["artifacts"] == {"when": "always", "paths": ["shards"]}
    script = "\n".join(pipeline["measure"]["script"]).replace("rm -rf", "true")
    for job in range(jobs):
        shell(script, home, {**names, "CI_NODE_INDEX": str(job + 1), "CI_NODE_TOTAL": "2"})
    done = shell("\n".join(pipeline["verdict"]["script"]), home, names)
    assert done.returncode == ends, done.stdout + done.stderr
    (comment,) = forge[1]
    assert comment["path"] == "/projects/9/merge_requests/7/notes"
    assert ("NOT MEASURED" if jobs == 1 else "BROKEN") in comment["body"]


@SLOW
def test_buildkite_joins_the_records_of_its_jobs(tmp_path: Path) -> None:
    """A pipeline is read with ``$$`` for a dollar of the job; the agent downloads what the jobs left."""
    agent = f'case "$1" in artifact) cp -r {tmp_path}/project/shards .;; annotate) cat > {tmp_path}/annotation;; esac'
    steps = [s for s in yaml.safe_load(read("buildkite.yml").replace("$$", "$"))["steps"] if "commands" in s]
    names = environment(tools(tmp_path / "bin", **{"buildkite-agent": agent}), BUILDKITE="true")
    home, script = project(tmp_path / "project", "1 ns"), "\n".join(steps[0]["commands"]).replace("rm -rf", "true")
    ended = []
    for job in range(2):
        part = {"BUILDKITE_PARALLEL_JOB": str(job), "BUILDKITE_PARALLEL_JOB_COUNT": "2"}
        ended.append(shell(script, home, {**names, **part}).returncode)
    assert sorted(ended) == [0, 1]
    (tmp_path / "verdict").mkdir()
    script = "\n".join(steps[1]["commands"]).replace("--expect 4", "--expect 2")
    done = shell(script, tmp_path / "verdict", names)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "BROKEN" in (tmp_path / "annotation").read_text(encoding="utf-8")


@SLOW
def test_kubernetes_runs_a_shard_a_pod(tmp_path: Path) -> None:
    container = yaml.safe_load(read("kubernetes.yaml"))["spec"]["template"]["spec"]["containers"][0]
    script = container["args"][0].replace("/records/", f"{tmp_path}/records/")
    names, home = environment(tools(tmp_path / "bin"), SHARDS="2", RECORDS="perfgate-x"), project(tmp_path / "project")
    for pod in range(2):
        done = shell(script, home, {**names, "JOB_COMPLETION_INDEX": str(pod)})
        assert done.returncode == 0, done.stdout + done.stderr
    done = shell(f"perfgate merge {tmp_path}/records/perfgate-x --expect 2 --to merged.json", home, names)
    assert done.returncode == 0, done.stdout + done.stderr
