"""Tests of core/limits/grammar."""

from __future__ import annotations

import pytest

from pytest_perfgate.core.limits.grammar import KNOWN, check_items, parse_limit
from pytest_perfgate.core.metric_kinds import own_kind
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.plan import Operator
from pytest_perfgate.model.values import UNITS, USUAL, Dimension, dimension_of
from tests.unit.core.judge.bench import KINDS, limit
from tests.unit.core.limits.spelled import CANONICAL, explicit_selection


@pytest.mark.parametrize(
    ("text", "metric", "labels", "operator", "bound"),
    [
        ("mfu >= 55%", "mfu", (), ">=", 0.55),
        ("mfu>=0.55", "mfu", (), ">=", 0.55),
        ("  slowdown  <=  3 %  ", "slowdown", (), "<=", 0.03),
        ("slowdown < 3%", "slowdown", (), "<", 0.03),
        ("slowdown <= -5%", "slowdown", (), "<=", -0.05),
        ("slowdown <= −5%", "slowdown", (), "<=", -0.05),
        ("mfu ≥ 55%", "mfu", (), ">=", 0.55),
        ("time ≤ 5us", "time", (), "<=", 5e3),
        ("mfu <= 55%", "mfu", (), "<=", 0.55),
        ("time <= 412.5µs", "time", (), "<=", 412500.0),
        ("time <= 1_000 ms", "time", (), "<=", 1e9),
        ("time <= .5s", "time", (), "<=", 5e8),
        ("time <= 5e-1us", "time", (), "<=", 500.0),
        ("launch_gap <= 0", "launch_gap", (), "<=", 0.0),
        ("tflops > 0", "tflops", (), ">", 0.0),
        ("slowdown <= -99%", "slowdown", (), "<=", -0.99),
        ("bandwidth >= 3 TB/s", "bandwidth", (), ">=", 3e12),
        ("bandwidth >= 1 GiB/s", "bandwidth", (), ">=", 2.0**30),
        ("tflops > 400 TFLOPS", "tflops", (), ">", 4e14),
        ("tflops > 400 TFLOP/s", "tflops", (), ">", 4e14),
        ("tflops > 2 TOPS", "tflops", (), ">", 2e12),
        ("throughput >= 5 k/s", "throughput", (), ">=", 5e3),
        ("throughput >= 1000values/s", "throughput", (), ">=", 1e3),
        ("throughput >= 1.5 Mtokens/s", "throughput", (), ">=", 1.5e6),
        ("throughput(case=fast) >= 2 Mtokens/s", "throughput", (("case", "fast"),), ">=", 2e6),
        ("worst(throughput) >= 2 Mtokens/s", "worst", (("of", "throughput"),), ">=", 2e6),
        ("throughput >= 1000 keys/s", "throughput", (), ">=", 1e3),
        ("intensity >= 10", "intensity", (), ">=", 10.0),
        ("mfu(case=bwd) >= 30%", "mfu", (("case", "bwd"),), ">=", 0.3),
        ("launch_gap(case=bwd) <= 3us", "launch_gap", (("case", "bwd"),), "<=", 3e3),
        ("count(HMMA) >= 1", "count", (("opcode", "HMMA"),), ">=", 1.0),
        ("count(opcode=HMMA) == 0", "count", (("opcode", "HMMA"),), "==", 0.0),
        ("count( HMMA , kernel=gemm* ) >= 1", "count", (("kernel", "gemm*"), ("opcode", "HMMA")), ">=", 1.0),
        ("geomean(slowdown) <= 1%", "geomean", (("of", "slowdown"),), "<=", 0.01),
        ("geomean(slowdown, family=test_*) <= 1%", "geomean", (("family", "test_*"), ("of", "slowdown")), "<=", 0.01),
        ("geomean(time) <= 5ms", "geomean", (("of", "time"),), "<=", 5e6),
        ("overlap(rank=0, stage=stage2) >= 80%", "overlap", (("rank", "0"), ("stage", "stage2")), ">=", 0.8),
        ("ncu(dram__throughput.avg.pct) >= 60", "ncu", (("name", "dram__throughput.avg.pct"),), ">=", 60.0),
        ("ncu(tokens) >= 2 Mtokens/s", "ncu", (("name", "tokens"),), ">=", 2e6),
        ("ncu(tokens) >= 2 kernels/s", "ncu", (("name", "tokens"),), ">=", 2.0),
        ("ncu(gpu__time.sum) <= 5us", "ncu", (("name", "gpu__time.sum"),), "<=", 5e3),
        ('slowdown(kernel="void foo<int, 3>(float*)") <= 3%', "slowdown", (("kernel", "void foo<int, 3>(float*)"),), "<=", 0.03),
        ("slowdown(kernel=void foo<int, 3>(float*)) <= 3%", "slowdown", (("kernel", "void foo<int, 3>(float*)"),), "<=", 0.03),
        (r"slowdown(kernel='it\'s \"x\" \\ \d') <= 3%", "slowdown", (("kernel", r"""it's "x" \ \d"""),), "<=", 0.03),
        ('slowdown(kernel="a=b,c)") <= 3%', "slowdown", (("kernel", "a=b,c)"),), "<=", 0.03),
        ("op_count(shapes=64×256 256×512) == 4", "op_count", (("shapes", "64x256 256x512"),), "==", 4),
        ("op_flops(op=aten::mm) == 524_288 FLOP", "op_flops", (("op", "aten::mm"),), "==", 524_288),
        ("slowdown(kernel=größe) <= 3%", "slowdown", (("kernel", "größe"),), "<=", 0.03),
    ],
)  # fmt: skip
def test_limits_read(text: str, metric: str, labels: tuple, operator: str, bound: float) -> None:
    read = limit(text)
    assert (read.metric, read.labels, read.operator) == (metric, labels, Operator(operator))
    assert read.bound == pytest.approx(bound, rel=1e-12)
    again = limit(explicit_selection(read, KINDS))
    assert (again.key, again.operator, again.bound, again.dimension) == (
        read.key,
        read.operator,
        read.bound,
        read.dimension,
    )


