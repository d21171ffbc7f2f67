"""regressions, site: what all runs say together."""

from __future__ import annotations

import datetime as dt
import json
import re
import shutil
import struct
import subprocess
import zlib
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_perfgate.adapters.stores.records import render_record
from pytest_perfgate.cli.site import commit_page
from pytest_perfgate.model.measurement import Baseline, HistoryEntry
from pytest_perfgate.model.metric import Figure, Metric
from pytest_perfgate.model.plan import CaseKey
from pytest_perfgate.model.project import REQUEST
from pytest_perfgate.model.values import Dimension
from tests.cli.conftest import Place
from tests.reports import day


def slower_project(place: Place) -> None:
    """A month in which one of two cases got slower at the twentieth, and the other was forgotten after the tenth."""
    noise = [1 + (at * 7919 % 13 - 6) / 2000 for at in range(30)]
    for at in range(1, 29):
        times = [1e6 * noise[at] * (1.1 if at >= 20 else 1), *([2e6 * noise[at]] if at <= 10 else [])]
        (place.root / f"{at:02}.json").write_bytes(render_record(day(at, *times)))
    assert place.perfgate("history", "add", ".").code == 0


def test_regressions_of_a_month(place: Place) -> None:
    slower_project(place)
    done = place.perfgate("regressions")
    assert done.code == 0
    assert "1 case got slower and stayed so" in done.out
    assert f"{20:040x}"[:7] in done.out
    assert place.perfgate("regressions", "--fail").code == 1
    assert place.perfgate("regressions", "--fail", "--since", "2026-06-25").code == 0
    assert place.perfgate("regressions", "--fail", "--over", "20%").code == 0
    every = json.loads(place.perfgate("regressions", "--json").out)
    assert [(step["commit"], round(step["after"] / step["before"], 2)) for step in every["slower"]] == [
        (f"{20:040x}", 1.1)
    ]
    assert place.perfgate("regressions", "--markdown", "digest.md").code == 0
    assert (place.root / "digest.md").read_text().startswith("# Regressions")
    assert place.perfgate("regressions", "--markdown", "-").out.startswith("# Regressions")


@pytest.mark.parametrize(("first", "code"), [(20, 0), (1, 1)], ids=["left out", "the case has no other run"])
def test_runs_of_pull_requests_are_no_lasting_slowdown(place: Place, first: int, code: int) -> None:
    for at in range(1, 29):
        report = day(at, 1e6 * (1 + (at * 7919 % 13 - 6) / 2000) * (1.1 if at >= 20 else 1))
        facts = ((REQUEST, "main"),) if at >= first else ()
        report = replace(report, environment=replace(report.environment, facts=facts))
        (place.root / f"{at:02}.json").write_bytes(render_record(report))
    assert place.perfgate("history", "add", ".").code == 0
    assert place.perfgate("regressions", "--fail").code == code


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--device", "AMD-*"], "history-empty"), (["--since", "soon"], "command-usage"),
        (["--since", "2999-01-01"], "in the future"), (["--device", "AMD-*"], "the history has: NVIDIA-H200"),
        (["--over", "much"], "not a share"), (["--over=-3%"], "not a share"), (["--stale", "0"], "whole number"),
    ],
)  # fmt: skip
def test_regressions_of_nothing(place: Place, words: list[str], code: str) -> None:
    place.perfgate("history", "add", place.record(day(1, 1e6)))
    done = place.perfgate("regressions", *words)
    assert (done.code, code in done.err) == (2, True)


def test_a_day_that_has_begun_in_the_east_is_not_in_the_future(place: Place) -> None:
    place.perfgate("history", "add", place.record(day(1, 1e6)))
    tomorrow = dt.datetime.now(dt.timezone.utc).date() + dt.timedelta(days=1)
    assert place.perfgate("regressions", "--since", tomorrow.isoformat()).code == 0


