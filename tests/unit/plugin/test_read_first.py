"""An option that does not read ends the run with a sentence, before its first test and once."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pytest_perfgate.plugin.options import OPTIONS
from pytest_perfgate.plugin.session import GateSession
from pytest_perfgate.plugin.state import Settings


def given(**fields: Any) -> Any:
    """Options as they are where nobody gave one, but for these."""
    names = {option.settings.get("dest", option.name[2:].replace("-", "_")): option for option in OPTIONS}
    plain = {name: option.settings.get("default") for name, option in names.items()}
    return SimpleNamespace(**{**plain, "usepdb": False, "trace": False, **fields})


@pytest.mark.parametrize("mode", ["quick", "full", "off"])
@pytest.mark.parametrize(
    ("option", "text", "said"),
    [
        ("perfgate_budget", "bad", "'bad' is not a time"),
        ("perfgate_policy", ["missing=foo"], "'missing' cannot be 'foo'"),
    ],
)
def test_what_does_not_read_is_said_before_the_first_test(
    mode: str, option: str, text: Any, said: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CI", raising=False)
    config: Any = SimpleNamespace(option=given(**{"perfgate_mode": mode, option: text}), rootpath=tmp_path, stash={})
    with pytest.raises(pytest.UsageError, match=said):
        GateSession(Settings(config)).prepare([])