def test_a_limit_remembers_where_it_was_written() -> None:
    read = parse_limit("mfu >=  55%", kinds=KINDS, source="command line", place="cli", on=("H200*",))
    assert (read.text, read.source, read.on) == ("mfu >= 55%", "command line", ("H200*",))


def test_aliases_read_as_the_metric_itself() -> None:
    from dataclasses import replace

    kinds = {**KINDS, "duration": replace(KINDS["time"], aliases=("duration",))}
    assert parse_limit("duration <= 1us", kinds=kinds).metric == "time"


@pytest.mark.parametrize(
    ("text", "code", "message", "fix", "under"),
    [
        ("", "limit-syntax", "empty", "METRIC", ""),
        ("   ", "limit-syntax", "empty", "METRIC", " "),
        ("55% <= mfu", "limit-syntax", "does not start with a metric", "METRIC", "5"),
        ("mfuu >= 5%", "limit-unknown-metric", "'mfuu'", "'mfu'", "mfuu"),
        ("MFU >= 5%", "limit-unknown-metric", "'MFU'", "'mfu'", "MFU"),
        ("latency <= 5ms", "limit-unknown-metric", "'latency'", "did you mean 'time'?", "latency"),
        ("zzzzz >= 5%", "limit-unknown-metric", "'zzzzz'", "the metrics: ", "zzzzz"),
        ("mfu", "limit-syntax", "ends before it compares", "METRIC", ""),
        ("mfu 55%", "limit-syntax", "operator is expected, not '55%'", "METRIC", "5"),
        ("mfu is 55%", "limit-syntax", "operator is expected, not 'is'", "METRIC", "i"),
        ("mfu(case=a)  is 55%", "limit-syntax", "operator is expected, not 'is'", "METRIC", "i"),
        ("mfu = 55%", "limit-syntax", "'=' is not an operator", "<= or >=", "="),
        ("mfu => 55%", "limit-syntax", "'=>' is not an operator", ">=", "=>"),
        ("mfu =< 55%", "limit-syntax", "'=<' is not an operator", "<=", "=<"),
        ("mfu != 55%", "limit-syntax", "'!=' is not an operator", "<= or >=", "!="),
        ("mfu >= ", "limit-number", "the number is missing", "write a number", ""),
        ("mfu >= fast", "limit-number", "'fast' is not a number", "mfu >= 5%", "fast"),
        ("mfu >= nan", "limit-number", "'nan' is not a number", "write a number", "nan"),
        ("time <= 1e999us", "limit-number", "not a number that a metric can reach", "", "1e999"),
        ("time <= 5__0us", "limit-number", "not a number that a metric can reach", "", "5__0"),
        ("time <= 1,000us", "limit-number", "comma", "write time <= 1_000us or time <= 1.000us", ",000us"),
        ("slowdown <= 1,5%", "limit-number", "comma", "write slowdown <= 1.5%", ",5%"),
        ("slowdown <= 1,5 %", "limit-number", "comma", "write slowdown <= 1.5 %", ",5 %"),
        ("slowdown <= 1,5", "limit-number", "comma", "write slowdown <= 1.5%", ",5"),
        ("slowdown <= -1,5%", "limit-number", "comma", "write slowdown <= -1.5%", ",5%"),
        ("mfu >= 0,125", "limit-number", "comma", "write mfu >= 0.125", ",125"),
        ("time <= 1,250,000.5 us", "limit-number", "comma", "write time <= 1_250_000.5 us", ",250,000.5 us"),
        ("time <= 1,5,2us", "limit-number", "comma", "write 1000 or 1_000", ",5,2us"),
        ("time <= 1,us", "limit-number", "comma", "write 1000 or 1_000", ",us"),
        ("time <= -5us", "limit-number", "never negative", "", "-5us"),
        ("intensity >= -5", "limit-number", "never negative", "", "-5"),
        ("mfu >= 55", "limit-unit", "55 of what?", "mfu >= 55% (or mfu >= 0.55)", "55"),
        ("slowdown <= 3", "limit-unit", "3 of what?", "slowdown <= 3%", "3"),
        ("mfu(case=bwd) >= 1", "limit-unit", "1 of what?", "mfu(case=bwd) >= 1%", "1"),
        ("time <= 5", "limit-unit", "5 needs a unit", "time <= 5us or time <= 5ms", "5"),
        ("tflops >= 400", "limit-unit", "400 needs a unit", "tflops >= 400 TFLOPS", "400"),
        ("time <= 5 uss", "limit-unit", "unknown unit 'uss'", "'us'", "uss"),
        ("bandwidth >= 3 tb/s", "limit-unit", "unknown unit 'tb/s'", "'TB/s'", "tb/s"),
        ("time <= 5 parsecs", "limit-unit", "unknown unit 'parsecs'", "units that fit: ns, us", "parsecs"),
        ("time <= 5GB/s", "limit-unit", "'GB/s' measures a bandwidth, 'time' is a time", "units that fit: ns", "GB/s"),
        (
            "throughput >= 5 ktokens/s",
            "limit-unit",
            "k is no prefix of items",
            "write k/s, or tokens/s and",
            "ktokens/s",
        ),
        ("ncu(n) >= 5 ktokens/s", "limit-unit", "k is no prefix of items", "write k/s, or tokens/s and", "ktokens/s"),
        ("slowdown <= 1.03x", "limit-unit", "'x' measures a ratio", "1.03x is 3%", "x"),
        ("count(HMMA) >= 5%", "limit-unit", "'%' measures a fraction", "without a unit", "%"),
        ("count(HMMA) >= 5 qq", "limit-unit", "unknown unit 'qq'", "without a unit", "qq"),
        ("time <= 5us <= 8us", "limit-syntax", "compares once", "two limits", "us <= 8us"),
        ("time == 5us", "limit-direction", "never equals", "<= or >=", "=="),
        ("slowdown >= 3%", "limit-direction", "demand a regression", "slowdown <= -5%", ">="),
        ("slowdown <= -100%", "limit-number", "faster by all of its time, so", "", "<="),
        ("geomean(slowdown) < -120%", "limit-number", "faster by all of its time", "", "<"),
        ("time <= 0", "limit-number", "every call takes some time", "", "<="),
        ("time < 0 ms", "limit-number", "every call takes some time", "", "<"),
        ("geomean(slowdown) > 1%", "limit-direction", "demand a regression", "slowdown <=", ">"),
        ("mfu >= 120%", "limit-direction", "whole of a physical peak", "", ">="),
        ("mfu(cas=x) >= 5%", "limit-scope", "no scope 'cas'", "'case'", "cas"),
        ("count(opcod=HMMA) >= 1", "limit-scope", "no scope 'opcod'", "'opcode'", "opcod"),
        ("launch_gap(zzzz=1) <= 1us", "limit-scope", "no scope 'zzzz'", "scopes of launch_gap: case", "zzzz"),
        ("mfu(bwd) >= 5%", "limit-scope", "does not say which scope 'bwd' is", "mfu(case=bwd)", "bwd"),
        ("mfu(case=a, case=b) >= 5%", "limit-scope", "given twice", "one of them", " case=b"),
        ("mfu(case=) >= 5%", "limit-scope", "empty scope", "drop it", ""),
        ("mfu() >= 5%", "limit-scope", "empty scope", "", ""),
        ("count() >= 5", "limit-scope", "empty scope", "", ""),
        ('mfu(case="") >= 5%', "limit-scope", "empty scope", "", '""'),
        ("mfu(case=a >= 5%", "limit-syntax", "parenthesis is never closed", "close it", "("),
        ("mfu(case='a >= 5%", "limit-syntax", "quote is never closed", "closing '", "'"),
        ("mfu(case='a' b) >= 5%", "limit-syntax", "follows the closing quote", "quote the whole", " b"),
        ("time(q=fast) <= 1ms", "limit-scope", "'fast' is no part of the calls", "q=99%", "(q=fast)"),
        ("speedup >= 1.2x", "limit-scope", "faster than what?", "over=", "speedup"),
        ("metric <= 1", "limit-scope", "which name?", "metric(loss)", "metric"),
        ("metric(mfu) >= 1", "limit-scope", "perfgate's own", "write mfu alone", "metric"),
        ("geomean <= 1%", "limit-scope", "a mean of what?", "geomean(slowdown)", "geomean"),
        ("worst <= 1%", "limit-scope", "the worst of what?", "worst(cv)", "worst"),
        ("geomean(slodown) <= 1%", "limit-scope", "'slodown' is not a metric", "'slowdown'", "geomean"),
        ("geomean(geomean) <= 1%", "limit-scope", "not a metric", "", "geomean"),
        ("worst(change(mfu)) >= -1pp", "limit-scope", "not of its change", "change(mfu)", "worst"),
        ("change(registers <= 0", "limit-syntax", "one metric with its scope", "change(METRIC", "("),
        ("change(time) <= 3%", "limit-unknown-metric", "change of 'time'", "slowdown <= 3%", "time"),
        ("change(smem) <= 4 qq", "limit-unit", "'qq' is no unit", "change(smem) <= 4%", "4 qq"),
        ("change(smem) <= 4 ", "limit-unit", "needs a unit", "change(smem) <= 4%", "4"),
        ("change(smem) <= four", "limit-number", "'four' is not a number", "change(smem) <= 5%", "four"),
        ("change(overlap) <= 0", "limit-direction", "more overlap is better", "overlap) >= 0; to", "<="),
        ("change(overlap) <= 1pp", "limit-direction", "more overlap is better", "overlap) >= 5pp", "<="),
        ("change(smem) >= 5%", "limit-direction", "less smem is better", "smem) <= -5%", ">="),
        ("change <= 1%", "limit-syntax", "a change of what?", "change(METRIC[(SCOPE)])", "change"),
        ("change mfu >= -1pp", "limit-syntax", "a change of what?", "change(METRIC[(SCOPE)])", "change"),
        ("change(change(mfu)) >= -1pp", "limit-syntax", "a change of what?", "change(METRIC[(SCOPE)])", "change"),
    ],
)
def test_each_way_of_being_wrong_has_its_own_message(text: str, code: str, message: str, fix: str, under: str) -> None:
    with pytest.raises(PerfgateError) as caught:
        parse_limit(text, kinds=KINDS, place="test_x.py:3")
    error = caught.value
    assert error.code.name == code
    sentence, shown, marks = error.what.split("\n")
    assert message in sentence
    assert fix in error.fix
    assert error.place == "test_x.py:3"
    assert shown == f"    {text}"
    start = marks.index("^") - 4
    assert text[start : start + len(under)] == under
    assert marks.count("^") == max(1, len(under))


