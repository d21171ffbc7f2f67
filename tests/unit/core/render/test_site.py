from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from pytest_perfgate.core.analysis.regressions import Trend, findings
from pytest_perfgate.core.judge.accepted_line import figure_levels
from pytest_perfgate.core.render.site import Site, case_path, device_path, site_pages
from pytest_perfgate.model.measurement import Baseline, HistoryEntry
from pytest_perfgate.model.metric import Figure, Metric, labels
from pytest_perfgate.model.plan import CaseKey
from pytest_perfgate.model.values import Dimension

KEY = CaseKey(nodeid="t/k.py::test_<b>[n=1&2]", name="fwd")
SITE = Site(name="kernels")


def line(*times: float, **fields) -> list[HistoryEntry]:
    return [
        HistoryEntry(
            key=KEY, device="H/200", time=time, when=f"2026-{1 + at // 28:02}-{1 + at % 28:02}T02:00:00", run=f"r{at}",
            **({"commit": f"{at:040x}", "outcome": "passed"} | fields),
        )
        for at, time in enumerate(times)
    ]  # fmt: skip


def pages(*trends: Trend, site: Site = SITE, figures: list[Trend] | None = None) -> dict[str, str]:
    others = figures or []
    return dict(site_pages(site, trends, findings(trends, others, before="2026-01-02"), others))


def gated(entries: list[HistoryEntry], name: str, numbers: list[float], dimension: Dimension, accepted: float):
    """The page of a case of which one figure is accepted, and that of its device."""
    shown = [
        replace(s, metrics=(Metric(name=name, value=number, dimension=dimension),))
        for s, number in zip(entries, numbers)
    ]
    figures = (Figure(name=name, value=accepted, dimension=dimension),)
    baseline = Baseline(key=KEY, device="H/200", figures=figures, when="2026-01-01", why="more <rows>")
    own = [Trend(at, then, of=of, levels=levels) for at, levels, then, of in figure_levels(shown, baseline)]
    every = pages(Trend(shown), figures=own)
    return every[case_path("H/200", KEY)], every["H-200/index.html"]