def pages(place: Place) -> dict[str, str]:
    folder = place.root / "public"
    return {path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*.html")}


def test_the_pages_of_a_month(place: Place) -> None:
    slower_project(place)
    done = place.perfgate("site", "public", "--title", "Kernels & <more>", "--commits", "https://host/c/{}")
    assert done.code == 0
    assert "5 pages written, of 2 cases" in done.out
    site = pages(place)
    index = site["index.html"]
    assert "Kernels &amp; &lt;more&gt;" in index
    assert f'href="https://host/c/{20:040x}"' in index
    (case_page,) = [text for name, text in site.items() if "test-a-" in name]
    assert "Levels" in case_page
    assert f"at {20:040x}"[:10] in case_page
    for name, text in site.items():
        folder = (place.root / "public" / name).parent
        links = re.findall(r'href="([^"]+)"', text)
        assert links
        assert all(link.startswith("https://host/c/") or (folder / link).is_file() for link in links), name
        assert "<script" not in text


def test_only_what_changed_is_written_again(place: Place) -> None:
    slower_project(place)
    place.perfgate("site", "public")
    assert "0 pages written" in place.perfgate("site", "public").out
    (place.root / "29.json").write_bytes(render_record(day(29, 1.1e6)))
    done = json.loads(place.perfgate("site", "public", "29.json", "--json").out)
    assert sorted(Path(name).name.rpartition("-")[0] or name for name in done["written"]) == [
        "NVIDIA-H200/index.html", "index.html", "test-a",
    ]  # fmt: skip
    (place.root / "public" / "changes.json").write_text("[" * 10**6)
    assert "0 pages written" in place.perfgate("site", "public").out


def test_a_project_that_gates_files_alone_has_its_pages(place: Place) -> None:
    """A file is held from run to run; nothing of it takes a time."""
    registers = Metric(name="registers", value=80, dimension=Dimension.COUNT, labels=(("kernel", "tile"),))
    key = CaseKey(nodeid="code/k.cubin::file")
    for at in range(1, 9):
        figure = replace(registers, value=80 if at < 5 else 96)
        when, name = f"2026-06-{at:02}T10:00:00", f"r{at}"
        place.history.append(
            [HistoryEntry(key=key, device="NVIDIA-H200", time=0.0, when=when, processes=0, run=name, metrics=(figure,))]
        )
    figures = (Figure(name="registers", value=80, dimension=Dimension.COUNT, labels=registers.labels),)
    place.baselines.write([Baseline(key=key, device="NVIDIA-H200", figures=figures, when="2026-06-01")])
    done = place.perfgate("site", "public")
    assert (done.code, "4 pages written, of 1 case" in done.out) == (0, True), done.err
    shown = pages(place)
    (page,) = [text for name, text in shown.items() if "file-" in name]
    assert "accepted 80" in page
    assert "+20.0 % at 2026-06-05" in page
    assert "registers(kernel=tile)" in shown["NVIDIA-H200/index.html"]
    assert "1 case on 1 device, 8 runs" in shown["index.html"]
    assert "0 pages written" in place.perfgate("site", "public").out
    assert "code/k.cubin::file" in place.perfgate("regressions").out


def test_a_site_of_nothing(place: Place) -> None:
    assert "history-empty" in place.perfgate("site", "public").err


@pytest.mark.parametrize(
    ("environment", "page"),
    [
        ({"GITHUB_SERVER_URL": "https://github.com", "GITHUB_REPOSITORY": "o/n"}, "https://github.com/o/n/commit/{}"),
        ({"CI_PROJECT_URL": "https://gitlab.com/o/n"}, "https://gitlab.com/o/n/-/commit/{}"), ({}, ""),
    ],
)  # fmt: skip
def test_where_a_commit_is_looked_at(environment: dict[str, str], page: str) -> None:
    assert commit_page(environment) == page


def first_pixel(picture: bytes) -> tuple[int, ...]:
    """The colour in the corner of a PNG: nothing is before it, so that no filter changed it."""
    data, at = b"", 8
    while at < len(picture):
        length, kind = struct.unpack(">I4s", picture[at : at + 8])
        data += picture[at + 8 : at + 8 + length] if kind == b"IDAT" else b""
        at += 12 + length
    return tuple(zlib.decompress(data)[1:4])


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("chromium") is None, reason="there is no Chromium")
@pytest.mark.parametrize(("dark", "paper"), [(True, (15, 19, 24)), (False, (255, 255, 255))])
def test_chromium_opens_a_page_from_disk_in_its_style(place: Place, dark: bool, paper: tuple[int, ...]) -> None:
    """The paper of the dark is that of the style beside the page: its policy lets the browser load it."""
    slower_project(place)
    place.perfgate("site", "public")
    (page,) = (place.root / "public" / "NVIDIA-H200").glob("test-a-*.html")
    scheme = ["--force-dark-mode", "--blink-settings=preferredColorScheme=0"] if dark else []
    picture = place.root / "page.png"
    command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--window-size=420,900", *scheme,
               f"--user-data-dir={place.root / 'browser'}", f"--screenshot={picture}", page.as_uri()]  # fmt: skip
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    assert first_pixel(picture.read_bytes()) == paper
