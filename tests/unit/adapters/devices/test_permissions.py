"""What is permitted, as the files of drivers and the kernel tell it."""

from __future__ import annotations

from pytest_perfgate.adapters.devices import host as permissions


def told(monkeypatch, tmp_path, *, driven, user=1000, text=None):
    path = tmp_path / "params"
    if text is not None:
        path.write_text(text)
    monkeypatch.setattr(permissions, "_NVIDIA_PARAMETERS", path)
    monkeypatch.setattr(permissions, "_AMD_NODES", tmp_path / "amdgpu")
    monkeypatch.setattr(permissions.os, "geteuid", lambda: user)
    return [(found.usable, found.why) for found in permissions.probe_gpu_permissions(driven=driven)]


def test_a_driver_that_works_without_its_files_is_believed(monkeypatch, tmp_path) -> None:
    lock, counters = told(monkeypatch, tmp_path, driven=True, user=0)
    assert (lock, counters) == ((True, ""), (False, "the driver does not tell here (a container, often)"))
    lock, counters = told(monkeypatch, tmp_path, driven=False, user=0)
    assert lock == (False, "no driver of a GPU is loaded")
    assert counters == (False, "NVIDIA's kernel module is not loaded")


def test_counters_and_locks_are_for_administrators_unless_the_driver_says_otherwise(monkeypatch, tmp_path) -> None:
    closed, opened = "RmProfilingAdminOnly: 1\n", "RmProfilingAdminOnly: 0\n"
    denied = (False, "for administrators only")
    assert told(monkeypatch, tmp_path, driven=True, text=closed) == [denied, denied]
    assert told(monkeypatch, tmp_path, driven=True, text=opened) == [denied, (True, "")]
    assert told(monkeypatch, tmp_path, driven=True, text=closed, user=0) == [(True, ""), (True, "")]


def test_what_restricts_devices_is_said(monkeypatch) -> None:
    env = {"HIP_VISIBLE_DEVICES": "1", "CUDA_VISIBLE_DEVICES": "0,1", "HOME": "/"}
    assert permissions.visible_devices(env) == "CUDA_VISIBLE_DEVICES=0,1, HIP_VISIBLE_DEVICES=1"
    assert permissions.visible_devices({}) == ""
