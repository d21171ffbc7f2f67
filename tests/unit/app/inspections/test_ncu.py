"""Reports of two programs: nothing of one says anything of the other."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_perfgate.adapters.devices.visible import DeviceCatalogue
from pytest_perfgate.adapters.readers.ncu_report import read_ncu
from pytest_perfgate.app.inspections.ncu import Ncu, Rocprof
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.profiles import Counter, KernelFacts

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


def test_dispatches_of_one_launch_keep_their_own_times_and_counters() -> None:
    facts = [
        KernelFacts(name=name, arch="gfx942", duration=time, counters=counters, index=index)
        for index, (name, time, counters) in enumerate(
            [
                ("a", 5.0, {}),
                ("a", 7.0, {}),
                ("a", None, {}),
                ("b", 7.0, {}),
                ("a", 9.0, {"MfmaUtil": Counter(name="MfmaUtil", value=40.0)}),
            ]
        )
    ]
    rocprof = Rocprof(lambda _: facts, DeviceCatalogue)
    alike = rocprof._diagnosed([], {})
    assert [d.numbers.get("duration") for d in alike] == [5.0, 7.0, None, 7.0, 9.0]
    assert [d.facts for d in alike] == facts
    assert [d.name for d in alike] == ["a", "a", "a", "b", "a"]
    assert ["tc_util" in d.numbers for d in alike] == [False, False, False, False, True]
