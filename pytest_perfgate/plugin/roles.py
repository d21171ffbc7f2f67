"""What a pytest is to the gate, and which of its tests concern the gate at all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pytest

ROLE = "perfgate-role"


def is_gated(item: pytest.Item) -> bool:
    """Whether a test has the marker or asks for the fixture; asked of every test of every session."""
    return item.get_closest_marker("perfgate") is not None or "perfgate" in getattr(item, "fixturenames", ())


def role_of(config: pytest.Config) -> Any:
    """What this pytest is to the gate: a child, a worker, or else the controller, from its first gated test on."""
    role = config.pluginmanager.get_plugin(ROLE)
    if role is None:
        from pytest_perfgate.plugin.controller import ControllerRole

        role = ControllerRole(config)
        config.pluginmanager.register(role, ROLE)
    return role
