"""Tests of adapters/devices/host."""

from __future__ import annotations

import platform
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from pytest_perfgate.adapters.devices import host as host_module
from pytest_perfgate.adapters.devices.host import (
    NEAR,
    host_key,
    near_cores,
    numbers,
    parse_cpuinfo,
    parse_nvidia,
    probe_affinity,
    probe_environment,
    probe_facts,
    probe_last_cache,
    probe_name,
    probe_packages,
    probe_pools,
    probe_threads,
    settle_near,
)
from pytest_perfgate.model.project import REQUEST


def permissions_of(monkeypatch, tmp_path, *, driven, user=1000, text=None):
    path = tmp_path / "params"
    if text is not None:
        path.write_text(text)
    monkeypatch.setattr(host_module, "_NVIDIA_PARAMETERS", path)
    monkeypatch.setattr(host_module, "_AMD_NODES", tmp_path / "amdgpu")
    monkeypatch.setattr(host_module.os, "geteuid", lambda: user)
    return [(one.usable, one.why) for one in host_module.probe_gpu_permissions(driven=driven)]


def test_a_driver_that_works_without_its_files_is_believed(monkeypatch, tmp_path) -> None:
    lock, counters = permissions_of(monkeypatch, tmp_path, driven=True, user=0)
    assert (lock, counters) == ((True, ""), (False, "the driver hides it here (often a container)"))
    lock, counters = permissions_of(monkeypatch, tmp_path, driven=False, user=0)
    assert lock == (False, "no driver of a GPU is loaded")
    assert counters == (False, "NVIDIA's kernel module is not loaded")


def test_counters_and_locks_are_for_administrators_unless_the_driver_says_otherwise(monkeypatch, tmp_path) -> None:
    closed, opened = "RmProfilingAdminOnly: 1\n", "RmProfilingAdminOnly: 0\n"
    denied = (False, "for administrators only")
    assert permissions_of(monkeypatch, tmp_path, driven=True, text=closed) == [denied, denied]
    assert permissions_of(monkeypatch, tmp_path, driven=True, text=opened) == [denied, (True, "")]
    assert permissions_of(monkeypatch, tmp_path, driven=True, text=closed, user=0) == [(True, ""), (True, "")]


def test_what_restricts_devices_is_said(monkeypatch) -> None:
    env = {"HIP_VISIBLE_DEVICES": "1", "CUDA_VISIBLE_DEVICES": "0,1", "HOME": "/"}
    assert host_module.visible_devices(env) == "CUDA_VISIBLE_DEVICES=0,1, HIP_VISIBLE_DEVICES=1"
    assert host_module.visible_devices({}) == ""


class Tensor:
    """Stands for torch's."""


@pytest.fixture
def torch(monkeypatch) -> ModuleType:
    made = ModuleType("torch")
    made.Tensor, made.nn = Tensor, ModuleType("torch.nn")
    made.nn.Module = type("Module", (), {})
    made.get_num_threads = lambda: 2
    monkeypatch.setitem(sys.modules, "torch", made)
    return made


def test_a_call_that_uses_torch_says_its_threads_and_another_does_not(torch) -> None:
    data, array = Tensor(), [1.0]
    assert probe_pools(lambda: data) == "torch=2"
    assert probe_pools(lambda: torch.add(array)) == "torch=2"
    assert probe_pools(lambda: sum(array)) == probe_pools(None) == ""
    assert "torch" not in probe_threads()


@pytest.mark.parametrize(
    "name", ["OMP_NUM_THREADS", "POLARS_MAX_THREADS", "RAYON_NUM_THREADS", "TF_NUM_INTRAOP_THREADS"]
)
def test_the_size_of_a_pool_is_part_of_the_identity(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "3")
    assert f"{name}=3" in probe_threads().split()


def test_what_is_not_loaded_or_half_loaded_has_no_pool(torch, monkeypatch) -> None:
    del torch.get_num_threads
    assert probe_pools(lambda: torch) == ""
    monkeypatch.delitem(sys.modules, "torch")
    assert probe_pools(lambda: torch) == ""


