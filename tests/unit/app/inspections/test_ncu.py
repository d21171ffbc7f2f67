"""Reports of two programs: nothing of one says anything of the other."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_perfgate.adapters.devices.visible import DeviceCatalogue
from pytest_perfgate.adapters.readers.ncu_report import read_ncu
from pytest_perfgate.app.inspections.ncu import Ncu
from pytest_perfgate.model.errors import PerfgateError

HEAD = '"ID","Kernel Name","Block Size","Grid Size","CC","Metric Name","Metric Unit","Metric Value"\n'


def page(path: Path, *names: str) -> Path:
    who = '"(1, 1, 1)","(1, 1, 1)","8.0","Duration","us"'
    path.write_text(HEAD + "".join(f'"{at}","{name}",{who},"{at + 1}"\n' for at, name in enumerate(names)))
    return path


def test_two_reports_without_a_kernel_in_common_are_not_compared(tmp_path: Path) -> None:
    ncu = Ncu(read_ncu, DeviceCatalogue)
    one, other = page(tmp_path / "a.csv", "first", "second"), page(tmp_path / "b.csv", "third")
    with pytest.raises(PerfgateError, match="no kernel in common: first, second; and third"):
        ncu.compare([one], [other], {})
    both = page(tmp_path / "c.csv", "second", "fourth")
    assert ncu.compare([one], [both], {}).metrics.find("slowdown")