def test_a_control_character_cannot_move_the_caret() -> None:
    with pytest.raises(PerfgateError) as caught:
        limit("mfu\t>= x\x1b[0m")
    assert "\x1b" not in caught.value.what.replace("'x\x1b[0m'", "")


def test_every_unit_measures_one_thing_and_can_be_proposed() -> None:
    assert set(UNITS) == set(Dimension) - {Dimension.TEXT}
    assert set(UNITS) == set(USUAL)
    for dimension, table in UNITS.items():
        assert all(dimension_of(unit) is dimension for unit in table)
        assert set(USUAL[dimension]) <= set(table)
    assert all(UNITS[dimension][unit] == 1.0 for dimension, unit in CANONICAL.items() if unit)
    assert len(KNOWN) == sum(len(table) for table in UNITS.values())
    assert dimension_of("furlong") is None


@pytest.mark.parametrize(
    ("text", "fix"),
    [
        ("bandwidth >= 5", " 5 GB/s"),
        ("time <= 5", " 5us"),
        ("time <= 5 parsec", "units that fit: "),
        ("time <= 5 uss", "did you mean 'us'"),
        ("time <= 5 GBB", "units that fit: ns, us, ms, s"),
        ("ncu(x) <= 5 uss", "did you mean 'us'"),
        ("registers <= 128, registers >= 32", "write two limits"),
        ("registers <= 128,", "write 1000 or 1_000"),
        ("slowdown <= 5ms", "units that fit: %"),
        ("slowdown <= 1.03x", "a change is written in percent"),
    ],
)
def test_what_a_wrong_unit_is_told(text: str, fix: str) -> None:
    with pytest.raises(PerfgateError) as caught:
        limit(text)
    assert fix in caught.value.fix


