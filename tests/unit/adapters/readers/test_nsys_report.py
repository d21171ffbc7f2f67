"""Tests of adapters/readers/nsys_report."""

from __future__ import annotations

import sqlite3

import pytest

from pytest_perfgate.adapters.readers.nsys_report import REMOVED, is_secret, read_nsys, scrub, version_in
from pytest_perfgate.adapters.readers.nsys_report import SECRET as SECRETS
from pytest_perfgate.app.inspections import nsys as use
from pytest_perfgate.app.inspections.nsys import Nsys
from pytest_perfgate.cli import main
from pytest_perfgate.cli.files import scrub_sentence
from pytest_perfgate.core.render.html import render_markdown
from pytest_perfgate.core.render.text import render_text
from pytest_perfgate.model.errors import PerfgateError
from tests.corpus import corpus
from tests.nsys_file import SECRET, ExportMaker, small_export


def test_a_report_without_nsys_names_the_command_and_the_version(tmp_path, monkeypatch) -> None:
    path = tmp_path / "job.nsys-rep"
    path.write_bytes(b"\x00\x01junk" + b"2024.6.2.225-246235244400v0" + b"\x00" * 100)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert version_in(path) == "2024.6.2.225"
    with pytest.raises(PerfgateError, match="nsys export --type=sqlite") as error:
        read_nsys(path)
    assert "2024.6.2.225" in error.value.text()


def test_a_report_is_exported_where_nsys_is_and_the_export_is_gone(tmp_path, monkeypatch) -> None:
    made = small_export(tmp_path / "made.sqlite")
    fake = tmp_path / "bin" / "nsys"
    fake.parent.mkdir()
    fake.write_text(f'#!/bin/sh\nfor a; do case "$a" in --output=*) cp {made} "${{a#--output=}}";; esac; done\n')
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{fake.parent}:/usr/bin:/bin")
    scratch = tmp_path / "tmp"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    path = tmp_path / "job.nsys-rep"
    path.write_bytes(b"x")
    analysis = Nsys(read_nsys).inspect([path], {})
    assert analysis.metrics.find("overlap")
    assert read_nsys(path).facts().path == str(path)
    assert not list(scratch.iterdir())


