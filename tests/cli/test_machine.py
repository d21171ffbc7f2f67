"""devices, ceilings, clocks, doctor: each runs on any machine and says what is not here."""

from __future__ import annotations

import json

import pytest

from pytest_perfgate.adapters.bindings.amdsmi import Amd
from pytest_perfgate.cli import doctor
from pytest_perfgate.cli.dispatch import dispatch
from pytest_perfgate.wiring import devices as wiring_devices
from tests.unit.adapters.devices.fake_amd import UUIDS, FakeAmdSmi


@pytest.fixture(autouse=True)
def _own_locks(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("PERFGATE_LOCKS", str(tmp_path / "locks"))
    monkeypatch.chdir(tmp_path)


def test_the_catalogue_and_one_sheet(capsys) -> None:
    assert dispatch(["devices"]) == 0
    assert "H200 SXM" in capsys.readouterr().out
    assert dispatch(["devices", "MI300X"]) == 0
    assert "708 TFLOPS" in capsys.readouterr().out


def test_the_projects_own_device_is_in_front(tmp_path, capsys) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.perfgate.device."My Card"]\nbandwidth_gbps = 1000\n')
    assert dispatch(["devices", "My", "Card", "--root", str(tmp_path)]) == 0
    assert "1000 GB/s" in capsys.readouterr().out


def test_an_unknown_device_is_an_error(capsys) -> None:
    assert dispatch(["devices", "no such card"]) == 17
    assert "device-unknown" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "fix"),
    [
        (["devices", "--here", "H100"], "leave one of them out"),
        (["clocks", "--mhz", "1500"], "perfgate clocks lock --mhz 1500"),
        (["clocks", "reset", "--mhz", "1500"], "perfgate clocks lock --mhz 1500"),
        (["devlog", "--before", "old.cubin"], "--capture FILE"),
        (["site", "public", "--commits", "https://host/c/"], "--commits 'https://host/c/{}'"),
    ],
)
def test_an_option_that_would_have_no_effect_is_refused(words: list[str], fix: str, capsys) -> None:
    assert dispatch(words) == 2
    error = capsys.readouterr().err
    assert "command-usage" in error
    assert fix in error


def test_clocks_without_a_driver_say_so(capsys, monkeypatch) -> None:
    from pytest_perfgate.adapters.bindings.nvml import Nvml
    from pytest_perfgate.wiring import devices as wiring_devices

    def missing():
        raise OSError("no libnvidia-ml.so.1")

    monkeypatch.setattr(wiring_devices, "management", lambda: Nvml(missing))
    assert dispatch(["clocks"]) == 0
    out = capsys.readouterr().out
    assert "no libnvidia-ml.so.1" in out
    assert "next: " in out
    assert dispatch(["clocks", "lock"]) == 17
    assert "clocks-unsupported" in capsys.readouterr().err


def test_a_lock_left_behind_is_named_by_the_doctor(tmp_path, capsys) -> None:
    (tmp_path / "locks").mkdir()
    record = {"device": "GPU-1", "pid": 2**22 + 1, "started": "1", "sm_hz": 1.5e9, "memory": False}
    (tmp_path / "locks" / "GPU-1.clocks.json").write_text(json.dumps(record))
    assert dispatch(["doctor", "--seconds", "0"]) == 0
    output = capsys.readouterr().out
    assert "GPU-1 were left locked" in output
    assert "perfgate clocks reset" in output


def test_the_doctor_times_a_call_against_itself_on_one_screen(capsys) -> None:
    assert dispatch(["doctor", "--seconds", "0.05"]) == 0
    output = capsys.readouterr().out
    for part in ("libraries", "host timers", "settings", "against itself", "clocks"):
        assert part in output
    assert max(map(len, output.splitlines())) <= 100
    assert len(output.splitlines()) <= 40


def test_what_the_doctor_knows_is_said_before_a_driver_can_end_it(capsys, monkeypatch) -> None:
    def crash(*arguments: object) -> None:
        raise SystemExit(139)

    monkeypatch.setattr(doctor, "_machine", crash)
    with pytest.raises(SystemExit):
        dispatch(["doctor", "--seconds", "0"])
    assert "ok    python" in capsys.readouterr().out