@pytest.mark.parametrize(
    ("text", "fix"),
    [
        ("slowdown <= 0,03", "write slowdown <= 0.03"),
        ("slowdown <= -0,03", "write slowdown <= -0.03"),
        ("slowdown <= 3,5", "write slowdown <= 3.5%"),
        ("time <= 0,5", "write time <= 0.5ns or time <= 0.5us or time <= 0.5ms or time <= 0.5s"),
        ("slowdown <= 0,5%", "write slowdown <= 0.5%"),
    ],
)
def test_a_decimal_comma_below_one_is_a_fraction_and_above_it_a_percentage(text: str, fix: str) -> None:
    with pytest.raises(PerfgateError) as caught:
        limit(text)
    assert caught.value.fix == fix


@pytest.mark.parametrize(
    ("scope", "opcode"),
    [
        ("f(a,b)", "f(a,b)"),
        ("f(a,b),kernel=k", "f(a,b)"),
        ("f<a,b>[c,d],kernel=k", "f<a,b>[c,d]"),
        ("f((a,b),c),kernel=k", "f((a,b),c)"),
        ("x],kernel=k", "x]"),
        ("'a,b',kernel=k", "a,b"),
        ("  'a b'  ", "a b"),
    ],
)
def test_commas_inside_of_brackets_part_nothing(scope: str, opcode: str) -> None:
    assert dict(limit(f"count({scope}) >= 1").labels)["opcode"] == opcode


