"""What surrounds a measurement: only what this machine really tells."""

from __future__ import annotations

import pytest

from pytest_perfgate.adapters.devices.host import parse_nvidia, probe_environment, probe_facts, probe_packages


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


def test_facts_are_texts_and_none_is_empty() -> None:
    facts = dict(probe_facts())
    assert "processor" in facts
    assert all(isinstance(text, str) and text for text in facts.values())
    packages = dict(probe_packages())
    assert "numpy" in packages
    assert list(packages) == sorted(packages)
    assert "load" not in dict(probe_environment().lasting.facts)
