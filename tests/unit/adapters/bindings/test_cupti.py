"""How the proof of CUPTI's counter ended in a process of its own, and where that is kept."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from pytest_perfgate.adapters.bindings import cupti


@pytest.mark.parametrize(
    ("code", "stderr", "why"),
    [(0, "", ""), (-11, "", "died of signal 11"), (1, "x\nno device", "no device"), (1, "", "exit code 1")],
)
def test_how_a_proof_elsewhere_ended(monkeypatch, code, stderr, why) -> None:
    def run(command, timeout_s, **named):
        assert command[-1] == cupti.__name__
        return SimpleNamespace(returncode=code, stderr=stderr.encode())

    monkeypatch.setattr(cupti, "run_captured", run)
    reason = cupti.proof_failure.__wrapped__()
    assert reason.endswith(why)
    assert bool(reason) is bool(why)


def test_what_was_proved_is_kept_for_a_driver_and_its_packages(monkeypatch, tmp_path) -> None:
    runs, codes = [], iter([1, 0, 0, 0, 0, 0])

    def run(command, timeout_s, **named):
        runs.append(command)
        return SimpleNamespace(returncode=next(codes), stderr=b"not counted")

    def first_failure() -> str:
        return cupti.proof_failure.__wrapped__(tmp_path / "kept")

    driver = tmp_path / "version"
    driver.write_text("NVRM version: 580.159")
    monkeypatch.setattr(cupti, "run_captured", run)
    monkeypatch.setattr(cupti, "DRIVER", driver)
    assert [first_failure() for _ in range(3)] == ["not counted", "", ""]
    assert len(runs) == 2, "what failed is tried again, what held is not"
    driver.write_text("NVRM version: 590.1")
    assert (first_failure(), len(runs)) == ("", 3)
    driver.unlink()
    libraries = {"/lib/libc.so.6"}
    monkeypatch.setattr(cupti, "mapped_libraries", lambda: libraries)
    assert [(first_failure(), len(runs)) for _ in range(2)] == [("", 4), ("", 5)], "an unknown driver proves nothing"
    libraries.add("/usr/lib/libcuda.so.590.1")
    assert [(first_failure(), len(runs)) for _ in range(2)] == [("", 6), ("", 6)], "the library names its driver"