def test_a_wrong_scope_is_shown_where_it_stands() -> None:
    with pytest.raises(PerfgateError) as caught:
        limit("count(kernel=k,  opcod=HMMA) >= 1")
    _, shown, marks = caught.value.what.split("\n")
    assert shown[marks.index("^") : marks.rindex("^") + 1] == "opcod"


def test_units_in_examples_stand_apart_where_they_are_words() -> None:
    with pytest.raises(PerfgateError) as caught:
        limit("intensity >= x")
    assert "intensity >= 5 FLOP/B" in caught.value.fix
    with pytest.raises(PerfgateError) as caught:
        limit("time <= x")
    assert "time <= 5ns or" in caught.value.fix
    with pytest.raises(PerfgateError) as caught:
        limit("throughput >= x")
    assert "throughput >= 5/s or throughput >= 5 k/s" in caught.value.fix


def test_a_unit_of_something_else_names_the_metric_alone() -> None:
    with pytest.raises(PerfgateError) as caught:
        limit("time <= 5 GB")
    assert "'GB' measures a number of bytes, 'time' is a time" in caught.value.what


def test_all_of_a_peak_may_be_demanded_and_no_more() -> None:
    assert limit("mfu >= 100%").bound == 1.0
    with pytest.raises(PerfgateError, match="more than the whole of a physical peak"):
        limit("mfu >= 101%")


