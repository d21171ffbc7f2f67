"""A time that moved because of what the change itself installs."""

from __future__ import annotations

import pytest

from pytest_perfgate.core.changes.marks import EnvironmentEdits, cause_of_change, environment_files, requirements

PIN = EnvironmentEdits(requirements=("-Fast_Dep>=1.0", "+Fast_Dep>=1.1"))
LOCK = EnvironmentEdits(files=("uv.lock",))
INSTALLED = {"fast-dep", "numpy", "python"}
DEP, NUMPY, DRIVER = (("fast-dep", "1.0", "1.1"), ("numpy", "2.0", "2.1"), ("driver", "570", "580"))


@pytest.mark.parametrize(
    ("moves", "edits", "text"),
    [
        ((DEP,), PIN, "this change edits -Fast_Dep>=1.0, +Fast_Dep>=1.1"),
        ((DRIVER, DEP), PIN, "this change edits -Fast_Dep>=1.0, +Fast_Dep>=1.1"),
        ((NUMPY,), PIN, ""),
        ((DRIVER,), PIN, ""),
        ((), PIN, "this change edits -Fast_Dep>=1.0, +Fast_Dep>=1.1"),
        ((NUMPY,), LOCK, "this change edits uv.lock"),
        ((("python", "3.11", "3.12"),), LOCK, "this change edits uv.lock"),
        ((DRIVER,), LOCK, ""),
        ((DEP,), EnvironmentEdits(), ""),
        ((), EnvironmentEdits(), ""),
    ],
)
def test_what_the_change_brings_itself(
    moves: tuple[tuple[str, str, str], ...], edits: EnvironmentEdits, text: str
) -> None:
    assert cause_of_change(moves, edits, INSTALLED) == text


def test_files_that_decide_what_is_installed() -> None:
    there = (
        *("requirements.txt", "ci/requirements-dev.in", "constraints.txt", "poetry.lock", "environment.yml"),
        *("docker/Dockerfile", "Dockerfile.cuda", ".python-version", "rust-toolchain.toml", "cmake/toolchain.cmake"),
        *(
            ".github/workflows/bench.yml",
            ".gitlab-ci.yml",
            ".buildkite/pipeline.yaml",
            "Jenkinsfile",
            ".env",
            "ci/.env.gpu",
            "tox.ini",
            "noxfile.py",
            ".circleci/config.yml",
            "azure-pipelines.yml",
        ),
    )
    others = ("src/requirements.py", "docs/environment.md", "kern.py", ".github/CODEOWNERS", "src/a.env.py", ".environ")
    assert environment_files((*there, *others)) == there


def test_requirements_of_two_revisions() -> None:
    assert requirements('["a", "b>=1"]', '["a", "b>=2"]') == ("-b>=1", "+b>=2")
