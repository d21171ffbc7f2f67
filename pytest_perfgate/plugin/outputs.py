"""The files that options ask for: the record, one HTML page, Markdown; each written by its delivery."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from pytest_perfgate.model.faults import fault_error
from pytest_perfgate.model.verdict import RunReport
from pytest_perfgate.plugin.complaints import complain
from pytest_perfgate.plugin.measuring import built_ins

_FILES = ("json", "html", "markdown")


def write_outputs(config: pytest.Config, report: RunReport) -> tuple[Path, ...]:
    """Where they lie; paths are relative to where pytest was started."""
    asked = {name: getattr(config.option, f"perfgate_{name}") for name in _FILES}
    paths = {name: config.invocation_params.dir / path for name, path in asked.items() if path}
    if not paths:
        return ()
    built_ins(config)
    known = {delivery.name: delivery for found in _deliveries(config) for delivery in found}
    return tuple(path for name, path in paths.items() if _delivered(config, known[name], report, path))


def _delivered(config: pytest.Config, delivery: Any, report: RunReport, path: Path) -> bool:
    """A file that cannot be written fails the run, and costs neither the record nor what pytest has to say."""
    try:
        delivery.deliver(report, str(path))
    except Exception as fault:  # noqa: BLE001 - a plugin's may raise anything, and the record is still due
        complain(config, fault_error(fault, f"wrote {delivery.name}", str(path)))
        return False
    return True


def _deliveries(config: pytest.Config) -> Iterable[Iterable[Any]]:
    """Plugins' last, so that theirs win over ours of the same name."""
    return reversed(config.hook.pytest_perfgate_deliveries())  # type: ignore[no-any-return]
