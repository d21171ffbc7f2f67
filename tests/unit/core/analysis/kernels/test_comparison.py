from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_perfgate.core.analysis.decisions import NO_ROW
from pytest_perfgate.core.analysis.kernels.reports import contract_document, top_opportunities
from pytest_perfgate.core.analysis.kernels.views import counters_compared, moved_table, paired, slowdowns
from pytest_perfgate.core.render.html import render_markdown
from pytest_perfgate.model.metric import Finding
from pytest_perfgate.model.values import Interval
from tests.launches import BUSY, ELAPSED, launch


def test_launches_of_one_name_are_paired_in_their_order() -> None:
    before, after = [launch("a", 1.0), launch("b"), launch("a", 2.0)], [launch("a", 3.0), launch("a", 4.0)]
    assert [(o.numbers["duration"], n.numbers["duration"]) for o, n in paired(before, after)] == [
        (1.0, 3.0),
        (2.0, 4.0),
    ]


def test_the_slowdown_of_each_pair() -> None:
    (found,) = slowdowns([launch(time=4e5)], [launch(time=5e5)])
    assert (found.value, found.labels) == (pytest.approx(0.25), (("kernel", "k"),))
    assert list(slowdowns([launch(time=None)], [launch()])) == []


def test_what_moved_what_left_and_what_came() -> None:
    told = render_markdown(counters_compared([launch(), launch("gone")], [launch(time=3e5), launch("new")], "a -> b"))
    assert "| duration | 400 µs | 300 µs | -25.0 % |" in told
    assert "| class | memory | memory |  |" in told
    assert "Only in the first\n\n- gone" in told
    assert "Only in the second\n\n- new" in told


def test_a_number_on_one_side_alone_has_no_change() -> None:
    more = launch(counters={**BUSY, f"sm__pipe_tensor_cycles_active{ELAPSED}": 40.0})
    rows = {row[0]: row[1:] for row in moved_table(launch(), more).rows}
    assert rows["tc_util"] == ("not collected", "40 %", "--")
    assert "l2_hit" not in rows


def test_the_contract_holds_the_baseline_where_there_is_one() -> None:
    told = render_markdown(contract_document([launch(time=3e5)], version="v2", baseline=[launch()]), level=2)
    assert told.startswith("## Profile: k v2\n")
    assert "### vs Baseline: k" in told
    assert "-25.0 %" in told
    assert "vs Baseline" not in render_markdown(contract_document([launch()]))


def test_the_contract_tries_first_what_the_bottleneck_report_does() -> None:
    own = Finding(title="Better locality in L2", trigger="class=memory")
    spread = Finding(title="A local estimate", trigger="rule", gain=Interval(low=0.0, high=0.9), doubt="local")
    large = Finding(title="A larger one", trigger="rule", gain=Interval(low=0.0, high=0.95))
    found = replace(launch(), advice=(own,))
    found = replace(found, facts=replace(found.facts, findings=(spread, large)))
    assert [f.title for f in top_opportunities(found)] == [own.title, large.title, spread.title]
    nothing = replace(found, advice=(replace(own, trigger=NO_ROW),))
    assert top_opportunities(nothing)[0].title == large.title
