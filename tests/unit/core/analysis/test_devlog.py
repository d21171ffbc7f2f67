from __future__ import annotations

from pytest_perfgate.core.analysis.kernels.devlog import Version, updated_devlog
from pytest_perfgate.core.analysis.kernels.diagnosis import diagnose
from pytest_perfgate.model.kernel import Counter, KernelFacts


def version(name: str, duration: float) -> Version:
    counters = {
        n: Counter(name=n, value=v)
        for n, v in (
            ("gpu__time_duration.sum", duration),
            ("dram__throughput.avg.pct_of_peak_sustained_elapsed", 81.0),
            ("sm__throughput.avg.pct_of_peak_sustained_elapsed", 20.0),
        )
    }
    facts = KernelFacts(name="attention", arch="sm_90", counters=counters, duration=duration)
    return Version(
        name=name,
        changed="TMA loads in place of cp.async.",
        diagnosis=diagnose(facts, "attention", None),
        device="H200",
        dtype="bfloat16",
        parameters={"b": "32", "t": "4096"},
        locked=True,
    )


def test_an_entry_says_what_changed_and_by_how_much() -> None:
    text = updated_devlog("# attention\n", version("v2", 400_000.0), version("v1", 500_000.0))
    assert (
        text
        == """# attention

## v2

TMA loads in place of cp.async.

**Performance** (H200, locked clocks, bfloat16, b=32, t=4096):

| Metric | Value | vs Previous |
|---|---:|---:|
| Duration | 400 µs | 25.0 % faster |
| Achieved TFLOPs/s | not collected | -- |
| Achieved GB/s | not collected | -- |
| Occupancy | not collected | -- |
| TC Util | not collected | -- |

**Bottleneck**: Memory-bound. attention is memory-bound: compute 20.0 % of its roof, memory 81.0 % of its roof; latency is 21.0 points away.

**Issues**:

- (nothing written yet)

**Insights**:

- (nothing written yet)
"""
    )


def test_what_people_wrote_survives_writing_again() -> None:
    first = updated_devlog("", version("v1", 500_000.0))
    by_hand = first.replace("**Issues**:\n\n- (nothing written yet)", "**Issues**:\n\n- spills at t=8192\n- *why?*")
    grown = updated_devlog(by_hand, version("v2", 450_000.0), version("v1", 500_000.0))
    again = updated_devlog(grown, version("v1", 490_000.0))
    assert "- spills at t=8192\n- *why?*" in again
    assert "490 µs" in again
    assert again.index("## v1") < again.index("## v2")
    assert again.count("## v1") == 1
    assert updated_devlog(again, version("v1", 490_000.0)) == again
