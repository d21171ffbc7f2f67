"""inspect, check and compare with a kind of file that the test brings along."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_perfgate.cli import main
from tests.drawings import texts
from tests.kineto_file import host, kernel, launch, written
from tests.kineto_job import step_events

PLUGIN = """
from pytest_perfgate.model.metric import Analysis
from pytest_perfgate.model.metric import Column, Document, Table
from pytest_perfgate.model.metric import Metric, MetricSet, labels
from pytest_perfgate.model.values import Dimension


class Toy:
    name = "toy"
    views = ("table", "other")
    options = (("step", "a step"),)

    def recognises(self, path, head):
        return head.startswith(b"TOY")

    def inspect(self, paths, options):
        values = [float(p.read_text()[3:]) for p in paths]
        return self._made(values)

    def compare(self, before, after, options):
        old, new = (float(p[0].read_text()[3:]) for p in (before, after))
        return self._made([new - old])

    def _made(self, values):
        metrics = tuple(
            Metric(name="time", value=v, dimension=Dimension.TIME, labels=labels(case=i)) for i, v in enumerate(values)
        )
        table = Table(columns=(Column(name="time", dimension=Dimension.TIME),), rows=tuple((v,) for v in values))
        page = Document(title="A <toy>", blocks=(table,))
        return Analysis(
            kind="toy", subject="toy", metrics=MetricSet(metrics=metrics), window="all",
            views={"table": lambda: page, "other": lambda: Document(title="Other", blocks=())},
        )


def pytest_perfgate_inspectors():
    return [Toy()]
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "toy_plugin.py").write_text(PLUGIN)
    (tmp_path / "pyproject.toml").write_text('[tool.perfgate]\nplugins = ["toy_plugin"]\n')
    (tmp_path / "a.toy").write_text("TOY1500")
    (tmp_path / "b.toy").write_text("TOY4000")
    (tmp_path / "empty").write_text("")
    (tmp_path / "strange").write_text("?")
    return tmp_path


@pytest.fixture
def command(project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """``perfgate`` as a shell would run it, without starting a process for each word."""
    monkeypatch.chdir(project)
    monkeypatch.syspath_prepend(project)
    monkeypatch.delitem(sys.modules, "toy_plugin", raising=False)

    def call(*words: str) -> subprocess.CompletedProcess[str]:
        capsys.readouterr()
        try:
            code = main(list(words))
        except SystemExit as ending:
            code = ending.code
        return subprocess.CompletedProcess(words, code, *capsys.readouterr())

    return call


def test_inspect_shows_and_writes(command, project: Path) -> None:
    assert "1.5 µs" in command("inspect", "a.toy").stdout
    assert command("inspect", "a.toy", "--view", "list").stdout.split() == ["table", "other"]
    assert command("inspect", "a.toy", "--html", "new/p.html", "--csv", "out").returncode == 0
    assert command("inspect", "a.toy", "--markdown", "newer/p.md").returncode == 0
    assert (project / "newer" / "p.md").exists(), "every file that is asked for has its folders made"
    page = (project / "new" / "p.html").read_text()
    assert "A &lt;toy&gt;" in page
    assert "<script" not in page
    assert "http" not in page.replace('http-equiv="', "")
    assert (project / "out" / "table.csv").read_text() == "time\n1500.0\n"
    data = json.loads(command("inspect", "a.toy", "--json", "--csv", "out").stdout)
    assert data["metrics"][0]["value"] == 1500.0
    assert "# A \\<toy>\n" in command("inspect", "a.toy", "--markdown", "-").stdout


@pytest.mark.parametrize(
    ("limits", "code", "word"),
    [
        (["time(case=0) <= 2us"], 0, "PASSED"),
        (["time(case=0) <= 1us"], 1, "BROKEN"),
        (["overlap >= 50%"], 4, "NOT MEASURED"),
    ],
)
def test_check_judges_by_exit_code(command, project: Path, limits: list[str], code: int, word: str) -> None:
    done = command("check", "a.toy", *limits, "--junit", "j.xml")
    assert (done.returncode, f"\n{word}" in done.stdout) == (code, True), done
    assert ('failures="1"' in (project / "j.xml").read_text()) is (code == 1)
    assert json.loads(command("check", "a.toy", *limits, "--json").stdout)["verdicts"][0]["outcome"] == word.lower()


def test_junit_names_the_next_step(project: Path, command) -> None:
    command("check", "a.toy", "mfu >= 50%", "--junit", "j.xml")
    assert "next: " in (project / "j.xml").read_text()


def test_several_files_are_one_job(command) -> None:
    done = command("check", "a.toy", "b.toy", "time <= 2us")
    assert [line.split()[0] for line in done.stdout.splitlines() if "time(" in line] == ["BROKEN", "PASSED"]


def test_compare_lists_its_views_and_prints_no_page_that_it_writes(command) -> None:
    assert command("compare", "a.toy", "b.toy", "--view", "list").stdout == "table\nother\n"
    written = command("compare", "a.toy", "b.toy", "--html", "c.html")
    assert (written.returncode, written.stdout) == (0, "wrote c.html\n")


def test_compare_has_a_reference_and_optional_limits(command) -> None:
    assert "2.5 µs" in command("compare", "a.toy", "b.toy").stdout
    assert command("compare", "a.toy", "b.toy", "time <= 1us").returncode == 1
    assert command("compare", "a.toy", "a.toy").returncode == 0, "without a limit, nothing passes"
    assert command("compare", "a.toy", "--", "b.toy", "time <= 9us").returncode == 0


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["check", "a.toy"], 2, "limit-missing"),
        (["check", "time <= 1us"], 2, "no file was named"),
        (["check", "gone.toy", "time <= 1us"], 2, "gone.toy: there is no such file"),
        (["check", "empty", "time <= 1us"], 13, "is empty"),
        (["inspect", "strange"], 13, "artifact-unknown"),
        (["inspect", "a.toy", "--view", "tabel"], 2, "one of: table, other"),
        (["inspect", "a.toy", "--arch", "sm_90"], 2, "'arch' is not an option for toy files"),
        (["inspect", "a.toy", "--set", "step"], 2, "has no value"),
        (["inspect", "a.toy", "--rank", "0"], 2, "did you mean --set rank=VALUE?"),
        (["check", "a.toy", "tiem <= 1us"], 2, "did you mean 'time'"),
        (["compare", "a.toy", "b.toy", "a.toy"], 2, "a comparison needs two files"),
        (["compare", "a.toy", "./a.toy", "time <= 1us"], 2, "a.toy is on both sides"),
        (["inspcet", "a.toy"], 2, "did you mean 'perfgate inspect'?"),
    ],
)
def test_every_mistake_has_a_sentence(command, words: list[str], code: int, message: str) -> None:
    done = command(*words)
    assert (done.returncode, "Traceback" in done.stderr) == (code, False), done.stderr
    assert message in done.stderr


