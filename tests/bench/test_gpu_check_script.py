"""The script of the GPU check: without a GPU it says so; parts that fail or hang are on record."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tarfile
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace

import pytest

from ci.gpu import ending, processes
from ci.gpu.accumulated import code, unpack
from ci.gpu.ending import below, end
from ci.gpu.page import BARS, BY_NAME, bars, conclusion, failed, page, unshown
from pytest_perfgate.adapters.runtimes.torch import TorchRuntime
from pytest_perfgate.adapters.system.processes import started
from tests.bench import simulated
from tests.waits import runs, until

ROOT = Path(__file__).resolve().parents[2]


def test_not_run_is_said_and_no_pass(tmp_path) -> None:
    if TorchRuntime().availability().usable:
        pytest.skip("a GPU is here")
    command = [sys.executable, str(ROOT / "ci" / "gpu-check"), "--out", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 4, done.stderr
    assert "Not run: " in (tmp_path / "gpu-check.md").read_text()
    result = json.loads((tmp_path / "gpu-check.json").read_text())
    assert result["why"]
    assert result["parts"] == {}


def test_a_machine_whose_gpu_went_keeps_the_results_that_it_had(tmp_path, monkeypatch) -> None:
    module = simulated.script()
    monkeypatch.setattr(module, "probe", lambda options: {"device": "", "facts": {}, "why": "no GPU"})
    options = SimpleNamespace(out=str(tmp_path), clocks="observe", quick=False, only=None, rest=False, minutes=0.0)
    for earlier, page_of_now in ((False, "Not run: no GPU."), (True, "an H100")):
        if earlier:
            (tmp_path / "gpu-check.md").write_text("an H100")
            (tmp_path / "gpu-check.tar.gz").write_bytes(b"")
        assert module.checked(options)["why"] == "no GPU"
        assert page_of_now in (tmp_path / "gpu-check.md").read_text()


PART = """
import sys, time, json
from pathlib import Path
name, out = sys.argv[sys.argv.index("--part") + 1], Path(sys.argv[sys.argv.index("--out") + 1])
with (out / "parts" / f"{name}.jsonl").open("w") as file:
    file.write(json.dumps({"what": "first", "held": True}) + "\\n")
    file.write('{"what": "torn')
    file.flush()
    if name == "overlap":
        time.sleep(60)
    if name == "agreement":
        sys.exit("the device fell off the bus")