def test_a_failing_export_shows_what_nsys_said(tmp_path, monkeypatch) -> None:
    fake = tmp_path / "nsys"
    fake.write_text("#!/bin/sh\necho 'Importer error: wrong version' >&2\nexit 1\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    path = tmp_path / "job.nsys-rep"
    path.write_bytes(b"x")
    with pytest.raises(PerfgateError, match="wrong version"):
        read_nsys(path)


@pytest.fixture
def export(tmp_path):
    return small_export(tmp_path / "job.sqlite", secrets=True)


def test_the_planted_token_is_in_the_export_and_not_in_the_clean_copy(export, tmp_path) -> None:
    assert SECRET.encode() in export.read_bytes()
    done = scrub(export, tmp_path / "clean.sqlite")
    assert SECRET.encode() not in (tmp_path / "clean.sqlite").read_bytes()
    assert set(done.tables) == {"TARGET_INFO_SYSTEM_ENV", "META_DATA_CAPTURE", "ANALYSIS_FILE", "ProcessStreams"}
    assert done.strings == 3
    assert sorted(p.name for p in tmp_path.iterdir()) == ["clean.sqlite", "job.sqlite"]


def test_tables_of_another_form_are_cleaned_as_well(export, tmp_path) -> None:
    with sqlite3.connect(export) as db:
        for table in ("StringIds", *SECRETS):
            db.execute(f"ALTER TABLE {table} RENAME TO {table}_V2")
    done = scrub(export, tmp_path / "clean.sqlite")
    assert SECRET.encode() not in (tmp_path / "clean.sqlite").read_bytes()
    assert (len(done.tables), done.strings) == (4, 3)


def test_the_clean_copy_gives_the_same_figures(export, tmp_path) -> None:
    scrub(export, tmp_path / "clean.sqlite")
    dirty, clean = (Nsys(read_nsys).inspect([path], {}) for path in (export, tmp_path / "clean.sqlite"))
    assert dirty.metrics == clean.metrics
    rows = sqlite3.connect(tmp_path / "clean.sqlite").execute("SELECT value FROM StringIds").fetchall()
    assert (REMOVED,) in rows


def test_no_output_of_any_view_has_the_token(export) -> None:
    analysis = Nsys(read_nsys).inspect([export], {})
    for view in analysis.views.values():
        document = view()
        assert SECRET not in render_text(document, 300)
        assert SECRET not in render_markdown(document)
        assert SECRET not in repr(document)
    assert SECRET not in repr(analysis.metrics)


def test_no_table_of_the_environment_can_be_read(export) -> None:
    reader = read_nsys(export)
    for table in SECRETS:
        with pytest.raises(PerfgateError, match="prohibited"):
            reader._db.rows(f"SELECT * FROM {table}")


@pytest.mark.parametrize("statement", ["DELETE FROM StringIds", "CREATE TABLE x(a)", "ATTACH ':memory:' AS m"])
def test_nothing_can_be_written(export, statement) -> None:
    with pytest.raises(PerfgateError, match="not authorized"):
        read_nsys(export)._db.rows(statement)


NAMED = (
    "CREATE TABLE META_DATA_EXPORT(name TEXT, value TEXT)",
    "CREATE TABLE DIAGNOSTIC_EVENT(timestamp INTEGER, text TEXT)",
    "INSERT INTO META_DATA_EXPORT VALUES ('file', '/home/ann.b/runs/job.nsys-rep'), ('odd', CAST(x'ff2f686f6d65' AS TEXT))",
    "INSERT INTO DIAGNOSTIC_EVENT VALUES (1, 'ann.b on node7.cluster: /scratch/ann.b/repo/train.py, node7')",
    "INSERT INTO TARGET_INFO_SYSTEM_ENV VALUES (1, 'x', 'Hostname', 0, 'node7.cluster'), (1, 'x', 'PWD', 0, '/w/x/repo')",
    "UPDATE NVTX_EVENTS SET text = 'load /w/x/repo/data/a.bin' WHERE rowid = (SELECT min(rowid) FROM NVTX_EVENTS)",
    "UPDATE StringIds SET value = value || ' [/home/ann.b/repo/k.cu]' WHERE id = (SELECT min(id) FROM StringIds)",
)


def test_the_clean_copy_names_nobody(export, tmp_path) -> None:
    with sqlite3.connect(export) as db:
        for statement in NAMED:
            db.execute(statement)
    done = scrub(export, tmp_path / "clean.sqlite")
    data = (tmp_path / "clean.sqlite").read_bytes()
    assert [word for word in (b"ann.b", b"node7", b"/home/", b"/w/x") if word in data] == []
    clean = sqlite3.connect(tmp_path / "clean.sqlite")
    assert clean.execute("SELECT hex(value) FROM META_DATA_EXPORT WHERE name = 'odd'").fetchone() == ("FF2F686F6D65",)
    assert clean.execute("SELECT value FROM META_DATA_EXPORT WHERE name = 'file'").fetchone() == (
        "~/runs/job.nsys-rep",
    )
    texts = [text for (text,) in clean.execute("SELECT text FROM DIAGNOSTIC_EVENT UNION SELECT text FROM NVTX_EVENTS")]
    assert "[user] on [host]: /scratch/[user]/repo/train.py, [host]" in texts
    assert "load data/a.bin" in texts, "what lay in the folder of the run is named from there"
    assert done.named == 4
    assert "4 texts" in scrub_sentence(done)


def test_who_made_an_export_that_holds_no_environment_is_in_no_clean_copy(tmp_path) -> None:
    maker = ExportMaker(tmp_path / "x.sqlite")
    maker.kernel(1, 0, 50, "gemm of zoe@box-7.example.org", launched=0)
    maker.db.execute("CREATE TABLE META_DATA_EXPORT(name TEXT, value TEXT)")
    maker.db.execute("INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_HOST', 'modal'), ('EXPORT_USER', 'mia.k')")
    scrub(maker.done(), tmp_path / "clean.sqlite")
    data = (tmp_path / "clean.sqlite").read_bytes()
    assert [word for word in (b"modal", b"mia.k", b"zoe", b"box-7") if word in data] == []
    assert b"gemm of [user]@[host]" in data


def test_events_that_carry_json_or_bytes_name_nobody(export, tmp_path) -> None:
    with sqlite3.connect(export) as db:
        db.execute("INSERT INTO TARGET_INFO_SYSTEM_ENV VALUES (1, 'x', 'Hostname', 0, 'node7')")
        db.execute("CREATE TABLE GENERIC_EVENTS(id INTEGER, data JSON, payload BLOB)")
        db.execute(
            "INSERT INTO GENERIC_EVENTS VALUES (1, '{\"at\": \"/home/ann.b/k.cu\"}', CAST('node7 ann.b!' AS BLOB))"
        )
    scrub(export, tmp_path / "clean.sqlite")
    (row,) = sqlite3.connect(tmp_path / "clean.sqlite").execute("SELECT data, payload FROM GENERIC_EVENTS")
    assert row == ('{"at": "~/k.cu"}', b"***** *****!")


def test_a_view_knows_whom_the_heading_of_an_export_names(tmp_path, capsys) -> None:
    maker = ExportMaker(tmp_path / "job.sqlite")
    maker.kernel(1, 0, 50, "gemm of mia.k at modal", launched=0)
    maker.db.execute("CREATE TABLE META_DATA_EXPORT(name TEXT, value TEXT)")
    maker.db.execute("INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_HOST', 'modal'), ('EXPORT_USER', 'mia.k')")
    path = str(maker.done())
    for words in ((path, "--json"), (path, "--view", "all"), (path, "--csv", str(tmp_path / "tables"))):
        assert main(["inspect", *words]) == 0
    texts = [capsys.readouterr().out, *(one.read_text() for one in (tmp_path / "tables").iterdir())]
    assert [word for word in ("modal", "mia.k") if any(word in text for text in texts)] == []
    assert "gemm of [user] at [host]" in texts[0]


@pytest.mark.corpus
@pytest.mark.parametrize(
    ("name", "person"),
    [("nsys/cloverleaf_a100.sqlite", "thomasli"), ("nsys/edge/no_kernel_table_l4.sqlite", "royyu0509")],
)
def test_people_of_real_exports_are_in_no_clean_copy(tmp_path, name: str, person: str) -> None:
    path = corpus(name)
    assert person.encode() in path.read_bytes()
    assert scrub(path, tmp_path / "clean.sqlite").named
    assert person.encode() not in (tmp_path / "clean.sqlite").read_bytes()


def test_in_place_only_when_asked(export) -> None:
    with pytest.raises(PerfgateError, match="in-place"):
        use.scrub(export, export, scrub)
    done = use.scrub(export, None, scrub, in_place=True)
    assert done.out == str(export)
    assert SECRET.encode() not in export.read_bytes()
    assert [p.name for p in export.parent.iterdir()] == ["job.sqlite"]


def test_another_file_is_not_overwritten(export, tmp_path) -> None:
    (tmp_path / "job.clean.sqlite").write_text("mine")
    with pytest.raises(PerfgateError, match="exists"):
        use.scrub(export, None, scrub)
    assert "TARGET_INFO_SYSTEM_ENV" in scrub_sentence(use.scrub(export, None, scrub, force=True))


def test_indexes_and_bytes_that_are_no_text_survive(tmp_path) -> None:
    path = small_export(tmp_path / "a.sqlite", secrets=True)
    with sqlite3.connect(path) as db:
        db.execute("CREATE INDEX by_name ON CUPTI_ACTIVITY_KIND_KERNEL(shortName)")
        db.execute("INSERT INTO StringIds VALUES (99, CAST(x'ff41' AS TEXT))")
        db.execute("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET shortName = 99 WHERE streamId = 7")
    scrub(path, tmp_path / "b.sqlite")
    clean = sqlite3.connect(tmp_path / "b.sqlite")
    assert clean.execute("SELECT hex(value) FROM StringIds WHERE id = 99").fetchone() == ("FF41",)
    assert clean.execute("SELECT count(*) FROM sqlite_master WHERE type = 'index'").fetchone() == (1,)
    assert clean.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_a_block_of_variables_goes_even_if_a_number_meets_it(tmp_path) -> None:
    maker = ExportMaker(tmp_path / "a.sqlite")
    maker.kernel(1, 0, 10, f"A=1\0B={SECRET}")
    scrub(maker.done(), tmp_path / "b.sqlite")
    assert SECRET.encode() not in (tmp_path / "b.sqlite").read_bytes()


def test_a_file_that_is_no_export_is_refused_and_leaves_nothing(tmp_path) -> None:
    path = tmp_path / "x.sqlite"
    path.write_bytes(b"SQLite format 3\0" + b"\0" * 500)
    with pytest.raises(PerfgateError) as error:
        scrub(path, tmp_path / "y.sqlite")
    assert error.value.code.name == "nsys-damaged"
    assert [p.name for p in tmp_path.iterdir()] == ["x.sqlite"]


def test_tables_that_name_an_environment_are_secret_too() -> None:
    assert is_secret("target_info_system_env")
    assert is_secret("TARGET_INFO_PROCESS_ENVIRONMENT")
    assert not is_secret("NVTX_EVENTS")
