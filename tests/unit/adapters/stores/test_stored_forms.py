"""None"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pytest_perfgate.adapters.stores import baselines
from pytest_perfgate.adapters.stores.baselines import Baselines
from pytest_perfgate.adapters.stores.stored_forms import (
    CeilingStore,
    Environments,
    LazyLookup,
    Lookup,
    by_run,
    digest_of,
    entries_of,
    is_own,
    metrics_text,
    moment_at,
    parse_ceilings,
    parse_environment,
    parse_facts,
    parse_metrics,
    render_environment,
    words_of,
)
from pytest_perfgate.model.device import Ceilings
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.measurement import Baseline, Environment, HistoryEntry
from pytest_perfgate.model.plan import CaseKey
from pytest_perfgate.model.values import Better
from tests.histories import KEY, METRICS, entry

DEVICE, PATH = "NVIDIA-H200", "tests/test_k.py"
THEN = Environment(
    python="3.12.3", platform="Linux-6.8", packages=(("numpy", "2.0.1"),), facts=(("governor", "performance"),)
)
NOW = replace(THEN, python="3.13.0")


def line(test: str, around: Environment | None = THEN, time: float = 1e6) -> Baseline:
    return Baseline(key=CaseKey(nodeid=f"{PATH}::{test}"), device=DEVICE, time=time, surroundings=around)


def stored_environments(store: Baselines) -> list[str]:
    return sorted(p.stem for p in (store.path(DEVICE, PATH).parents[1] / "environments").glob("*.json"))


def test_it_reads_as_it_was_written_and_the_moment_is_left_out() -> None:
    loud = replace(THEN, facts=(*THEN.facts, ("load", "3.1")), commit="abc", dirty=True)
    assert parse_environment(render_environment(loud), "here") == THEN
    assert digest_of(loud) == digest_of(THEN) != digest_of(NOW)
    assert len(digest_of(THEN)) == 10


def test_only_what_perfgate_writes_below_the_baselines_is_its_own() -> None:
    text, name = render_environment(THEN), f"host/environments/{digest_of(THEN)}.json"
    assert is_own(name, text)
    assert is_own(name, text.replace("\n", "\r\n"))
    assert not is_own(name, text.replace("2.0.1", "2.0.2"))
    assert not is_own(name, text.replace("{\n", '{\n  "n": 3,\n', 1))
    assert not is_own(name, "3\n")
    assert not is_own(f"host/{digest_of(THEN)}.json", text)
    assert is_own("host/ceilings.json", '{"device": "host"}')
    assert not is_own("ceilings.json", '{"device": "host"}')
    assert not is_own("host/ceilings.json", "3\n")
    assert is_own("host/t.py.yaml", "perfgate: 1\nbaselines:\n  'test_a': {time: 1us}\n")
    assert not is_own("t.py.yaml", "perfgate: 1\nbaselines:\n")
    assert not is_own("host/t.py.yaml", "sizes: 3\n")


def test_lines_name_what_surrounded_them_and_share_one_file(store: Baselines) -> None:
    changed = store.write([line("test_a"), line("test_b")])
    assert [p.name for p in changed] == ["test_k.py.yaml", f"{digest_of(THEN)}.json"]
    assert f"environment: {digest_of(THEN)}" in changed[0].read_text()
    lines = store.read(DEVICE, PATH)
    assert {b.surroundings for b in lines.values()} == {THEN}
    assert {b.environment for b in store.read_all(DEVICE).values()} == {digest_of(THEN)}


def test_a_file_goes_with_the_last_line_that_names_it(store: Baselines) -> None:
    store.write([line("test_a"), line("test_b")])
    store.write([line("test_a", NOW)])
    assert stored_environments(store) == sorted([digest_of(THEN), digest_of(NOW)])
    store.write([line("test_b", NOW)])
    assert stored_environments(store) == [digest_of(NOW)]
    store.remove(DEVICE, [line("test_a").key, line("test_b").key])
    assert stored_environments(store) == []


def test_a_line_that_is_written_again_keeps_its_digest(store: Baselines) -> None:
    store.write([line("test_a")])
    (read,) = store.read(DEVICE, PATH).values()
    store.write([replace(read, time=2e6)])
    assert store.read(DEVICE, PATH)[f"{PATH}::test_a"].surroundings == THEN


def test_a_line_without_surroundings_has_none(store: Baselines) -> None:
    store.write([line("test_a", None)])
    (read,) = store.read(DEVICE, PATH).values()
    assert (read.environment, read.surroundings) == ("", None)
    assert not (store.path(DEVICE, PATH).parents[1] / "environments").exists()


def test_a_revision_is_asked_for_what_the_work_tree_has_swept_out(tmp_path: Path) -> None:
    store = Baselines(tmp_path, devices=("NVIDIA-*",))
    yaml, json = store.write([line("test_a")])
    old = {p.relative_to(tmp_path).as_posix(): p.read_text() for p in (yaml, json)}
    store.write([line("test_a", NOW)])
    assert stored_environments(store) == [digest_of(NOW)]
    then = Baselines(tmp_path, devices=("NVIDIA-*",), show=lambda revision, path: old.get(path))
    assert then.read(DEVICE, PATH, "abcdef")[f"{PATH}::test_a"].surroundings == THEN
    assert then.read(DEVICE, PATH)[f"{PATH}::test_a"].surroundings == NOW


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"python": "3"}', '{"facts": 1, "packages": {}, "python": "", "platform": ""}']
)
def test_what_is_no_environment_is_an_error_with_its_place(tmp_path: Path, text: str) -> None:
    around = Environments(tmp_path)
    around.path("abc").parent.mkdir()
    around.path("abc").write_text(text)
    with pytest.raises(PerfgateError) as caught:
        around.read("abc")
    assert caught.value.code.name == "baseline-unreadable"
    assert caught.value.place.endswith("abc.json")


def test_a_digest_is_never_a_path(tmp_path: Path) -> None:
    assert Environments(tmp_path).read("../../etc/passwd") is None
    assert Environments(tmp_path).read("") is None
    assert Environments(tmp_path).read("ffff") is None


def of_file(number: int, around: Environment, device: str = DEVICE) -> Baseline:
    return Baseline(key=CaseKey(nodeid=f"tests/test_{number}.py::test_a"), device=device, time=1e6, surroundings=around)


def test_many_files_of_a_device_are_swept_once(store: Baselines, monkeypatch: pytest.MonkeyPatch) -> None:
    swept: list[str] = []
    read_all = store.read_all
    monkeypatch.setattr(store, "read_all", lambda device: swept.append(device) or read_all(device))
    store.write([of_file(n, THEN, device) for n in range(5) for device in (DEVICE, "NVIDIA-A100")])
    assert swept == [DEVICE, "NVIDIA-A100"]
    store.write([of_file(n, NOW) for n in range(5)])
    assert stored_environments(store) == [digest_of(NOW)]
    del swept[:]
    store.remove(DEVICE, [of_file(n, NOW).key for n in range(5)])
    assert (swept, stored_environments(store)) == ([DEVICE], [])


@pytest.mark.parametrize("also_the_sweep", [False, True])
def test_a_write_that_fails_in_the_middle_leaves_what_lines_name(
    store: Baselines, monkeypatch: pytest.MonkeyPatch, *, also_the_sweep: bool
) -> None:
    store.write([of_file(n, THEN) for n in range(3)])
    write = baselines.write_atomically

    def failing(path: Path, data: bytes) -> None:
        if path.name == "test_1.py.yaml":
            raise PerfgateError("file-unwritable", "the disk is full", place=str(path))
        write(path, data)

    def stuck(*_: object) -> None:
        raise PermissionError("nobody may delete here")

    monkeypatch.setattr(baselines, "write_atomically", failing)
    if also_the_sweep:
        monkeypatch.setattr(Environments, "sweep", stuck)
    other = replace(NOW, python="3.14.0")
    with pytest.raises(PerfgateError, match="the disk is full"):
        store.write([of_file(0, NOW), of_file(1, other), of_file(2, other)])
    named = {stored.environment for stored in store.read_all(DEVICE).values()}
    assert named == {digest_of(THEN), digest_of(NOW)}
    assert set(stored_environments(store)) == named | ({digest_of(other)} if also_the_sweep else set())


FOUND = Ceilings(
    device="host-x", compute=(("fp32", 4.77e10),), bandwidth=3.67e9, cache_bytes=1e6, method="fastest sample on host",
    when="2026-01-02", facts=(("copy", "12 samples by host"),),
)  # fmt: skip


def test_what_was_written_is_read(tmp_path) -> None:
    store = CeilingStore(lambda device: tmp_path / device)
    assert store.read("host-x") is None
    path = store.write(FOUND)
    assert path.suffix != ".yaml"
    assert store.read("host-x") == FOUND


@pytest.mark.parametrize(
    "text",
    [
        "", "{", "[]", "{}", "[" * 10**6, '{"device": "x", "tflops": {"fp32": 0}}', '{"device": "x", "tflops": {"fp32": 1e308}}',
        '{"device": "x", "bandwidth_gbps": "4"}', '{"device": "x", "cache_bytes": -1}', f'{{"device": "x", "clock_mhz": 1{"0" * 400}}}',
    ],
)  # fmt: skip
def test_what_does_not_read_is_an_error_with_its_place(text: str) -> None:
    with pytest.raises(PerfgateError, match="ceilings-unreadable") as caught:
        parse_ceilings(text, place="ceilings.json")
    assert str(caught.value).startswith("ceilings.json")


KNOWN = Lookup(
    {1: ("r", "2026-06-01", "c0ffee", "main")}, {1: "usual", 2: "passed", 3: ""}, {3: (("driver", "580"),)}, {}
)
ROW = (1, 5.0, 3, 0.1, 1.5e9, 1, 2, 3, 3, 3)


def test_a_row_is_the_run_that_its_fields_would_make() -> None:
    (line,) = entries_of(list(zip(ROW)), "d", KEY, KNOWN)
    assert line == HistoryEntry(
        key=KEY, device="d", time=5.0, when="2026-06-01", commit="c0ffee", branch="main", processes=3, scatter=0.1,
        clock_hz=1.5e9, identity="usual", run="r", outcome="passed", facts=(("driver", "580"),),
    )  # fmt: skip
    assert entries_of([], "d", KEY, KNOWN) == []
    with pytest.raises(AttributeError):
        line.time = 6.0


@pytest.mark.parametrize(
    ("at", "cell"),
    [(1, "5"), (1, float("inf")), (1, 0.0), (1, -1.0), (2, None), (3, float("nan")), (4, "x"), (0, 9), (5, 9)],
)
def test_a_cell_that_nobody_wrote_is_refused(at: int, cell: object) -> None:
    with pytest.raises((ValueError, TypeError, KeyError)):
        entries_of(list(zip(ROW, (*ROW[:at], cell, *ROW[at + 1 :]))), "d", KEY, KNOWN)


def test_what_stands_under_a_number_is_read_once() -> None:
    numbers: list[int] = []
    looked = LazyLookup(lambda number: numbers.append(number) or number * 2)
    assert [looked[2], looked[2], looked[3]] == [4, 4, 6]
    assert numbers == [2, 3]


@pytest.mark.parametrize(
    ("moment", "seconds"),
    [("2026-06-01T00:00:00+00:00", 1780272000), ("2026-06-01T00:00:00Z", 1780272000), ("2026-06-01", 1780272000),
     ("2026-06-01T02:00:00+02:00", 1780272000), ("", 0), ("yesterday", 0)],
)  # fmt: skip
def test_runs_are_put_in_order_by_their_moment(moment: str, seconds: float) -> None:
    assert moment_at(moment) == seconds


def test_figures_and_facts_come_back_as_they_were() -> None:
    own = tuple(replace(metric, better=Better.HIGHER) for metric in METRICS)
    assert parse_metrics(metrics_text((*METRICS, *own))) == (*METRICS, *own)
    facts = (("driver", "580"), ("µ", '"'))
    assert parse_facts(words_of(entry(1.0, facts=facts))[4]) == facts
    assert parse_facts(words_of(entry(1.0))[4]) == ()


@pytest.mark.parametrize(
    "text", ["{", "[[1]]", '[["mfu", "x", "fraction", {}]]', '[["mfu", 1, "none", {}]]', '[["t", 1, "time", {}, 2]]']
)
def test_figures_that_nobody_wrote_are_refused(text: str) -> None:
    with pytest.raises((ValueError, TypeError, LookupError)):
        parse_metrics(text)


@pytest.mark.parametrize("text", ["0", "[]", '"x"', "{", "null"])
def test_facts_that_nobody_wrote_are_refused(text: str) -> None:
    with pytest.raises((ValueError, TypeError)):
        parse_facts(text)
    with pytest.raises((ValueError, TypeError)):
        parse_metrics(f'[["mfu", 1, "fraction", {text}]]')


def test_runs_stand_by_their_run() -> None:
    mixed = [entry(1.0, run="b"), entry(2.0, run=""), entry(3.0, run="b")]
    assert {run: [s.time for s in some] for run, some in by_run(mixed)} == {
        "b": [1.0, 3.0], "2026-06-01T00:00:02+00:00 c0ffee": [2.0],
    }  # fmt: skip
