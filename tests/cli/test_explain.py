"""`perfgate explain` knows every code, outcome, term, metric, setting, command and view, and says what to do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_perfgate.cli.explain import TERMS, explain
from pytest_perfgate.core.judge.policy import ADVICE, FIELDS, LABELS, UNJUDGED
from pytest_perfgate.core.limits.grammar import parse_limit
from pytest_perfgate.core.metric_kinds import BUILT_IN, EXAMPLES, by_name
from pytest_perfgate.model.errors import PerfgateError, codes
from pytest_perfgate.model.plan import Outcome
from pytest_perfgate.model.project import KEYS, POLICY_KEYS
from pytest_perfgate.plugin.options import OPTIONS
from tests.cli.conftest import Place

KNOWN = [
    *codes(),
    *(outcome.name for outcome in Outcome),
    *UNJUDGED,
    *LABELS,
    *FIELDS,
    *(name for term in TERMS for name in (term.name, *term.also)),
    *(name for kind in BUILT_IN for name in (kind.name, *kind.aliases)),
    *(key.name for key in (*KEYS, *POLICY_KEYS)),
    *(option.name for option in OPTIONS),
]


@pytest.mark.parametrize("word", KNOWN)
def test_every_word_is_explained(word: str) -> None:
    for section in explain(word).blocks:
        *texts, more = [paragraph.text for paragraph in section.blocks]
        assert texts
        assert all(len(text) > 5 for text in texts)
        assert more.startswith(("More: docs/", "More: perfgate "))


def test_a_wheel_has_no_pages_to_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("pytest_perfgate.cli.explain._CHECKOUT", tmp_path)
    texts = [paragraph.text for section in explain("limit-syntax").blocks for paragraph in section.blocks]
    assert texts[-1].startswith("Exit code")
    assert "More: perfgate report --help" in str(explain("report"))


@pytest.mark.parametrize("word", ["rounds", "processes", "Baselines"])
def test_a_term_is_explained_by_its_plural(place: Place, word: str) -> None:
    assert "Term: " in place.perfgate("explain", word).out


def test_every_outcome_has_advice() -> None:
    assert set(ADVICE) == set(Outcome)


@pytest.mark.parametrize("spelling", ["[limit-syntax]", "LIMIT-SYNTAX", "`limit-syntax`"])
def test_a_code_is_found_as_it_was_copied(place: Place, spelling: str) -> None:
    done = place.perfgate("explain", spelling)
    assert done.code == 0
    assert codes()["limit-syntax"].title in done.out
    assert f"Next: {codes()['limit-syntax'].fix}" in done.out


def test_an_outcome_says_what_the_policy_does(place: Place) -> None:
    out = place.perfgate("explain", "not_measured").out
    assert "passes" not in out
    assert "warns locally and fails in CI" in out
    assert "unmeasured=warn" in out
    assert place.perfgate("explain", "not", "measured").out.splitlines()[2:] == out.splitlines()[2:]


@pytest.mark.parametrize(("word", "count"), [("UNDECIDED", 0), ("SUSPECT", 0), ("not measured", 1)])
def test_the_values_of_a_policy_are_listed_once(place: Place, word: str, count: int) -> None:
    done = place.perfgate("explain", word)
    assert done.out.count("Another policy: ") == count
    assert done.out.count("Values: ") == 1 - count


@pytest.mark.parametrize("word", ["own_gate", "policy.own_gate"])
def test_a_policy_is_explained_as_a_block_names_it(place: Place, word: str) -> None:
    out = place.perfgate("explain", word).out
    assert "Decides about: in CI, the change edits limits" in out
    assert "Values: warn, fail." in out
    assert "Default: warn, in CI warn." in out


@pytest.mark.parametrize("word", ["--perfgate-budget", "--perfgate-budget=5min", "perfgate-budget"])
def test_an_option_of_pytest_is_explained_as_it_was_typed(place: Place, word: str) -> None:
    done = place.perfgate("explain", word)
    assert done.code == 0
    assert "Longest time for measuring in the whole run" in done.out
    assert "by default no end, in CI 10 min." in done.out


def test_a_metric_of_a_plugin_is_explained(place: Place, tmp_path, monkeypatch) -> None:
    source = """
from pytest_perfgate.model import Better, Dimension, MetricKind
def pytest_perfgate_metrics():
    return [MetricKind(name="atomics", dimension=Dimension.COUNT, better=Better.LOWER, doc="atomic operations")]
