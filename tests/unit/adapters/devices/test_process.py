"""What this process says of its thread pools."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

from pytest_perfgate.adapters.devices.host import probe_pools, probe_threads


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


def test_what_is_not_loaded_or_half_loaded_has_no_pool(torch, monkeypatch) -> None:
    del torch.get_num_threads
    assert probe_pools(lambda: torch) == ""
    monkeypatch.delitem(sys.modules, "torch")
    assert probe_pools(lambda: torch) == ""