"""


@pytest.fixture
def script(tmp_path, monkeypatch):
    module = simulated.script()
    fake = tmp_path / "part.py"
    fake.write_text(PART)
    monkeypatch.setattr(module, "__file__", str(fake))
    monkeypatch.setattr(module, "LEAST_S", 0.0)
    monkeypatch.setattr(module, "probe", lambda options: {"device": "card-observe", "facts": {}, "why": ""})
    monkeypatch.setattr(
        module, "PARTS", {n: (t, 0.7 if n == "overlap" else 600, f) for n, (t, _, f) in module.PARTS.items()}
    )
    heard = module.communicate_in_turns

    def patient(process, *arguments):
        """The time of a part counts from its first row."""
        name, folder = (process.args[process.args.index(word) + 1] for word in ("--part", "--out"))
        rows = Path(folder) / "parts" / f"{name}.jsonl"
        until(lambda: (rows.exists() and rows.read_text()) or process.poll() is not None)
        return heard(process, *arguments)

    monkeypatch.setattr(module, "communicate_in_turns", patient)
    return module


def test_a_part_that_fails_or_hangs_is_on_record_and_the_others_go_on(script, tmp_path) -> None:
    only = ["machine", "agreement", "overlap"]
    options = SimpleNamespace(
        out=str(tmp_path / "out"), clocks="observe", quick=False, only=only, rest=False, minutes=0.0
    )
    result = script.checked(options)
    good, failing, hanging = result["parts"].values()
    assert good == [{"what": "first", "held": True}]
    assert failing[1]["refused"] == "exit code 1"
    assert "fell off the bus" in failing[1]["why"]
    assert hanging[1]["refused"] == "took longer than its 1 s"
    assert [rows[0]["what"] for rows in (failing, hanging)] == ["first", "first"]
    assert failed(result)
    text = (tmp_path / "out" / "gpu-check.md").read_text()
    assert "3 held, 2 did not: Agreement of timers: did not end well; Work on another stream: did not end well." in text
    assert json.loads((tmp_path / "out" / "gpu-check.json").read_text())["parts"] == result["parts"]
    with tarfile.open(tmp_path / "out" / "gpu-check.tar.gz") as file:
        assert "parts/machine.jsonl" in file.getnames()
    assert len(list((tmp_path / "out").iterdir())) == 3


TREE = """
import subprocess, sys, time
deaf = "import signal, sys, time; signal.signal(signal.SIGINT, signal.SIG_IGN); print(flush=True); time.sleep(60)"
child = subprocess.Popen([sys.executable, "-c", deaf], start_new_session=True, stdout=subprocess.PIPE)
child.stdout.readline()
print(child.pid, flush=True)
time.sleep(60)
"""


def test_what_a_part_has_started_ends_with_it_even_in_a_session_of_its_own(monkeypatch) -> None:
    heard = ending._last_output
    monkeypatch.setattr(
        ending,
        "_last_output",
        lambda process, patience_s: until(lambda: process.poll() is not None) and heard(process, patience_s),
    )
    process = subprocess.Popen(
        [sys.executable, "-c", TREE], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stdout is not None
    child = int(process.stdout.readline())
    when = started(child)
    assert "KeyboardInterrupt" in end(process, 0.5)
    assert process.poll() is not None
    assert until(lambda: not runs(child) or started(child) != when), "a process of the part is left"


def test_a_bar_is_held_missed_or_not_shown() -> None:
    rows = [{"what": "a", "bar": "long", "held": True}, {"what": "b", "bar": "long", "held": False}]
    result = {
        "device": "x",
        "facts": {},
        "why": "",
        "parts": {"P": [*rows, {"what": "c", "bar": "same", "held": True}]},
    }
    texts = bars(result)
    assert (texts["long"], texts["same"]) == ("missed (1 of 2): b", "held (1 of 1)")
    assert (texts["gate"], texts["quiet"]) == ("not shown: --only gate", "not shown: --only overlap")
    names = "short host escape quiet seen gate suite costs builds power checks brought share"
    assert unshown(result) == names.split()
    assert f"| {BARS['long']} | missed (1 of 2): b |" in page(result)
    last = conclusion(result, "/results").splitlines()
    assert last[:2] == ["missed:", f"  {BARS['long']}: missed (1 of 2): b"]
    assert f"  {BARS['gate']}: not shown: --only gate" in last
    assert last[-2] == "not run yet, by --rest or by name: capped, forks, repeat, suites"
    assert last[-1].startswith(f"1 of {len(BARS)} bars held; every row: /results/gpu-check.md")
    assert len(conclusion(result, "/results", whole=False).splitlines()) == 3
    result["parts"]["Q"] = [{"what": "did not end well", "refused": "exit code 1", "why": "a\nb", "held": False}]
    named = conclusion(result, "/results", whole=False).splitlines()
    assert named[2:4] == ["failed without a bar:", "  Q: did not end well, exit code 1, a b"]


def test_a_pytest_has_our_plugin_though_it_is_not_installed(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(processes, "installed", lambda: False)
    monkeypatch.setenv("PYTHONPATH", "/carried")
    first, site, last = processes.surroundings(tmp_path)["PYTHONPATH"].split(os.pathsep)
    assert (first, last) == (str(ROOT), "/carried")
    (distribution,) = (d for d in metadata.distributions(path=[site]))
    assert [point.value for point in distribution.entry_points] == ["pytest_perfgate.plugin"]


def test_a_device_that_cannot_be_looked_up_does_not_end_the_run(monkeypatch) -> None:
    module = simulated.script()
    monkeypatch.setattr(module.parts, "Check", simulated.SimulatedCheck)
    monkeypatch.setattr(simulated.SimulatedGpu, "device", lambda self: {}["uuid"])
    description = module.find_device(SimpleNamespace(clocks="observe"))
    assert (description["device"], description["facts"], description["why"]) == (
        "unknown",
        {"device": "KeyError: 'uuid'"},
        "",
    )


def test_parts_for_which_no_time_is_left_say_so(script, tmp_path) -> None:
    script.LEAST_S = 15.0
    (row,) = script.supervised_part("machine", SimpleNamespace(out=str(tmp_path), clocks="observe"), 4.0)
    assert (row["what"], row["why"]) == ("left out", "4 s were left")


def test_a_run_that_is_given_minutes_ends_within_them(script, tmp_path, monkeypatch) -> None:
    limits = []
    monkeypatch.setattr(script, "supervised_part", lambda name, options, left_s, so_far: limits.append(left_s) or [])
    for minutes, names in ((0.5, ["machine", "repeat"]), (0.0, ["machine", "repeat"])):
        options = SimpleNamespace(
            out=str(tmp_path / "out"), clocks="observe", quick=False, only=names, rest=False, minutes=minutes
        )
        script.checked(options)
    assert all(left_s <= 30.0 for left_s in limits[:2])
    assert all(left_s > 600.0 for left_s in limits[2:]), "else as long as the parts may take"


def test_a_part_that_is_cut_off_before_its_own_time_missed_nothing(script, tmp_path) -> None:
    title, _, part = script.PARTS["overlap"]
    script.PARTS["overlap"] = (title, 30, part)
    (tmp_path / "parts").mkdir()
    rows = script.supervised_part("overlap", SimpleNamespace(out=str(tmp_path), clocks="observe"), 1.0)
    assert [row["what"] for row in rows] == ["first", "cut off"]
    assert rows[1]["refused"] == "no time"
    assert not failed({"parts": {title: rows}})


SLOW = """
import sys, time
sys.argv[0] = {simulated!r}
from tests.bench import simulated
from tests.waits import runs, until
from ci.gpu import parts
def slow(check):
    yield {{"what": "first", "held": True}}
    time.sleep(60)
