"""Processors by what their machines tell; two models of one family must not share a key."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_perfgate.adapters.devices import host as processor
from pytest_perfgate.adapters.devices.host import host_key, parse_cpuinfo, probe_last_cache, probe_name

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
    monkeypatch.setattr(processor.sys, "platform", "darwin")
    monkeypatch.setattr(processor, "_SYSCTL", str(command))

    assert (probe_name(), probe_last_cache()) == ("Apple M1 Pro", 12 * 2**20)


def test_what_a_machine_does_not_tell_is_not_invented(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processor, "_CPUINFO", tmp_path / "none")
    monkeypatch.setattr(processor, "_CACHES", tmp_path / "none")
    monkeypatch.setattr(processor.platform, "processor", lambda: "")
    monkeypatch.setattr(processor.platform, "machine", lambda: "")

    assert (parse_cpuinfo(""), probe_name(), probe_last_cache()) == ("", "unknown", None)