def test_a_pipe_is_refused_at_once(command, project: Path) -> None:
    os.mkfifo(project / "pipe")
    done = command("check", "pipe", "idle <= 5%")
    assert done.returncode == 13
    assert "pipe: it is a pipe" in done.stderr


def test_errors_are_json_too(command) -> None:
    assert json.loads(command("inspect", "gone", "--json").stdout)["error"]["code"] == "artifact-missing"


def test_help_and_version_are_there_and_light(command) -> None:
    assert "gate\n  " in command("--help").stdout
    assert command("--version").stdout.startswith("perfgate ")
    assert "Exit codes" in command("check", "--help").stdout
    code = "import sys; from pytest_perfgate.cli import main; main(['--help']); print([m for m in ('numpy', 'pandas', 'yaml', 'requests', 'msgspec', 'pytest') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.endswith(
        "[]\n"
    )


@pytest.mark.parametrize(
    ("option", "place", "code"),
    [
        ("--html", "empty/x.html", "delivery-failed"),
        ("--markdown", "empty/x.md", "delivery-failed"),
        ("--csv", "empty/tables", "file-kind"),
    ],
)
def test_a_place_that_cannot_be_written_is_an_error(command, option: str, place: str, code: str) -> None:
    done = command("inspect", "a.toy", option, place)
    assert done.returncode == (20 if code == "delivery-failed" else 2)
    assert place in done.stderr
    assert f"[{code}]" in done.stderr


@pytest.fixture
def traced(project: Path, command):
    written(project / "t.json", [event for n in (1, 2) for event in step_events(n, 200 * n)])
    return command


def test_pictures_are_written_one_by_one(traced, project: Path) -> None:
    done = traced("inspect", "t.json", "--picture", "steps:new/steps.svg", "--picture", "timeline:line.svg")
    assert (done.returncode, done.stdout.split()) == (0, ["wrote", "new/steps.svg", "wrote", "line.svg"])
    svg = (project / "new" / "steps.svg").read_text(encoding="utf-8")
    assert texts(svg)[:2] == ["computation", "exposed communication"]
    assert "var(" not in svg, "a viewer without a page knows no variables"
    assert "pictures" in traced("inspect", "t.json", "--view", "list").stdout.split()
    assert "█" in traced("inspect", "t.json", "--view", "pictures").stdout
    page = (project / "p.html", traced("inspect", "t.json", "--html", "p.html"))[0].read_text(encoding="utf-8")
    assert page.index('id="pictures"') < page.index(">Where the time went</h2>")


