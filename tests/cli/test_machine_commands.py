"""devices, ceilings, clocks, doctor: each runs on any machine and says what is not here."""

from __future__ import annotations

import json

import pytest

from pytest_perfgate.cli.dispatch import dispatch


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


def test_clocks_without_a_driver_say_so(capsys, monkeypatch) -> None:
    from pytest_perfgate.adapters.bindings.nvml import Nvml
    from pytest_perfgate.wiring import devices as wiring_devices

    def missing():
        raise OSError("no libnvidia-ml.so.1")

    monkeypatch.setattr(wiring_devices, "management", lambda: Nvml(missing))
    assert dispatch(["clocks"]) == 0
    assert "no libnvidia-ml.so.1" in capsys.readouterr().out
    assert dispatch(["clocks", "lock"]) == 17
    assert "clocks-unsupported" in capsys.readouterr().err


def test_a_lock_left_behind_is_named_by_the_doctor(tmp_path, capsys) -> None:
    (tmp_path / "locks").mkdir()
    record = {"device": "GPU-1", "pid": 2**22 + 1, "started": "1", "sm_hz": 1.5e9, "memory": False}
    (tmp_path / "locks" / "GPU-1.clocks.json").write_text(json.dumps(record))
    assert dispatch(["doctor", "--seconds", "0"]) == 0
    said = capsys.readouterr().out
    assert "GPU-1 were left locked" in said
    assert "perfgate clocks reset" in said


def test_the_doctor_times_a_call_against_itself_on_one_screen(capsys) -> None:
    assert dispatch(["doctor", "--seconds", "0.05"]) == 0
    said = capsys.readouterr().out
    for part in ("libraries", "host timers", "settings", "against itself", "clocks"):
        assert part in said
    assert max(map(len, said.splitlines())) <= 100
    assert len(said.splitlines()) <= 40


def test_the_doctor_tells_all_it_found_when_asked(capsys) -> None:
    assert dispatch(["doctor", "--seconds", "0", "--verbose"]) == 0
    said = capsys.readouterr().out
    for part in ("Libraries", "Timers", "permissions", "lock GPU clocks", "without events"):
        assert part in said
    assert dispatch(["doctor", "--seconds", "0", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["devices"][-1]["parts"][0]["name"] == "host timers"
    assert {"findings", "instruments", "machine"} <= set(told)


def test_ceilings_are_measured_kept_and_shown(tmp_path, capsys, monkeypatch) -> None:
    from pytest_perfgate.adapters.devices import loads_host

    monkeypatch.setattr(loads_host, "SIZE", 64)
    monkeypatch.setattr(loads_host, "MOST_BYTES", 1 << 20)
    assert dispatch(["ceilings", "--show", "--root", str(tmp_path)]) == 0
    assert "none measured" in capsys.readouterr().out
    assert dispatch(["ceilings", "--root", str(tmp_path)]) == 0
    assert "Kept in" in capsys.readouterr().out
    (path,) = tmp_path.rglob("ceilings.json")
    kept = json.loads(path.read_text())
    assert set(kept["tflops"]) == {"fp32", "fp64"}
    assert kept["bandwidth_gbps"] > 0
    assert dispatch(["ceilings", "--show", "--root", str(tmp_path), "--json"]) == 0
    assert "host-" in capsys.readouterr().out


def test_ceilings_of_a_library_that_does_not_work_here_are_an_error(capsys) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed", exc_type=ImportError)
    if torch.cuda.is_available():
        pytest.skip("a GPU is here")
    assert dispatch(["ceilings", "--runtime", "torch"]) == 17
    assert "runtime-unavailable" in capsys.readouterr().err