"""
    (tmp_path / "explained_plugin.py").write_text(source)
    settings = tmp_path / "pyproject.toml"
    settings.write_text('[tool.perfgate]\nplugins = ["explained_plugin"]\n')
    monkeypatch.syspath_prepend(tmp_path)
    assert "Atomic operations. Lower is better." in place.perfgate("explain", "atomics").out


def test_a_project_that_cannot_be_loaded_is_named_only_where_nothing_else_answers(place: Place, tmp_path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.perfgate]\nbuget = 3\n")
    assert "l2_hit" in place.perfgate("explain", "L2", "hit", "rate").out
    error = place.perfgate("explain", "atomiks").err
    assert "metrics of plugins were not read: 'buget' is not a setting  [explain-unknown]" in error


def test_a_word_of_two_kinds_has_both(place: Place) -> None:
    out = place.perfgate("explain", "mfu").out
    assert "Term: MFU" in out
    assert "Metric: mfu" in out
    assert "It comes from: a timed call or files (perfgate check, perfgate compare)." in " ".join(out.split())


def test_a_command_that_is_a_view_too_has_both(place: Place) -> None:
    output = place.perfgate("explain", "report").out
    assert "More: perfgate report --help" in output
    assert "More: perfgate inspect FILE --view report" in output


def fault_of(text: str) -> str:
    try:
        parse_limit(text, kinds=by_name())
    except PerfgateError as fault:
        return fault.code.name
    return ""


def test_a_metric_that_has_to_name_a_scope_has_a_limit_as_an_example(place: Place) -> None:
    assert "As a limit: speedup(over=eager) >= 1.2x" in place.perfgate("explain", "speedup").out
    assert [fault_of(text) for text in EXAMPLES.values()] == [""] * len(EXAMPLES)
    assert all(text.startswith(f"{name}(") for name, text in EXAMPLES.items())
    assert {name for name in by_name() if fault_of(f"{name} <= 1") == "limit-scope"} <= {*EXAMPLES}


def test_an_unknown_word_is_an_error_with_the_nearest(place: Place) -> None:
    done = place.perfgate("explain", "undecidet")
    assert done.code == 2
    assert "did you mean 'undecided'?" in done.err
    with pytest.raises(PerfgateError) as caught:
        explain("zzzzz")
    assert caught.value.fix == codes()["explain-unknown"].fix


def test_without_a_word_everything_is_listed(place: Place) -> None:
    done = place.perfgate("explain")
    assert done.code == 0
    assert all(code in done.out for code in codes())


def test_it_speaks_json(place: Place) -> None:
    document = json.loads(place.perfgate("explain", "merge base", "--json").out)
    assert document["blocks"][0]["title"] == "Term: merge base"


def test_a_gate_is_explained_and_a_far_word_is_not_guessed() -> None:
    assert "A condition that a case must keep" in explain("gate").blocks[0].blocks[0].text
    with pytest.raises(PerfgateError) as caught:
        explain("pitest")
    assert "op_bytes" not in caught.value.fix


SPOKEN = {
    "kernel time": "Metric: kernel_time",
    "exposed communication": "exposed_comm",
    "L2 hit rate": "l2_hit",
    "tensor core": "tc_util",
    "spilling": "spills",
    "straddler": "straddling",
    "ridge point": "intensity",
    "cp.async": "compute_load_ratio",
    "latency": "class",
    "flash attention": "findings (view)",
    "LDGSTS": "Software pipelining with cp.async",
    "imma_stall": "imma_stall >= 4",
    "CUDA graph": "Fewer, longer launches",
    "tokens": "throughput",
    "pp_p2p": "streams",
    "replay artifact": "replay",
    "call stack": "stack",
    "devlog": "More: perfgate devlog --help",
    "annotation": "Term: capture",
    "event": "Term: capture",
    "contract": "More: perfgate inspect FILE --view contract",
    "locked clocks": "clocks",
    "sittings": "scatter",
    "blind": "Term: can detect",
    "tool.perfgate.timer": "Setting of [tool.perfgate]",
    "[tool.perfgate.policy.missing]": "Setting of [tool.perfgate.policy]",
    "on": "Setting of [[tool.perfgate.tests]]",
    "perfgate accept": "More: perfgate accept --help",
}


@pytest.mark.parametrize("word", SPOKEN)
def test_a_word_that_has_another_name_here_leads_to_it(place: Place, word: str) -> None:
    done = place.perfgate("explain", word)
    assert done.code == 0
    assert SPOKEN[word] in " ".join(done.out.split())


def test_words_of_which_one_stands_nowhere_are_not_guessed() -> None:
    with pytest.raises(PerfgateError) as error:
        explain("bank conflicts")
    assert error.value.code.name == "explain-unknown"