def test_limits_without_blanks_and_with_the_scope_that_goes_without_saying() -> None:
    parsed = limit("count(HMMA)>=1")
    assert parsed.labels == (("opcode", "HMMA"),)
    for text, caret in (("<= 5", "^"), ("time   ? 5", "       ^")):
        with pytest.raises(PerfgateError) as caught:
            limit(text)
        assert str(caught.value).splitlines()[2].partition("  [")[0] == f"    {caret}"


@pytest.mark.parametrize(
    ("text", "inside"),
    [
        *((f"time <= 1 {unit}", number) for unit, number in
          (("ns", 1.0), ("us", 1e3), ("µs", 1e3), ("μs", 1e3), ("ms", 1e6), ("s", 1e9), ("min", 60e9))),
        *((f"bandwidth >= 1 {prefix}B/s", 10.0**power) for prefix, power in
          (("", 0), ("k", 3), ("K", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15))),
        *((f"bandwidth >= 1 {prefix}B/s", 1024.0**power) for prefix, power in
          (("Ki", 1), ("Mi", 2), ("Gi", 3), ("Ti", 4))),
        ("tflops >= 1 TFLOP/s", 1e12),
        ("tflops >= 1 FLOPS", 1.0),
        ("slowdown <= 1%", 0.01),
        ("intensity >= 1 FLOP/B", 1.0),
    ],
)  # fmt: skip
def test_a_unit_is_what_it_is_everywhere(text: str, inside: float) -> None:
    assert limit(text).bound == inside


@pytest.mark.parametrize(
    ("text", "inside"),
    [
        ("1x", 1.0),
        ("1×", 1.0),
        ("1 °C", 1.0),
        ("1 C", 1.0),
        ("1 mW", 1e-3),
        ("1 W", 1.0),
        ("1 kW", 1e3),
        ("1 MHz", 1e6),
    ],
)
def test_a_counter_takes_every_unit(text: str, inside: float) -> None:
    assert limit(f"ncu(power) <= {text}").bound == inside


def test_bounds_that_something_may_keep_are_bounds() -> None:
    assert [limit(text).bound for text in ("mfu <= 120%", "count(HMMA) <= -5", "time >= 0")] == [1.2, -5, 0]


