"""The pages build as a site without a warning: every page is in the nav, every link and anchor leads somewhere."""

from __future__ import annotations

import json
import re
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
    outcomes = (project / "site" / "outcomes.html").read_text(encoding="utf-8")
    assert '<span class="option">--perfgate-against</span>' in outcomes, "a narrow screen breaks it at no hyphen"


def test_links_that_lead_nowhere_and_a_page_outside_of_the_nav_are_each_counted_and_fail(project: Path) -> None:
    """One build for all, because each takes two seconds; the pages without them build without a warning."""
    links = ("[gone](gone.md)", "[gone](limits.md#no-such-part)", "[outside](../ci/templates)")
    page = project / "docs" / "index.md"
    page.write_text("\n\n".join((page.read_text(encoding="utf-8"), *links)), encoding="utf-8")
    (project / "docs" / "stray.md").write_text("# Stray\n", encoding="utf-8")
    done = built(project)
    assert done.returncode != 0
    warnings = done.stderr.split("WARNING")[1:]
    faults = ("gone.md", "no-such-part", "../ci/templates", "stray.md")
    assert [sum(fault in warning for warning in warnings) for fault in faults] == [1] * 4, done.stderr
    assert len(warnings) == 4


FORMS = {
    "a list or a paragraph inside an item is indented by four, or the site joins it to the outer list": (
        r"(?m)^ {1,3}(?:[-*]|\d+\.) |\n\n {1,3}\S"
    ),
    "an item after a paragraph of the one before needs an empty line, or the site joins it to that paragraph": (
        r"\n\n {4}[^\s-](?:.*\n)(?: +\S.*\n)*\d+\. "
    ),
    "a heading that begins with a digit stops the theme's script, and tables lose their lines": r"(?m)^#+ \d",
    "the site shows the backslash of an escaped bar in code": r"`[^`\n]*\\\|[^`\n]*`",
}
"""What GitHub shows right and the site does not, each with the reason."""


def test_pages_keep_to_forms_that_the_site_reads() -> None:
    for path in sorted((ROOT / "docs").glob("*.md")):
        text = re.sub(r"(?ms)^```.*?^```$", "", path.read_text(encoding="utf-8"))
        for reason, form in FORMS.items():
            assert not (hit := re.search(form, text)), f"{path.name}: {hit.group()!r}: {reason}"


def test_the_nav_is_by_task() -> None:
    nav = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]
    tasks = [title for entry in nav for title, pages in entry.items() if isinstance(pages, list)]
    assert len(tasks) >= 5
    assert all(len(pages) <= 8 for entry in nav for pages in entry.values() if isinstance(pages, list))
