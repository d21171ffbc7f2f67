"""The pages build as a site without a warning: every page is in the nav, every link and anchor leads somewhere."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]


def built(project: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(project / "site")]
    return subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    shutil.copy(ROOT / "mkdocs.yml", tmp_path)
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    return tmp_path


def test_the_site_builds_strict_and_can_be_searched(project: Path) -> None:
    done = built(project)
    assert done.returncode == 0, done.stderr
    pages = {path.stem for path in (ROOT / "docs").glob("*.md")}
    assert pages <= {path.stem for path in (project / "site").glob("*.html")}
    index = json.loads((project / "site" / "search" / "search_index.json").read_text(encoding="utf-8"))
    assert pages <= {entry["location"].partition(".html")[0] for entry in index["docs"]}


@pytest.mark.parametrize("line", ["[gone](gone.md)", "[gone](limits.md#no-such-part)", "[outside](../ci/templates)"])
def test_a_link_that_leads_nowhere_fails(project: Path, line: str) -> None:
    page = project / "docs" / "index.md"
    page.write_text(f"{page.read_text(encoding='utf-8')}\n{line}\n", encoding="utf-8")
    assert built(project).returncode != 0


def test_a_page_outside_of_the_nav_fails(project: Path) -> None:
    (project / "docs" / "stray.md").write_text("# Stray\n", encoding="utf-8")
    assert built(project).returncode != 0


def test_the_nav_is_by_task() -> None:
    nav = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]
    tasks = [title for entry in nav for title, pages in entry.items() if isinstance(pages, list)]
    assert len(tasks) >= 5
    assert all(len(pages) <= 8 for entry in nav for pages in entry.values() if isinstance(pages, list))
