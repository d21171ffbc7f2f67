"""Workflows, issue forms and hooks are what their readers take, and say what the project needs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
GITHUB = ROOT / ".github"
WORKFLOWS = sorted((GITHUB / "workflows").glob("*.yml"))
FORMS = sorted(path for path in (GITHUB / "ISSUE_TEMPLATE").glob("*.yml") if path.name != "config.yml")


def loaded(path: Path) -> dict[Any, Any]:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("schema", "paths"),
    [
        ("vendor.github-workflows", [*WORKFLOWS, *(ROOT / "ci" / "templates").glob("github*.yml")]),
        ("vendor.buildkite", [ROOT / "ci" / "templates" / "buildkite.yml"]),
        ("vendor.github-issue-forms", FORMS),
        ("vendor.github-issue-config", [GITHUB / "ISSUE_TEMPLATE" / "config.yml"]),
        ("vendor.gitlab-ci", sorted((ROOT / "ci" / "templates").glob("gitlab*.yml"))),
    ],
)
def test_files_keep_the_schema_of_the_forge(schema: str, paths: list[Path]) -> None:
    assert paths
    from check_jsonschema import main
    from click.testing import CliRunner

    done = CliRunner().invoke(main, ["--builtin-schema", schema, *map(str, paths)])
    assert done.exit_code == 0, done.output
    assert "ok" in done.output


NODE_24 = {
    "actions/checkout": 5, "actions/setup-python": 6, "actions/upload-artifact": 6, "actions/download-artifact": 7,
    "actions/upload-pages-artifact": 5, "actions/deploy-pages": 5,
}  # fmt: skip
"""From which version on an action runs on Node 24: runners of GitHub had 20 until September 2026."""


def test_actions_run_on_what_runners_have() -> None:
    paths = [*WORKFLOWS, *(ROOT / "ci" / "templates").glob("github*.yml")]
    used = [name for path in paths for name in re.findall(r"uses: (actions/\S+)@v(\d+)", path.read_text("utf-8"))]
    assert {name for name, _ in used} == NODE_24.keys()
    assert [(name, version) for name, version in used if int(version) < NODE_24[name]] == []


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.name)
def test_every_form_asks_for_the_doctor(path: Path) -> None:
    fields = {part["id"]: part for part in loaded(path)["body"]}
    assert fields["doctor"]["attributes"]["label"] == "perfgate doctor --json"


def test_the_checks_run_on_every_python_that_is_supported() -> None:
    matrix = loaded(GITHUB / "workflows" / "test.yml")["jobs"]["test"]["strategy"]["matrix"]["python"]
    assert matrix == [f"3.{minor}" for minor in range(10, 15)]
    oldest = re.search(r'requires-python = ">=(.*)"', (ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert oldest
    assert oldest[1] == matrix[0]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_starts_with_no_right_to_write_and_calls_what_exists(path: Path) -> None:
    workflow = loaded(path)
    assert workflow["permissions"] == {"contents": "read"}
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
    scripts = [script for step in steps for script in re.findall(r"\./(ci/\S+)", step.get("run", ""))]
    assert scripts
    for script in scripts:
        assert os.access(ROOT / script, os.X_OK), script
    for step in steps:
        assert "secrets." not in str(step)
        if "checkout" in step.get("uses", ""):
            assert step["with"]["persist-credentials"] is False


def test_a_release_publishes_what_was_checked_and_stores_no_token() -> None:
    jobs = loaded(GITHUB / "workflows" / "release.yml")["jobs"]
    assert (jobs["check"]["needs"], jobs["publish"]["needs"]) == ("build", "check")
    publish = jobs["publish"]
    assert publish["environment"] == "pypi"
    assert publish["permissions"] == {"id-token": "write", "attestations": "write", "contents": "read"}
    assert [step["uses"].partition("@")[0] for step in publish["steps"]] == [
        "actions/download-artifact", "pypa/gh-action-pypi-publish",
    ]  # fmt: skip
    assert all("--version" in step["run"] for job in ("build", "check") for step in jobs[job]["steps"] if "run" in step)


def test_the_template_of_a_pull_request_names_the_checks() -> None:
    text = (GITHUB / "PULL_REQUEST_TEMPLATE.md").read_text(encoding="utf-8")
    assert "./ci/test quick" in text
    assert "area: verb object" in text


def test_the_hooks_are_valid_and_run_tools_of_the_environment() -> None:
    config = ROOT / ".pre-commit-config.yaml"
    done = subprocess.run([sys.executable, "-m", "pre_commit", "validate-config", str(config)], capture_output=True,
                          text=True, check=False)  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    hooks = {hook["id"]: hook for repo in loaded(config)["repos"] for hook in repo["hooks"]}
    for hook in hooks.values():
        assert hook["language"] == "system"
        for name in re.findall(r"tests/\S+", hook["entry"]):
            assert (ROOT / name).exists(), name
    assert {"ruff-format", "ruff-check", "mypy", "import-linter"} <= set(hooks)


def test_a_report_of_a_weakness_has_a_private_way() -> None:
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    assert "Report a vulnerability" in text
    for target in re.findall(r"\]\(([^)#]+)", text):
        assert (ROOT / target).exists(), target
