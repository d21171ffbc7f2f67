"""A project in git whose head can be measured beside its base, and what the tests of that share."""

from __future__ import annotations

import hashlib
import os
import subprocess
from pathlib import Path

import pytest

from tests.plugin.projects import Project

SLOW = pytest.mark.skipif(
    not os.environ.get("PERFGATE_SLOW"), reason="thirty fresh processes: set PERFGATE_SLOW=1 to run it"
)
KERNEL = "def work(n):\n    total = 0\n    for i in range(n):\n        total += i * i\n    return total\n"
SLOWER = KERNEL.replace("range(n)", "range(4 * n)")
TESTS = """
    import pytest
    from kern import work

    @pytest.mark.perfgate("slowdown <= 30%")
    def test_work(perfgate):
        perfgate(work, 300)

    @pytest.mark.perfgate("slowdown <= 100%")
    def test_other(perfgate):
        perfgate(sorted, list(range(300)))
"""


def git(root: Path, *words: str) -> str:
    return subprocess.run(["git", *words], cwd=root, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def repository(project: Project) -> Project:
    project.configure(settings='arms = "worktree"\nbudget = "30 ms"', pytest_ini='pythonpath = ["."]')
    project.write("kern.py", KERNEL)
    project.write("tests/test_kern.py", TESTS)
    project.write(".gitignore", ".perfgate/\n__pycache__/\njunit.xml\n")
    git(project.root, "init", "-q", "-b", "main")
    git(project.root, "config", "user.email", "a@example.com")
    git(project.root, "config", "user.name", "a")
    git(project.root, "add", "-A")
    git(project.root, "commit", "-q", "-m", "one")
    return project


def digest(folder: Path) -> str:
    checksum = hashlib.sha256()
    for path in sorted(p for p in folder.rglob("*") if p.is_file() and p.suffix != ".pyc"):
        checksum.update(f"{path}{path.stat().st_size}{path.stat().st_mtime_ns}".encode())
    return checksum.hexdigest()