def test_the_doctor_tells_all_it_found_when_asked(capsys) -> None:
    assert dispatch(["doctor", "--seconds", "0", "--verbose"]) == 0
    output = capsys.readouterr().out
    for part in ("Libraries", "Timers", "permissions", "lock GPU clocks", "without events"):
        assert part in output
    assert dispatch(["doctor", "--seconds", "0", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["devices"][-1]["parts"][0]["name"] == "host timers"
    assert {"findings", "instruments", "machine"} <= set(data)


def test_ceilings_are_measured_kept_and_shown(tmp_path, capsys, monkeypatch) -> None:
    from pytest_perfgate.adapters.devices import visible

    monkeypatch.setattr(visible, "SIZES", (32, 64))
    monkeypatch.setattr(visible, "MOST_BYTES", 1 << 20)
    assert dispatch(["ceilings", "--show", "--root", str(tmp_path)]) == 0
    assert "none measured" in capsys.readouterr().out
    assert dispatch(["ceilings", "--root", str(tmp_path)]) == 0
    shown = capsys.readouterr()
    assert ("Kept in" in shown.out, "on a busy one" in shown.err) == (True, True)
    (path,) = tmp_path.rglob("ceilings.json")
    ceilings = json.loads(path.read_text())
    assert set(ceilings["tflops"]) == {"fp32", "fp64"}
    assert ceilings["bandwidth_gbps"] > 0
    path.write_text(path.read_text().replace(f'"fp32": {ceilings["tflops"]["fp32"]}', '"fp32": 999.0'))
    assert dispatch(["ceilings", "--root", str(tmp_path)]) == 0
    assert "fp32 of an earlier run" in capsys.readouterr().out
    assert json.loads(path.read_text())["tflops"]["fp32"] == 999.0
    assert dispatch(["ceilings", "--show", "--root", str(tmp_path), "--json"]) == 0
    assert "host-" in capsys.readouterr().out


@pytest.mark.torch
def test_ceilings_of_a_library_that_does_not_work_here_are_an_error(capsys) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed", exc_type=ImportError)
    if torch.cuda.is_available():
        pytest.skip("a GPU is here")
    assert dispatch(["ceilings", "--runtime", "torch"]) == 17
    assert "runtime-unavailable" in capsys.readouterr().err


@pytest.fixture
def amd_cards(monkeypatch) -> FakeAmdSmi:
    """Two cards of AMD, played."""
    smi = FakeAmdSmi()
    monkeypatch.setattr(wiring_devices, "management", lambda: Amd(lambda: smi))
    return smi


def test_one_card_is_named_by_number_or_uuid_and_another_is_an_error(amd_cards, capsys) -> None:
    assert dispatch(["clocks", "lock", "--mhz", "1900", "--device", UUIDS[1]]) == 0
    output = capsys.readouterr().out
    assert "locked by hand at 1900 MHz" in output
    assert UUIDS[0] not in output
    assert dispatch(["clocks", "reset", "--device", "1"]) == 0
    assert [change for change in amd_cards.changes if change != "init"] == [
        ("determinism", 1, 1900),
        ("level", 1, "auto"),
    ]
    assert dispatch(["clocks", "lock", "--mhz", "1900", "--device", "9"]) == 17
    assert "there is no device '9': 2 devices here" in capsys.readouterr().err


@pytest.mark.parametrize("clock", ["-5", "0", "nan", "inf", "fast"])
def test_a_clock_that_is_none_is_a_mistake_in_the_command(amd_cards, capsys, clock) -> None:
    with pytest.raises(SystemExit) as ended:
        dispatch(["clocks", "lock", f"--mhz={clock}"])
    assert ended.value.code == 2
    assert "is not a number above zero" in capsys.readouterr().err
    assert amd_cards.changes == []


def test_a_card_that_tells_no_clocks_does_not_hide_the_others(amd_cards, capsys, monkeypatch) -> None:
    clock_info = amd_cards.amdsmi_get_clock_info
    silent = lambda handle, kind: clock_info(handle, kind) if handle else {"clk": "N/A"}  # noqa: E731 - in its place
    monkeypatch.setattr(amd_cards, "amdsmi_get_clock_info", silent)
    assert dispatch(["clocks"]) == 0
    output = capsys.readouterr().out
    assert "2.1 GHz" in output
    assert "does not report its clocks" in " ".join(output.split()), "in a narrow terminal it has two lines"