@pytest.mark.parametrize(
    ("text", "message", "never"),
    [
        ("count(HMMA) <= five", "count(HMMA) <= 5", "<= 5 or"),
        ("time <= 3x", "units that fit: ns", "percent"),
        ("time <= 1,000.5us", "1_000.5", "1.000.5"),
        ("time <= -5", "never negative", "unit"),
    ],
)
def test_a_fix_says_what_fits_and_no_more(text: str, message: str, never: str) -> None:
    with pytest.raises(PerfgateError) as caught:
        limit(text)
    assert message in str(caught.value)
    assert never not in str(caught.value)
    assert limit("count(HMMA) >= -5").bound == -5


def test_items_that_the_work_does_not_count_are_refused_when_that_is_known() -> None:
    """Until the call is measured nobody knows its unit; another one would be compared in silence."""
    for text in ("throughput >= 1000values/s", "throughput ≥ 1_000 values/s", "throughput >= 1 Mvalues/s"):
        check_items(limit(text), "values")
        with pytest.raises(PerfgateError, match="counts values, and work= counts tokens"):
            check_items(limit(text), "tokens")
    with pytest.raises(PerfgateError) as caught:
        check_items(limit("throughput >= 5 kitems/s"), "values")
    assert caught.value.fix.startswith("write k/s, or items/s")
    for text in ("throughput(case=fast) >= 2 values/s", "geomean(throughput) >= 2 values/s"):
        check_items(limit(text), "values")
        with pytest.raises(PerfgateError, match="counts values, and work= counts tokens"):
            check_items(limit(text), "tokens")
    check_items(limit("throughput >= 5 k/s"), "values")
    check_items(limit("time <= 5us"), "values")
    with pytest.raises(PerfgateError, match="unknown unit"):
        limit("time <= 5 values/s")


def test_a_figure_of_the_test_s_own_may_be_known_by_its_name() -> None:
    kinds = {**KINDS, "loss": own_kind("loss")}
    assert parse_limit("metric(loss) <= 0.1", kinds=kinds).metric == "loss"
    with pytest.raises(PerfgateError, match="needs a unit"):
        parse_limit("geomean(time) <= 5", kinds=kinds, own=str)


@pytest.mark.parametrize(("of", "proposed"), [("los", True), ("geomean", False)])
def test_for_an_unknown_metric_of_a_mean_a_figure_of_the_test_s_own_is_proposed(of: str, *, proposed: bool) -> None:
    with pytest.raises(PerfgateError) as caught:
        parse_limit(f"geomean({of}) <= 1", kinds=KINDS, own=lambda _: "loss")
    assert ("'loss'" in caught.value.fix) is proposed


@pytest.mark.parametrize(
    ("name", "in_test", "in_settings"),
    [
        ("mfuu", "did you mean 'mfu'?", "did you mean 'mfu'? A figure of your own is metric(mfuu)"),
        ("zzzzz", 'call perfgate.metric("zzzzz", value) in it; the metrics: ', "a figure of your own is metric(zzzzz); the metrics: "),
    ],
)  # fmt: skip
def test_an_unknown_metric_names_near_ones_and_how_a_figure_of_ones_own_is_named(name, in_test, in_settings) -> None:
    for own, fix in ((lambda name: False, in_test), (None, in_settings)):
        with pytest.raises(PerfgateError) as error:
            parse_limit(f"{name} <= 1", kinds=KINDS, **({} if own is None else {"own": own}))
        assert fix in error.value.fix
        assert ("figure" in error.value.fix) is (fix is not in_test or name == "zzzzz")


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("metric(lo*) <= 1", "a figure of which name?"),
        ("metric(los?) <= 1", "a figure of which name?"),
        ("metric(time) <= 1", "time is a metric of perfgate's own"),
        ("metric(name=time) <= 1", None),
        ("metric(loss) <= 1", None),
    ],
)
def test_a_figure_of_ones_own_has_one_name_of_its_own(text: str, what: str | None) -> None:
    if what is None:
        assert limit(text).bound == 1
        return
    with pytest.raises(PerfgateError) as error:
        limit(text)
    assert (error.value.code.name, what in error.value.what) == ("limit-scope", True)
