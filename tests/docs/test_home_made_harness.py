"""The page "from a home-made harness": what is ported has half the lines, and none of the harness."""

from __future__ import annotations

from tests.docs.pages import ROOT, blocks

FILES = {block.value: block.text for block in blocks(ROOT / "docs" / "home-made-harness.md") if block.key == "file"}


def lines(name: str) -> int:
    return sum(bool(line.strip()) for line in FILES[name].splitlines())


def test_the_ported_benchmark_has_half_the_lines_without_counting_the_harness() -> None:
    assert lines("test_normalise.py") <= lines("before/test_normalise_benchmark.py") / 2
    assert "before/conftest.py" in FILES
    assert "conftest.py" not in FILES


def test_both_say_the_same_of_the_kernel() -> None:
    before, after = FILES["before/test_normalise_benchmark.py"], FILES["test_normalise.py"]
    assert all(word in before for word in ("kernel=", "params=", "time_us=", "bandwidth_gbs=", 'extras={"speedup"'))
    assert all(word in after for word in ("slowdown", "bandwidth", "speedup(over=plain)", "perfgate.same"))
    assert ("(16, 256), (32, 1024)" in before) is ("(16, 256), (32, 1024)" in after) is True
