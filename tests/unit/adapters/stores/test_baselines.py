"""Tests of adapters/stores/baselines."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from pytest_perfgate.adapters.stores import baseline_text
from pytest_perfgate.adapters.stores.baselines import Baselines
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.measurement import Baseline, Environment, Identity
from pytest_perfgate.model.metric import Figure
from pytest_perfgate.model.plan import CaseKey
from pytest_perfgate.model.values import Dimension

DEVICE = "NVIDIA-H200"
HEAD = "perfgate: 1\nbaselines:\n"


def accepted(test: str, time: float = 412310.0, **fields) -> Baseline:
    return Baseline(key=CaseKey(nodeid=f"tests/test_k.py::{test}"), device=DEVICE, time=time, **fields)


def complaint(store: Baselines, file: Path, text: str | bytes) -> PerfgateError:
    data = text.encode() if isinstance(text, str) else text
    file.write_bytes(data)
    with pytest.raises(PerfgateError) as caught:
        store.read(DEVICE, "tests/test_k.py")
    with pytest.raises(PerfgateError) as refused:
        store.write([accepted("test_new")])
    assert refused.value.code is caught.value.code
    assert file.read_bytes() == data, "nothing is lost"
    return caught.value


def test_a_line_reads_as_people_write(store: Baselines, tmp_path: Path) -> None:
    full = accepted(
        "test_gemm[4096-bf16]",
        scatter=0.0041,
        runs=3,
        commit="a1b2c3d",
        who="A. Founder",
        when="2026-05-02",
        why="TMA loads",
        identity=Identity(device=DEVICE, clocks="lock", notes=(("config", "128x64"),)),
    )
    (path,) = store.write([full, accepted("test_a", 1.5e9)])
    assert path == tmp_path / "baselines" / DEVICE / "tests" / "test_k.py.yaml"
    assert path.read_text().split("\n", 1)[1] == (
        HEAD + "  'test_a': {time: 1.5000s}\n"
        "  'test_gemm[4096-bf16]': {time: 412.31us, scatter: 0.410%, runs: 3, commit: a1b2c3d, "
        'who: "A. Founder", when: 2026-05-02, why: "TMA loads", '
        'identity: {clocks: lock, notes: {"config": "128x64"}}}\n'
    )
    read = store.read(DEVICE, "tests/test_k.py")["tests/test_k.py::test_gemm[4096-bf16]"]
    assert replace(read, place="") == replace(full, place="", time=read.time, scatter=read.scatter)
    assert (read.time, read.scatter) == pytest.approx((412310.0, 0.0041))
    assert read.place.endswith("test_k.py.yaml: baselines.'test_gemm[4096-bf16]'")


def test_a_line_that_saw_nothing_says_no_more_than_that(store: Baselines) -> None:
    store.write([accepted("test_a", detects=1_589_819.66)])
    text = store.path(DEVICE, "tests/test_k.py").read_text()
    assert "detects: 10000%" in text
    assert store.read(DEVICE, "tests/test_k.py")["tests/test_k.py::test_a"].detects == 100.0


def test_what_would_not_read_back_is_not_written(store: Baselines, monkeypatch: pytest.MonkeyPatch) -> None:
    (path,) = store.write([accepted("test_a", why="a byte \udcf6 that was no text")])
    assert store.read(DEVICE, "tests/test_k.py")["tests/test_k.py::test_a"].why == "a byte \ufffd that was no text"
    before = path.read_bytes()
    elsewhere = replace(accepted("x"), key=CaseKey(nodeid="tests/test_before.py::test_x"))
    with pytest.raises(PerfgateError, match="half a character"):
        store.write([elsewhere, accepted("test_\udc80")])
    monkeypatch.setattr(baseline_text, "render_line", lambda *_: '  "\\udcf6": {time: 1us}')
    with pytest.raises(PerfgateError, match="invalid Unicode"):
        store.write([elsewhere, accepted("test_b")])
    monkeypatch.setattr(baseline_text, "render_line", lambda *_: "  'another': {time: 1us}")
    with pytest.raises(PerfgateError, match="does not read back"):
        store.write([accepted("test_a")])
    assert path.read_bytes() == before
    assert not store.path(DEVICE, "tests/test_before.py").exists(), "none of several is written"


def test_a_pipe_in_the_place_of_a_file_is_an_error(store: Baselines) -> None:
    path = store.path(DEVICE, "tests/test_k.py")
    path.parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(path)
    with pytest.raises(PerfgateError) as error:
        store.read(DEVICE, "tests/test_k.py")
    assert error.value.code.name == "baseline-unreadable"


def test_other_devices_stay_in_this_checkout(store: Baselines, tmp_path: Path) -> None:
    (path,) = store.write([replace(accepted("test_a"), device="host-laptop")])
    assert path.is_relative_to(tmp_path / ".perfgate" / "baselines" / "host-laptop")
    assert store.read_all("host-laptop")["tests/test_k.py::test_a"].local
    assert store.devices() == ("host-laptop",)


@pytest.mark.parametrize(
    ("line", "code", "place"),
    [
        ("'t[4096]': {time: 412.31}", "baseline-value", "baselines.'t[4096]'.time"),
        ("'t[4096]': {time: fast}", "baseline-value", "baselines.'t[4096]'.time"),
        ("'t': {time: 0us}", "baseline-value", "baselines.'t'.time"),
        ("'t': {time: 1e14s}", "baseline-value", "baselines.'t'.time"),
        ("'t': {time: .nan}", "baseline-value", "baselines.'t'.time"),
        ("'t': {time: [1us]}", "baseline-value", "baselines.'t'.time"),
        ("'t': 412us", "baseline-value", "baselines.'t'"),
        ("'t': {scatter: 1%}", "baseline-value", "baselines.'t'"),
        ("'t': {time: 1us, scatter: 0.1}", "baseline-value", "baselines.'t'.scatter"),
        ("'t': {time: 1us, runs: 0}", "baseline-value", "baselines.'t'.runs"),
        ("'t': {time: 1us, when: yesterday}", "baseline-value", "baselines.'t'.when"),
        ("'t': {time: 1us, when: 2026-13-45}", "baseline-value", "baselines.'t'.when"),
        ("'t': {time: 1us, expires: 2026-02-30}", "baseline-value", "baselines.'t'.expires"),
        ("'t': {time: 1us, identity: &a {clocks: base, notes: *a}}", "baseline-unreadable", "identity.notes"),
        ("'t': {time: 1us, identity: {timer: &a [x, x], notes: [*a, *a]}}", "baseline-unreadable", "identity.notes"),
        ("'t': {time: 1us, identity: {clock: x}}", "baseline-value", "baselines.'t'.identity"),
        ("'t': {time: 1us}\n  't': {time: 2us}", "baseline-duplicate", "baselines"),
        ("'t': {time: 1us, time: 2us}", "baseline-duplicate", "baselines.'t'"),
        ("'t': {time: 1us", "baseline-unreadable", "test_k.py.yaml"),
        ("'t': {time: 1us}\n<<<<<<< HEAD\n  'u': {time: 1us}\n", "baseline-conflict", "test_k.py.yaml"),
        ("'t': {time: 1us}\n=======\n", "baseline-conflict", "test_k.py.yaml"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_with_its_path(store: Baselines, file: Path, line: str, code: str, place: str) -> None:
    error = complaint(store, file, f"{HEAD}  {line}\n")
    assert error.code.name == code
    assert error.place.endswith(place)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "baseline-unreadable"),
        ("\n\n", "baseline-unreadable"),
        ("baselines:\n  't': {time: 1us}\n", "baseline-unreadable"),
        ("perfgate: 2\nbaselines:\n", "baseline-version"),
        ("perfgate: one\nbaselines:\n", "baseline-unreadable"),
        ("perfgate: 1\n", "baseline-unreadable"),
        ("perfgate: 1\nbaselines: [1]\n", "baseline-unreadable"),
        ("perfgate: 1\nbaselines:\nextra: 1\n", "baseline-unreadable"),
        ("- 1\n", "baseline-unreadable"),
        (b"\xff\xfe\x00", "baseline-unreadable"),
        (b"perfgate: 1\nbaselines:\n  't': {time: 1us, why: \"\x00\"}\n", "baseline-unreadable"),
    ],
)
def test_files_that_are_none_of_ours(store: Baselines, file: Path, text: str | bytes, code: str) -> None:
    assert complaint(store, file, text).code.name == code


@pytest.mark.parametrize(
    ("field", "fix"),
    [
        ('whoo: "A"', "did you mean who?"),
        ("whoo: 3", "did you mean who?"),
        ("detetcs: 10%", "did you mean detects?"),
        ("heat: warm", "delete it"),
        ("a: {b: [c]}", "delete it"),
    ],
)
def test_a_field_that_is_not_ours_stops_the_run(store: Baselines, file: Path, field: str, fix: str) -> None:
    """Nothing would be held against it, and a test would pass without a word of it."""
    error = complaint(store, file, f"perfgate: 1\nbaselines:\n  'test_a': {{time: 1us, {field}}}\n")
    assert error.code.name == "baseline-value"
    assert error.fix.startswith(fix)


@pytest.mark.parametrize("name", ["whoo", "tim", "bling", "comit", "when", "heat"])
def test_a_figure_whose_name_resembles_a_field_reads_back(store: Baselines, file: Path, name: str) -> None:
    """A test's own figure and a plugin's may have such a name; brackets tell it from a misspelt field."""
    line = replace(accepted("test_a"), figures=(Figure(name=name, value=3.0, dimension=Dimension.COUNT),))
    store.write([line])
    assert (f"{name}: 3" in file.read_text()) is (name == "heat")
    (read,) = store.read(DEVICE, "tests/test_k.py").values()
    assert read.figures == line.figures
    if name != "heat":
        assert complaint(store, file, file.read_text().replace(f"{name}()", name)).code.name == "baseline-value"


def test_every_truncation_is_an_error_or_a_whole_prefix(store: Baselines, file: Path) -> None:
    store.write([accepted(f"test_{n}", why="x", identity=Identity(device=DEVICE)) for n in range(3)])
    whole = file.read_bytes()
    complete = store.read(DEVICE, "tests/test_k.py")
    for cut in range(len(whole)):
        file.write_bytes(whole[:cut])
        try:
            read = store.read(DEVICE, "tests/test_k.py")
        except PerfgateError:
            continue
        assert all(complete[key] == baseline for key, baseline in read.items())


def test_an_edit_touches_its_own_line(store: Baselines, file: Path) -> None:
    file.write_text(
        "# ours\nperfgate: 1\nbaselines:\n  # the slow one\n  'b': {time: 2us}\n"
        "  'd':\n    time: 4us\n    why: |\n      two\n      lines\n  # about e\n  'e': {time: 5us}  # fast\n"
    )
    store.write([accepted("a", 1e3), accepted("c", 3e3), accepted("d", 8e3)])
    assert file.read_text() == (
        "# ours\nperfgate: 1\nbaselines:\n  'a': {time: 1.0000us}\n  # the slow one\n"
        "  'b': {time: 2us}\n  'c': {time: 3.0000us}\n  'd': {time: 8.0000us}\n"
        "  # about e\n  'e': {time: 5us}  # fast\n"
    )
    store.write([accepted("b", 9e3)])
    assert "  'b': {time: 9.0000us}\n" in file.read_text()
    store.remove(DEVICE, [CaseKey(nodeid=f"tests/test_k.py::{name}") for name in "ad"])
    assert set(store.read_all(DEVICE)) == {f"tests/test_k.py::{name}" for name in "bce"}


@pytest.mark.parametrize(
    "text",
    [
        "perfgate: 1\nbaselines: {a: {time: 1us}, c: {time: 3us}}\n",
        "perfgate: 1\nbaselines:\n    a: {time: 1us}\n    c: {time: 3us}\n",
        "perfgate: 1\nbaselines: {}\n",
        "perfgate: 1\nbaselines:\n",
    ],
)
def test_a_file_of_another_form_is_kept_in_meaning(store: Baselines, file: Path, text: str) -> None:
    file.write_text(text)
    before = store.read_all(DEVICE)
    store.write([accepted("b", 2e3)])
    after = {key: b.time for key, b in store.read_all(DEVICE).items()}
    assert after == {**{key: b.time for key, b in before.items()}, "tests/test_k.py::b": 2e3}


def test_the_last_case_takes_its_file_along(store: Baselines, file: Path) -> None:
    store.write([accepted("a")])
    store.remove(DEVICE, [CaseKey(nodeid="tests/test_k.py::a")])
    assert not file.exists()


def _many(root: Path, writer: int) -> None:
    store = Baselines(root, devices=("*",))
    for n in range(15):
        store.write([accepted(f"test_{writer}[{n}]")])


def test_writers_do_not_lose_each_others_lines(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
    writers = [context.Process(target=_many, args=(tmp_path, n)) for n in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert len(Baselines(tmp_path, devices=("*",)).read_all(DEVICE)) == 60


def test_a_crash_leaves_the_old_file(store: Baselines, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store.write([accepted("a")])
    old = file.read_bytes()
    monkeypatch.setattr(os, "fsync", lambda handle: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        store.write([accepted("b")])
    assert file.read_bytes() == old
    assert [p.name for p in file.parent.iterdir()] == [file.name]


@pytest.mark.parametrize("device", ["", "../x", ".hidden", "a/b"])
def test_a_device_names_one_folder(store: Baselines, device: str) -> None:
    with pytest.raises(PerfgateError, match="baseline-path"):
        store.read(device, "tests/test_k.py")


def test_a_test_outside_the_root_stays_inside_the_folder(store: Baselines, tmp_path: Path) -> None:
    key = CaseKey(nodeid="../other/test_k.py::a")
    (path,) = store.write([replace(accepted("a"), key=key)])
    assert path.is_relative_to(tmp_path / "baselines")
    assert list(store.read_all(DEVICE)) == ["../other/test_k.py::a"]


def test_the_copy_of_a_revision(tmp_path: Path) -> None:
    from pytest_perfgate.adapters.stores.repository import GitRepository

    def git(*words: str) -> None:
        subprocess.run(["git", "-c", "user.name=A", "-c", "user.email=a@b.invalid", *words], cwd=tmp_path, check=True)

    store = Baselines(tmp_path, devices=("*",), show=GitRepository(tmp_path).show)
    git("init", "-q")
    store.write([accepted("a", 1e3)])
    git("add", "baselines")
    git("commit", "-qm", "one")
    store.write([accepted("a", 2e3)])
    key = "tests/test_k.py::a"
    assert store.read(DEVICE, "tests/test_k.py", "HEAD")[key].time == 1e3
    assert store.read(DEVICE, "tests/test_k.py")[key].time == 2e3
    assert store.read(DEVICE, "tests/test_new.py", "HEAD") == {}
    with pytest.raises(PerfgateError, match="repository-missing"):
        store.read(DEVICE, "tests/test_k.py", "nowhere")


def test_a_day_that_no_calendar_has_is_no_end() -> None:
    from pytest_perfgate.adapters.stores.baseline_line import parse_fields

    with pytest.raises(PerfgateError, match="expected a day of the calendar, found 2026-13-41") as raised:
        parse_fields({"time": "1us", "expires": "2026-13-41"}, "baselines.'test_a'", "gpu")
    assert raised.value.place == "baselines.'test_a'.expires"


def test_a_checkout_with_windows_lines_keeps_them(store: Baselines, file: Path) -> None:
    store.write([accepted("test_a"), accepted("test_b")])
    file.write_bytes(file.read_bytes().replace(b"\n", b"\r\n"))
    before = file.read_bytes()
    assert store.write([accepted("test_a")]) == ()
    assert file.read_bytes() == before, "nothing moved, nothing is written"
    store.write([accepted("test_c")])
    assert file.read_bytes().count(b"\r\n") == file.read_bytes().count(b"\n") == before.count(b"\n") + 1


def test_a_file_that_does_not_read_is_named_in_what_fixes_it(store: Baselines, file: Path, tmp_path: Path) -> None:
    wrong = complaint(store, file, f"{HEAD}  test_a: {{time: fast}}\n")
    assert wrong.fix.endswith(f"git checkout -- baselines/{DEVICE}/tests/test_k.py.yaml")
    assert complaint(store, file, b"\xff").place == f"baselines/{DEVICE}/tests/test_k.py.yaml"
    local = store.path("laptop", "tests/test_k.py")
    local.parent.mkdir(parents=True)
    local.write_text("perfgate: 1\n", encoding="utf-8")
    with pytest.raises(PerfgateError) as caught:
        store.read("laptop", "tests/test_k.py")
    assert caught.value.fix.endswith("rm .perfgate/baselines/laptop/tests/test_k.py.yaml"), "git does not have it"


def test_a_folder_outside_of_the_root_is_shown_whole(tmp_path: Path) -> None:
    root, folder = tmp_path / "project", tmp_path / "kept"
    root.mkdir()
    store = Baselines(root, devices=("NVIDIA-*",), folder=str(folder))
    (file,) = store.write([accepted("test_a")])
    assert file == folder / DEVICE / "tests" / "test_k.py.yaml"
    (line,) = store.read(DEVICE, "tests/test_k.py").values()
    assert line.place == f"{file}: baselines.'test_a'"
    file.write_text("half", encoding="utf-8")
    with pytest.raises(PerfgateError) as caught:
        store.read(DEVICE, "tests/test_k.py")
    assert str(file) in caught.value.place


LONG_FIELDS = (
    {"why": "as it is"},
    {"processes": 3},
    {"identity": Identity(device=DEVICE, notes=(("k" * 3000, "v" * 3000),))},
)


@pytest.mark.parametrize(
    ("length", "fields"),
    [
        *((length, fields) for length in (900, 1020, 1024, 1100, 5000) for fields in LONG_FIELDS),
        (40000, LONG_FIELDS[0]),
    ],
)
def test_an_id_of_any_length_is_written_and_read(store: Baselines, file: Path, length: int, fields) -> None:
    long = [accepted(f"test_k[{letter * length}]", **fields) for letter in ("a", "it's ", "ü\\\x85")]
    short = accepted("test_b", why="short")
    later = accepted("test_z", processes=2)
    store.write([short, *long, later])
    lines = store.read(DEVICE, "tests/test_k.py")
    assert [(line.key, line.identity, line.time) for line in lines.values()] == [
        (line.key, line.identity, line.time) for line in sorted([short, *long, later], key=lambda line: line.key.test)
    ]
    faster = replace(long[0], time=1000.0)
    store.write([faster])
    assert store.read(DEVICE, "tests/test_k.py")[str(faster.key)].time == 1000.0
    store.remove(DEVICE, [line.key for line in long])
    assert set(store.read(DEVICE, "tests/test_k.py")) == {str(short.key), str(later.key)}
    assert all(len(line) < 900 for line in file.read_text(encoding="utf-8").splitlines()), "nothing is left of them"
    store.write(long)
    assert len(yaml.safe_load(file.read_text(encoding="utf-8"))["baselines"]) == 5, "anybody's YAML reads it"


def test_a_hidden_folder_is_no_device(store: Baselines, file: Path) -> None:
    store.write([accepted("test_a")])
    (file.parents[2] / ".ipynb_checkpoints").mkdir()
    assert store.devices() == (DEVICE,)


def test_the_environment_that_is_damaged_is_the_one_to_restore(store: Baselines, file: Path, tmp_path: Path) -> None:
    store.write([accepted("test_a", surroundings=Environment(python="3.11"))])
    (damaged,) = (file.parents[1] / "environments").glob("*.json")
    damaged.write_text("{")
    with pytest.raises(PerfgateError) as error:
        store.read(DEVICE, "tests/test_k.py")
    named = damaged.relative_to(tmp_path).as_posix()
    assert (error.value.place, error.value.fix.rpartition(" -- ")[2]) == (named, named)


@pytest.mark.parametrize(
    ("text", "code", "edited"),
    [
        ("<<<<<<< ours\n", "baseline-conflict", False),
        (HEAD + "  'test_a': {time: fast}\n", "baseline-value", False),
        ("perfgate: 9\nbaselines:\n", "baseline-version", True),
    ],
)
def test_nobody_is_told_to_edit_a_file_of_a_commit(tmp_path: Path, text: str, code: str, *, edited: bool) -> None:
    store = Baselines(tmp_path, devices=(DEVICE,), show=lambda revision, path: text)
    with pytest.raises(PerfgateError) as error:
        store.read(DEVICE, "tests/test_k.py", "c0ffee")
    assert error.value.code.name == code
    assert "FILE" not in error.value.fix
    assert (error.value.fix == error.value.code.fix) is edited