@pytest.mark.parametrize(
    ("picture", "code"),
    [
        ("steps", "command-usage"),
        ("steps:", "command-usage"),
        ("steps:out.pdf", "command-usage"),
        ("pie:out.svg", "view-unknown"),
        ("roofline:out.svg", "picture-none"),
    ],
)
def test_a_picture_that_cannot_be_written_says_why(traced, picture: str, code: str) -> None:
    done = traced("inspect", "t.json", "--picture", picture)
    assert done.returncode != 0
    assert f"[{code}]" in done.stderr


def test_a_png_is_made_by_what_is_at_hand_or_the_error_names_it(
    traced, project: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = tmp_path_factory.mktemp("tools")
    monkeypatch.setenv("PATH", str(tools))
    monkeypatch.setitem(sys.modules, "cairosvg", None)
    done = traced("inspect", "t.json", "--picture", "steps:out.png")
    assert "[picture-tool]" in done.stderr
    assert "rsvg-convert" in done.stderr
    painter = tools / "rsvg-convert"
    painter.write_text('#!/bin/sh\necho "points of $5" > "$4"\n')
    painter.chmod(0o755)
    assert traced("inspect", "t.json", "--picture", "steps:out.png").returncode == 0
    assert (project / "out.png").read_text().endswith("drawing.svg\n")


@pytest.mark.parametrize(("columns", "led"), [(120, True), (80, False)])
def test_a_wide_terminal_is_led_by_bars(traced, monkeypatch: pytest.MonkeyPatch, columns: int, led: bool) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", str(columns))
    shown = traced("inspect", "t.json").stdout
    assert ("step 1  █" in shown) is led
    assert "step 1  █" not in traced("inspect", "t.json", "--view", "steps").stdout


def telling(scale: int = 1) -> list[dict[str, object]]:
    """Operators, kernels and annotations that name people, machines and secrets in every way."""
    names = (
        ("aten::mm", "gemm_/home/eve-qqx/k.cu"),
        ("lib::op carol-qqx@example.org", "kern<C:\\Users\\frank-qqx\\k.cu>"),
        ("file:///home/ivan-qqx/a.so", "k gina-qqx@build-03:/opt/x"),
        ("aten::relu", "run_by_henry-qqx@gpu-node17.corp.example.com token=hf_abcdefghijklmnop0123"),
    )
    events = [
        host("ProfilerStep#1", 0, 900, cat="user_annotation"),
        host("by judy-qqx@node5", 0, 800, cat="user_annotation"),
    ]
    for at, (op, name) in enumerate(names, 1):
        events += [host(op, 100 * at, 50), launch(100 * at + 5, at)]
        events += [kernel(name, 100 * at + 10, 30 * scale, correlation=at)]
    return events


def test_no_form_of_output_names_a_person_a_machine_or_a_secret(command, project: Path) -> None:
    written(project / "a.json", telling(), hostname="gpu-node17.corp.example.com")
    written(project / "b.json", telling(2))
    shown = []
    for words in (
        ("inspect", "a.json", "--view", "all"),
        ("inspect", "a.json", "--view", "all", "--json"),
        ("inspect", "a.json", "--html", "p.html", "--markdown", "p.md", "--csv", "csv", "--reports", "out"),
        ("inspect", "a.json", "--picture", "timeline:t.svg", "--picture", "kernels:k.svg", "--picture", "tree:r.svg"),
        ("check", "a.json", "kernel_max(kernel=*) <= 1us", "--json", "--junit", "j.xml"),
        ("compare", "a.json", "b.json", "slowdown <= 5%", "--html", "c.html", "--reports", "both"),
    ):
        done = command(*words)
        shown += [done.stdout, done.stderr]
    made = {
        path.name: path.read_text() for path in project.rglob("*") if path.suffix in FORMS and path.stem not in "ab"
    }
    assert {Path(name).suffix for name in made} == FORMS
    for word in ("-qqx", "node17", "node5", "build-03", "hf_abc"):
        assert not [name for name, text in {**made, "shown": "".join(shown)}.items() if word in text.lower()], word


FORMS = {".html", ".md", ".csv", ".svg", ".xml"}


HEAVY = ("concurrent.futures", "importlib.resources", "logging", "pandas", "pytest")


def test_a_trace_is_inspected_without_what_takes_long_to_import(traced, project: Path) -> None:
    code = f"import sys; from pytest_perfgate.cli import main; main(['inspect', 't.json']); print([m for m in {HEAVY} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], cwd=project, capture_output=True, text=True, check=True)
    assert done.stdout.endswith("[]\n"), done.stdout[-200:]