script = simulated.script
def changed():
    module = script()
    module.TURN_S, module.PARTS["machine"] = 0.05, ("This machine", 45, slow)
    return module
simulated.script, simulated.__file__ = changed, __file__
sys.exit(simulated.main())
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_run_that_is_cut_short_keeps_its_rows_and_leaves_nothing_at_work(tmp_path, number) -> None:
    program, out = tmp_path / "slow.py", tmp_path / "out"
    program.write_text(SLOW.format(simulated=simulated.__file__))
    command = [sys.executable, str(program), "--quick", "--clocks", "off", "--out", str(out)]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env) as run:
        assert until(lambda: (out / "gpu-check.md").exists() and "first" in (out / "gpu-check.md").read_text())
        parts = below(run.pid)
        run.send_signal(number)
        stderr = run.communicate(timeout=300)[1]
    result = json.loads((out / "gpu-check.json").read_text())
    assert result["facts"]["not finished"] == "machine, agreement, overlap"
    assert result["parts"]["This machine"][0] == {"what": "first", "held": True}
    assert "Traceback" not in stderr
    assert parts
    assert until(lambda: not [pid for pid, when in parts.items() if runs(pid) and started(pid) == when])
    if number != signal.SIGKILL:
        assert run.returncode == 1
        assert result["parts"]["This machine"][1]["refused"] == "interrupted"
        assert list(tmp_path.glob("gpu-check-*")) == []