class Closed(HTMLParser):
    """Raises where a tag is not closed, or closed by another; cells and rows end by themselves."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag not in {"meta", "link", "wbr", "thead", "tbody", "tr", "th", "td"}:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: object) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


SLOWER = [*(100.0 + n % 3 for n in range(12)), *(120.0 + n % 3 for n in range(12))]


@pytest.mark.parametrize("times", [[1e5], [1e5, 1e5], SLOWER, [1e-3, 1e12, 5.0, 7.0] * 3])
def test_every_page_is_whole(times: list[float]) -> None:
    trend = Trend(line(*times))
    site = pages(trend)
    assert set(site) == {"style.css", "index.html", "H-200/index.html", case_path("H/200", KEY)}
    for name, text in site.items():
        if name.endswith(".html"):
            parser = Closed()
            parser.feed(text)
            assert not parser.open
            assert "<b>" not in text
            assert "nan" not in text


def test_a_case_shows_its_levels_and_what_came_with_them() -> None:
    now, then = (("driver", "580"),), (("driver", "570"),)
    entries = [replace(s, facts=now if at >= 12 else then) for at, s in enumerate(line(*SLOWER))]
    trend = Trend(entries, Baseline(key=KEY, device="H/200", time=121.0, when="2026-01-20", why="more <rows>"))
    text = pages(trend)[case_path("H/200", KEY)]
    assert "driver 570 → 580" in text
    assert "more &lt;rows&gt;" in text
    assert "+19.8 % at 0000000" in text
    assert "accepted 121 ns" in text
    before = Baseline(key=KEY, device="H/200", time=101.0, when="2026-01-20", why="more <rows>")
    level = pages(Trend(entries, before))[case_path("H/200", KEY)].partition("<h2>Levels")[2]
    assert "more &lt;rows&gt;" not in level, "the level before the step was accepted"
    assert '<p class="good">No lasting slowdown.</p>' in pages(trend)["index.html"], (
        "what was accepted is no regression"
    )


def test_the_table_of_figures_says_what_time_is_accepted() -> None:
    took = (Metric(name="time", value=110.0, dimension=Dimension.TIME),)
    entries = [replace(s, metrics=took) for s in line(110.0, 110.0)]
    page = pages(Trend(entries, Baseline(key=KEY, device="H/200", time=100.0)))[case_path("H/200", KEY)]
    row = page.partition("<tr><td>time<td>110 ns<td>")[2]
    assert row.startswith("100 ns<td")
    assert "+10.0 %" in row.partition("<tr>")[0]
    assert "<p>now +10.0 %</p>" in page


def test_figures_and_speed_ups_have_a_place() -> None:
    metrics = (
        Metric(name="mfu", value=0.5, dimension=Dimension.FRACTION),
        Metric(name="speedup", value=1.5, dimension=Dimension.RATIO, labels=labels(over="torch")),
    )
    faster = (replace(metrics[0], value=0.56), metrics[1])
    entries = [replace(s, metrics=faster if at == 2 else metrics) for at, s in enumerate(line(1e5, 1e5, 1e5))]
    site = pages(Trend(entries))
    assert "+6.0 pp" in site[case_path("H/200", KEY)]
    assert "speedup(over=torch)" in site[case_path("H/200", KEY)]
    assert "over torch" in site["H-200/index.html"]
    assert "1.5x" in site["H-200/index.html"]
    assert "Speed-up" not in pages(Trend(line(1e5)))["H-200/index.html"]


@pytest.mark.parametrize(
    ("commit", "linked"), [("c0ffee1", True), ("c0ffee1+dirty", False), ("", False), ('"><b>', False)]
)
def test_a_commit_leads_to_its_page(commit: str, linked: bool) -> None:
    site = pages(Trend(line(1e5, commit=commit)), site=Site(name="k", commits="https://h/{}"))
    assert ("https://h/c0ffee1" in site["index.html"]) is linked
    assert "<b>" not in site["index.html"]


def test_every_case_has_a_page_of_its_own() -> None:
    names = [f"t.py::test_{'x' * 200}[{n}]" for n in range(50)] + ["a.py::t", "b.py::t", "a.py::t[../..]"]
    paths = {case_path("d", CaseKey(nodeid=name)) for name in names}
    assert len(paths) == len(names)
    assert all(re.fullmatch(r"d/[A-Za-z0-9-]+\.html", path) and len(path) < 90 for path in paths)
    assert [device_path(name) for name in ("host-epyc-2", "../x", "...", "a b")] == [
        "host-epyc-2",
        "-x",
        "device",
        "a-b",
    ]


def test_a_line_without_a_time_says_nothing_of_the_time() -> None:
    figures = (Figure(name="registers", value=128, dimension=Dimension.COUNT),)
    trend = Trend(line(1e5, 1.1e5), Baseline(key=KEY, device="H/200", figures=figures))
    assert trend.accepted is None
    assert "accepted" not in pages(trend)[case_path("H/200", KEY)]


def test_the_overview_counts_shards_of_a_commit_as_one_run_and_names_what_went_away_by_commit() -> None:
    other = replace(KEY, name="bwd")
    again = [100.0] * 12 + [130.0] * 12 + [100.0] * 12
    lines = [Trend(line(*again)), Trend([replace(s, key=other, run=f"s{s.run}") for s in line(*again)])]
    overview = pages(*lines)["index.html"]
    assert "2 cases on 1 device, 36 runs" in overview
    section = overview.partition("<h2>Went away</h2>")[2].partition("<h2>")[0]
    assert section.count("<tr>") == 2
    assert "<td>2<td>" in section


COUNT, BYTES, PART = Dimension.COUNT, Dimension.BYTES, Dimension.FRACTION


@pytest.mark.parametrize("time", [1e5, 0.0], ids=["timed", "untimed"])
@pytest.mark.parametrize(
    ("name", "dimension", "then", "now", "accepted", "step", "kind"),
    [
        ("registers", COUNT, 128.0, 130.0, "128", "+1.6 %", "slower"),
        ("registers", COUNT, 128.0, 127.0, "128", "-0.8 %", "faster"),
        ("spills", BYTES, 0.0, 16.0, "0 B", "0 B -&gt; 16 B", "slower"),
        ("overlap", PART, 0.8, 0.7, "80 %", "-10.0 pp", "slower"),
        ("overlap", PART, 0.7, 0.8, "70 %", "+10.0 pp", "faster"),
    ],
)
def test_a_gated_figure_has_its_line_its_level_and_its_steps(
    time: float, name: str, dimension: Dimension, then: float, now: float, accepted: str, step: str, kind: str
) -> None:
    numbers = [then] * 12 + [now] * 12
    page, device = gated(line(*[time] * 24), name, numbers, dimension, then)
    for text in (page, device):
        Closed().feed(text)
        assert f"<td class={kind}>{step}<" in text.replace("\n", "")
        assert "<b>" not in text
    assert f">accepted {accepted}</text>" in page
    assert f">{step} at 0000000</text>" in page
    assert page.count('class="step"') == 1
    assert page.count('<figure class="trend">') == (2 if time else 1)
    assert "more &lt;rows&gt;" in page
    assert ("<th scope=col>time" in page) is bool(time)
    assert f"<th scope=col>{name}" in page
    assert ("Gated figures", device.count("<tr>")) == ("Gated figures", 4 if time else 2)


def test_what_stayed_at_zero_has_no_step_and_what_was_accepted_at_zero_has_a_line() -> None:
    page, _ = gated(line(*[0.0] * 12), "spills", [0.0] * 12, BYTES, 0.0)
    assert "<tr><td>spills<td>0 B<td>0 B<td>+0.0 %<td>" in page
    assert 'class="step"' not in page
    page, _ = gated(line(*[0.0] * 12), "spills", [16.0] * 12, BYTES, 0.0)
    assert ">accepted 0 B</text>" in page
    assert "now 0 B -&gt; 16 B" in page


def test_a_case_without_a_time_and_without_a_gated_figure_shows_its_figures_and_runs() -> None:
    mfu = (Metric(name="mfu", value=0.5, dimension=PART),)
    every = pages(Trend([replace(s, metrics=mfu) for s in line(0.0, 0.0)]))
    assert "2 runs from 2026-01-01" in every[case_path("H/200", KEY)]
    assert "50 %" in every[case_path("H/200", KEY)]
    assert "1 case on 1 device, 2 runs" in every["index.html"]
    assert "<svg viewBox" not in every[case_path("H/200", KEY)]
    assert case_path("H/200", KEY).partition("/")[2] in every["H-200/index.html"]


def test_a_page_without_gated_figures_holds_nothing_of_them() -> None:
    lone = pages(Trend(line(*SLOWER)))
    assert "Gated figures" not in lone["H-200/index.html"]
    assert len(lone[case_path("H/200", KEY)]) < 5_000


def test_a_figure_that_stands_still_has_no_drawing_and_no_row_of_its_device() -> None:
    page, device = gated(line(*[1e5] * 24), "registers", [128.0] * 24, COUNT, 128.0)
    assert page.count('<figure class="trend">') == 1
    assert "<h2>registers" not in page
    assert "<tr><td>registers<td>128<td>128<td>+0.0 %<td>" in page
    assert "1 other figure without a step" in device
    assert device.count("<tr>") == 2


def test_a_table_names_its_columns_of_numbers_once() -> None:
    page = pages(Trend(line(*SLOWER)))[case_path("H/200", KEY)]
    runs = page.partition("<h2>Runs</h2>")[2].partition("</table>")[0]
    assert '<table class="s1 s2 n3 s4">' in runs
    assert runs.count("<tr>") == 25
    assert "class=" not in runs.partition("<tbody>")[2]


def test_a_device_counts_the_cases_that_are_slower_not_their_figures() -> None:
    shown = [
        replace(s, metrics=(Metric(name="registers", value=128 + s.time, dimension=Dimension.COUNT),))
        for s in line(*SLOWER)
    ]
    accepted = Baseline(
        key=KEY, device="H/200", figures=(Figure(name="registers", value=128, dimension=Dimension.COUNT),)
    )
    own = [Trend(at, then, of=of, levels=levels) for at, levels, then, of in figure_levels(shown, accepted)]
    every = findings([Trend(shown)], own, before="2026-01-02")
    assert len(every.slower) > 1
    index = pages(Trend(shown), figures=own)["index.html"]
    row = index.partition("<h2>Devices</h2>")[2].partition("</table>")[0].rpartition("<tr>")[2]
    assert re.findall(r"<td[^>]*>([^<]*)", row)[1:3] == ["1", "24"]
    assert [cell.strip() for cell in re.findall(r"<td[^>]*>([^<]*)", row)[4:]] == ["1"]


def test_cases_without_a_step_are_ordered_by_how_much_worse_than_accepted_they_are() -> None:
    trends = []
    for name, now in (("a", 80.0), ("b", 110.0), ("c", 150.0), ("d", 90.0)):
        key = CaseKey(nodeid=f"t.py::test_{name}")
        entries = [replace(one, key=key) for one in line(now, now)]
        trends.append(Trend(entries, Baseline(key=key, device="H/200", time=100.0)))
    page = pages(*trends)["H-200/index.html"]
    assert "".join(re.findall(r"t\.py::(?:<wbr>)?test_(?:<wbr>)?([a-d])<", page)) == "cbad"