GRACE = "processor\t: 0\nCPU implementer\t: 0x41\nCPU variant\t: 0x0\nCPU part\t: 0xd4f\n\n" * 2
BIG_LITTLE = "CPU implementer : 0x41\nCPU part : 0xd08\nCPU implementer : 0x41\nCPU part : 0xd03\nHardware : BCM2711\n"


@pytest.mark.parametrize(
    ("text", "name", "key"),
    [
        ("model name\t: AMD EPYC 7763 64-Core Processor\n", "AMD EPYC 7763 64-Core Processor", "host-amd-epyc-7763-8"),
        (
            "cpu MHz : 1\ncpu\t\t: POWER9, altivec supported\n",
            "POWER9, altivec supported",
            "host-power9-altivec-supported-8",
        ),
        (GRACE, "ARM Neoverse-V2", "host-arm-neoverse-v2-8"),
        (BIG_LITTLE, "ARM Cortex-A72 + ARM Cortex-A53", "host-arm-cortex-a72-arm-cortex-a53-8"),
        ("CPU implementer : 0x99\nCPU part : 0x1\n", "maker 0x99 part 0x001", "host-maker-0x99-part-0x001-8"),
        ("CPU implementer : 0x41\nHardware : Board\n", "Board", "host-board-8"),
    ],
)
def test_a_processor_has_the_name_of_its_model(text: str, name: str, key: str) -> None:
    assert parse_cpuinfo(text) == name
    assert host_key(name, 8) == key


def test_macos_is_asked_by_its_own_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command = tmp_path / "sysctl"
    command.write_text(
        '#!/bin/sh\ncase "$2" in machdep.cpu.brand_string) echo "Apple M1 Pro";; hw.perflevel0.l2cachesize) echo 12582912;;'
        " *) exit 1;; esac\n"
    )
    command.chmod(0o755)
    monkeypatch.setattr(host_module.sys, "platform", "darwin")
    monkeypatch.setattr(host_module, "_SYSCTL", str(command))

    assert (probe_name(), probe_last_cache()) == ("Apple M1 Pro", 12 * 2**20)


def test_what_a_machine_does_not_tell_is_not_invented(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_module, "_CPUINFO", tmp_path / "none")
    monkeypatch.setattr(host_module, "_CACHES", tmp_path / "none")
    monkeypatch.setattr(host_module.platform, "processor", lambda: "")
    monkeypatch.setattr(host_module.platform, "machine", lambda: "")

    assert (parse_cpuinfo(""), probe_name(), probe_last_cache()) == ("", "unknown", None)


@pytest.mark.parametrize(
    ("text", "version"),
    [
        (
            "NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.86.10  Wed Jan 15 2025\nGCC version: 12.2.0",
            "570.86.10",
        ),
        ("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65  Release Build", "580.65"),
        ("", ""),
        ("nonsense", ""),
    ],
)
def test_the_driver_is_read_from_the_kernel_s_word(text: str, version: str) -> None:
    assert parse_nvidia(text) == version