def test_where_nothing_can_be_written_no_time_on_a_card_is_spent(tmp_path) -> None:
    (tmp_path / "file").write_text("")
    command = [sys.executable, str(ROOT / "ci" / "gpu-check"), "--out", str(tmp_path / "file")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert (done.returncode, done.stderr) == (2, f"gpu-check: --out {tmp_path / 'file'}: File exists\n")


def test_a_disk_that_is_full_costs_the_files_and_not_the_parts(script, tmp_path, monkeypatch) -> None:
    plain, times = script.write, iter(range(100))

    def full(*arguments: object) -> None:
        if next(times):
            raise OSError(28, "No space left on device")
        plain(*arguments)

    monkeypatch.setattr(script, "write", full)
    options = SimpleNamespace(
        out=str(tmp_path / "out"), clocks="observe", quick=False, only=["machine", "ladder"], rest=False, minutes=0.0
    )
    assert len(script.checked(options)["parts"]) == 2


def test_parts_that_run_by_name_are_added_to_the_page_of_the_same_code_and_device(
    script, tmp_path, monkeypatch
) -> None:
    def run(*only: str, code: str = "x") -> dict:
        monkeypatch.setattr(script, "code", lambda root: code)
        options = SimpleNamespace(
            out=str(tmp_path / "out"), clocks="observe", quick=False, only=list(only), rest=False, minutes=0.0
        )
        return script.checked(options)

    run("machine", "ladder")
    both = run("suites")
    assert list(both["parts"]) == ["This machine", "Products", "The suites of examples/"]
    assert both["facts"]["kept from an earlier run"] == "This machine, Products"
    with tarfile.open(tmp_path / "out" / "gpu-check.tar.gz") as file:
        assert {f"parts/{name}.jsonl" for name in ("machine", "ladder", "suites")} <= set(file.getnames())
    assert list(run("suites", code="y")["parts"]) == ["The suites of examples/"], "other code has a page of its own"


def test_a_project_without_records_is_packed_with_what_it_has(script, tmp_path) -> None:
    work, out = tmp_path / "work", tmp_path / "out"
    (work / "forks" / ".perfgate").mkdir(parents=True)
    (work / "gate" / ".perfgate" / "records").mkdir(parents=True)
    (work / "forks.txt").write_text("calibrated")
    out.mkdir()
    script.pack(work, out)
    with tarfile.open(out / "gpu-check.tar.gz") as file:
        names = ["gate/.perfgate/records", "forks.txt", "forks", "forks/.perfgate"]
        assert file.getnames() == names, "a calibration has no records, and a later call adds rounds to it"


def test_the_project_of_ten_runs_is_packed_for_a_later_call_without_its_builds(script, tmp_path) -> None:
    work, out = tmp_path / "work", tmp_path / "out"
    for folder in (".git", ".perfgate/arms/a1/env", ".perfgate/records"):
        (work / "repeat" / folder).mkdir(parents=True)
    (work / "repeat" / ".perfgate" / "arms" / "a1" / "env" / "python").symlink_to(sys.executable)
    (work / "repeat" / ".perfgate" / "history.db").write_text("times")
    out.mkdir()
    script.pack(work, out)
    unpack(out, tmp_path / "again")
    again = tmp_path / "again" / "repeat"
    assert {path.relative_to(again).as_posix() for path in again.rglob("*")} == {
        ".git",
        ".perfgate",
        ".perfgate/history.db",
        ".perfgate/records",
    }


@pytest.mark.parametrize("filtering", [True, False], ids=["Python now", "Python before filters"])
def test_what_was_packed_is_unpacked(script, tmp_path, monkeypatch, filtering) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "gate.txt").write_text("held")
    script.pack(tmp_path / "work", tmp_path)
    if not filtering:
        monkeypatch.delattr(tarfile, "data_filter")
        plain = tarfile.TarFile.extractall
        monkeypatch.setattr(tarfile.TarFile, "extractall", lambda file, path: plain(file, path, filter="tar"))
    unpack(tmp_path, tmp_path / "again")
    assert (tmp_path / "again" / "gate.txt").read_text() == "held"


def test_a_whole_run_and_the_rest_are_every_part_once() -> None:
    module = simulated.script()
    runs = [module.chosen(SimpleNamespace(only=None, quick=False, rest=rest)) for rest in (False, True)]
    assert sorted(runs[0] + runs[1]) == sorted(module.PARTS)
    assert set(runs[1]) == BY_NAME
    assert 35 * 60 < sum(module.PARTS[name][1] for name in runs[1]) <= 36 * 60, "as the help says"
    assert sum(module.PARTS[name][1] for name in runs[0]) < 2.5 * module.BUDGET_S


def test_the_code_of_a_copied_tree_is_its_files(tmp_path) -> None:
    (tmp_path / "ci" / "gpu").mkdir(parents=True)
    (tmp_path / "ci" / "gpu" / "a.py").write_text("1")
    first = code(tmp_path)
    (tmp_path / "ci" / "gpu" / "a.py").write_text("2")
    assert first.startswith("no commit known, files ")
    assert code(tmp_path) != first
    assert not code(ROOT).startswith("no commit")


def test_a_whole_run_is_over_in_eight_minutes(script) -> None:
    assert script.BUDGET_S <= 480


def test_the_whole_script_runs_on_a_simulated_card(tmp_path) -> None:
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    parts = ("machine", "agreement", "overlap", "power", "slowdowns", "same", "ladder")
    command = [sys.executable, simulated.__file__, "--only", *parts, "--clocks", "off", "--out", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False, env=env)
    result = json.loads((tmp_path / "gpu-check.json").read_text())
    texts = bars(result)
    good = ("long", "short", "escape", "quiet", "seen", "same")
    assert {texts[name].partition(" ")[0] for name in good} == {"held"}, done.stdout + done.stderr
    assert done.returncode == int(texts["host"].startswith("missed"))
    told_of = [line.split(":")[0] for line in done.stderr.splitlines()]
    assert told_of[: 2 * len(parts)] == [name for name in parts for _ in "12"]
    assert "not finished" not in result["facts"]
    assert not any(row.get("refused") == "exit code 1" for rows in result["parts"].values() for row in rows)
    assert "bars held" in done.stderr.splitlines()[-1]
    assert result["facts"]["code"]
    assert result["facts"]["date"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["gpu-check.json", "gpu-check.md", "gpu-check.tar.gz"]
