"""Pictures as files."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from pytest_perfgate.adapters.formats.drawings import write_drawings, write_picture
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.metric import Document, Picture, Section


def test_pictures_of_many_sections_have_files_of_their_own(tmp_path: Path) -> None:
    picture = Picture(svg="<svg>", alt="a", name="samples")
    cases = tuple(Section(title=title, blocks=(picture,)) for title in ("test_a[n=1]", "../b c", "../b c"))
    page = Document(title="t", blocks=(picture, Section(title="Pictures", blocks=(picture, *cases))))
    files = write_drawings(tmp_path / "new", {"page": page}, str.upper)
    assert [path.name for path in files] == [
        "samples.svg", "samples_2.svg", "test_a-n=1-samples.svg", "b-c-samples.svg", "b-c-samples_2.svg",
    ]  # fmt: skip
    assert all(path.parent == tmp_path / "new" for path in files)
    assert files[0].read_text(encoding="utf-8") == "<SVG>"


@pytest.mark.parametrize("name", ["a.pdf", "a", "a.svgz"])
def test_other_endings_are_refused_with_one_that_is_not(tmp_path: Path, name: str) -> None:
    with pytest.raises(PerfgateError) as error:
        write_picture(tmp_path / name, "<svg/>")
    assert error.value.code.name == "command-usage"
    assert "a.svg" in error.value.mend


def test_a_browser_draws_a_png_of_the_size_of_the_drawing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    browser = tools / "chromium"
    browser.write_text(
        f"#!{sys.executable}\n"
        """
import sys
out = next(word.partition("=")[2] for word in sys.argv if word.startswith("--screenshot="))
open(out, "w").write(next(word for word in sys.argv if word.startswith("--window-size=")))
"""
    )
    browser.chmod(0o755)
    monkeypatch.setenv("PATH", str(tools))
    monkeypatch.setitem(sys.modules, "cairosvg", None)
    write_picture(tmp_path / "a.png", '<svg width="760" height="88.4"></svg>')
    assert (tmp_path / "a.png").read_text() == "--window-size=760,89"