def test_a_run_of_a_pull_request_is_known_by_its_target(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHANGE_TARGET", "main")
    environment = probe_environment()
    assert REQUEST in dict(environment.facts)
    assert REQUEST not in dict(environment.lasting.facts), "no baseline keeps it"


def test_facts_are_texts_and_none_is_empty() -> None:
    facts = dict(probe_facts())
    assert "processor" in facts
    assert all(isinstance(text, str) and text for text in facts.values())
    packages = dict(probe_packages())
    assert "numpy" in packages
    assert list(packages) == sorted(packages)
    assert "load" not in dict(probe_environment().lasting.facts)


@pytest.mark.parametrize(
    ("maker", "flags", "gil", "jit", "text"),
    [
        ("CPython", "", True, False, "3.14.2"),
        ("CPython", "t", False, False, "3.14.2t"),
        ("CPython", "t", True, True, "3.14.2t, GIL on, JIT"),
        ("CPython", "d", True, True, "3.14.2, JIT"),
        ("PyPy", "", True, False, "PyPy 3.14.2"),
    ],
)
def test_builds_and_switches_of_python_differ(
    monkeypatch: pytest.MonkeyPatch, maker: str, flags: str, gil: bool, jit: bool, text: str
) -> None:
    monkeypatch.setattr(platform, "python_version", lambda: "3.14.2")
    monkeypatch.setattr(platform, "python_implementation", lambda: maker)
    monkeypatch.setattr(sys, "abiflags", flags)
    monkeypatch.setattr(sys, "_is_gil_enabled", lambda: gil, raising=False)
    monkeypatch.setattr(sys, "_jit", SimpleNamespace(is_enabled=lambda: jit), raising=False)
    assert probe_environment().python == text


def test_packages_are_named_by_the_head_of_what_describes_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    described = {
        "fast_sums-1.2.dist-info/METADATA": "Metadata-Version: 2.1\nName: Fast_Sums\nVersion: 1.2\n\nName: other\n",
        "old.egg-info/PKG-INFO": "Name: old-sums\nVersion: 0.1+local\nSummary: of sums\n",
        "broken-3.dist-info/RECORD": "",
        "unasked-4.dist-info/METADATA": "Name: unasked\nVersion: 4\n",
    }
    for name, text in described.items():
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    packages = dict(probe_packages({"fast-sums", "old-sums", "broken", "other"}))
    assert (packages["fast_sums"], packages["old-sums"]) == ("1.2", "0.1+local")
    assert not {"other", "broken", "unasked", ""} & packages.keys()
    assert packages["pytest"] == pytest.__version__


@pytest.mark.parametrize(
    ("text", "cores"),
    [("0-3,8", {0, 1, 2, 3, 8}), ("5", {5}), (" 1 , 2-2\n", {1, 2}), ("", set()), ("a-b", set()), ("-", set())],
)
def test_numbers_of_cores(text: str, cores: set[int]) -> None:
    assert numbers(text) == cores


@pytest.fixture
def buses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two cards on two nodes of four cores each."""
    for address, cores in (("0000:1b:00.0", "0-3"), ("0000:3b:00.0", "4-7")):
        (tmp_path / address).mkdir()
        (tmp_path / address / "local_cpulist").write_text(f"{cores}\n")
    allowed = [set(range(8))]
    monkeypatch.setattr(host_module.os, "sched_getaffinity", lambda pid: allowed[0], raising=False)
    monkeypatch.setattr(host_module.os, "sched_setaffinity", lambda pid, cores: allowed.insert(0, cores), raising=False)
    monkeypatch.setattr(host_module.os, "cpu_count", lambda: 8)
    monkeypatch.delenv(NEAR, raising=False)
    return tmp_path


@pytest.mark.parametrize(
    ("addresses", "near"),
    [
        (["00000000:1B:00.0"], {NEAR: "0-3 of all"}),
        (["0000:3b:00.0"], {NEAR: "4-7 of all"}),
        (["00000000:1B:00.0", "00000000:3B:00.0"], {}),
        (["00000000:5B:00.0"], {}),
        ([""], {}),
    ],
)
def test_cores_next_to_a_card(buses: Path, addresses: list[str], near: dict[str, str]) -> None:
    assert near_cores(addresses, buses) == near


def test_a_child_next_to_its_card_is_comparable_with_one_that_is_not(
    buses: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ((name, text),) = near_cores(["0000:3b:00.0"], buses).items()
    monkeypatch.setenv(name, text)
    assert probe_affinity() == "all"
    settle_near()
    assert host_module.os.sched_getaffinity(0) == {4, 5, 6, 7}
    assert probe_affinity() == "all"
    host_module.os.sched_setaffinity(0, {4})
    assert probe_affinity() == "4", "somebody else restricted it"
