from __future__ import annotations

from pytest_perfgate.core.metric_kinds import BUILT_IN, by_name
from pytest_perfgate.model.values import Dimension


def test_every_name_is_answered_once() -> None:
    names = [name for kind in BUILT_IN for name in (kind.name, *kind.aliases)]
    assert len(names) == len(set(names))


def test_profiles_share_one_set_of_kinds() -> None:
    table = by_name()
    assert table["overlap"].dimension is Dimension.FRACTION
    assert table["exposed_comm"].dimension is Dimension.TIME
    assert {"stage", "rank", "stream", "op", "kernel"} <= set(table["overlap"].scopes)


def test_a_positional_scope_is_one_of_its_scopes() -> None:
    assert all(kind.positional in {"", *kind.scopes} for kind in BUILT_IN)
