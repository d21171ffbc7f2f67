"""Tests of the project that test_vacuous.py runs: each gets away with something, or tries to."""

from __future__ import annotations

ROWS = """
    import os, pathlib, pytest

    gate = pytest.mark.perfgate

    def judged(request):
        return getattr(request.config.option, "xmlpath", None)

    @gate("time <= 1s")
    def test_never_asks():
        pass

    @gate("time <= 1s")
    def test_never_calls(perfgate):
        pass

    @gate("time <= 1s")
    def test_region_never_entered(perfgate):
        perfgate.region()

    @gate("time <= 1s")
    def test_region_limited_later(perfgate):
        for limits in ((), ("time <= 1ns",)):
            with perfgate.region(limits=limits):
                pass

    @gate("time <= 1s")
    def test_region_with_other_work(perfgate):
        from pytest_perfgate import work
        for n in (4, 4, 8):
            with perfgate.region(work=work.gemm(n, 4, 4, dtype="fp32"), limits=["time <= 1s"]):
                pass

    @gate("time <= 1s")
    def test_nothing_recorded(perfgate):
        perfgate.record([])

    @gate("time <= 1s")
    def test_zero(perfgate):
        perfgate.record([1.0] * 29 + [0.0])

    @gate("time <= 1s")
    def test_nan(perfgate):
        perfgate.record([float("nan")] * 30)

    @gate("time <= 1s", timer="losing", runtime="card", clocks="off")
    def test_discarded(perfgate):
        perfgate(int)

    @gate("time <= 1s", on="H200*")
    def test_other_device(perfgate):
        perfgate(int)

    @gate("overlap >= 50%")
    def test_metric_never_produced(perfgate):
        perfgate(int)

    @gate("time(case=bwd) <= 1s")
    def test_no_such_call(perfgate):
        perfgate(int, name="fwd")

    @gate("time <= 1s")
    def test_no_such_call_of_the_call(perfgate):
        perfgate(int, name="fwd", limits=["time(case=bwd) <= 1ns"])

    def test_asks_late(request):
        request.getfixturevalue("perfgate")(int)

    @gate("time <= 1s")
    def test_caught(perfgate):
        with pytest.raises(ValueError):
            perfgate(int, "odd")

    @gate("time <= 1s")
    def test_caught_when_checked(perfgate):
        perfgate(int, name="right")
        with pytest.raises(Exception, match="check"):
            perfgate(int, check=lambda result: result == 1, name="wrong")
        with pytest.raises(OSError), perfgate.region("lost"):
            raise OSError("no device\\nof that name")

    @gate("time <= 1s")
    def test_caught_now_and_then(perfgate):
        for turn in range(5):
            try:
                with perfgate.region("a"):
                    if turn == 2:
                        raise ValueError("the third")
            except ValueError:
                pass

    @gate("slowdown <= 3%")
    def test_new(perfgate):
        perfgate(int)

    @gate("time <= 1s")
    def test_kept(perfgate):
        perfgate(int)

    @gate("time <= 1s")
    def test_only_measured(perfgate, request):
        if not judged(request):
            perfgate(int)

    @gate("time <= 1s")
    def test_only_judged(perfgate, request):
        perfgate(int, name="always")
        if judged(request):
            perfgate(int, name="sometimes")

    @gate("time <= 1s")
    def test_in_some_rounds(perfgate, request):
        first = pathlib.Path("first")
        perfgate(int, name="always")
        if judged(request) or not first.exists():
            first.touch()
            perfgate(int, name="sometimes")

    @gate("time <= 1ns")
    @pytest.mark.xfail
    def test_excused(perfgate):
        perfgate.record([5.0] * 30)

    @gate("time <= 1ns")
    @pytest.mark.xfail(strict=True)
    def test_excused_strictly(perfgate):
        perfgate.record([5.0] * 30)

    @gate("time <= 1s")
    @pytest.mark.xfail(strict=True)
    def test_not_failing(perfgate):
        perfgate(int)

    @gate("time <= 1s")
    def test_skipped(perfgate):
        pytest.skip("not today")

    class TestClass:
        @gate("time <= 1s", "time(case=slow) <= 1ns")
        def test_two_calls(self, perfgate):
            perfgate(int, name="fast")
            perfgate.record([5.0] * 30, name="slow")

    def test_same_name_twice(perfgate):
        perfgate(int)
        perfgate(int)
"""
LOSING = """
    from pytest_perfgate.model.device import Availability, Device
    from pytest_perfgate.model.samples import Discard, Samples, Stop

    class Card:
        name = "card"

        def availability(self):
            return Availability(name=self.name, usable=True)

        def recognises(self, modules):
            return False

        def device(self, index=0):
            return Device(key="card", name="Card", kind="host")

    class Losing:
        name = "losing"

        def availability(self, runtime):
            return Availability(name=self.name, usable=runtime.name == "card", why="not here")

        def measure(self, call, plan, runtime, setup=None):
            gone = (Discard(reason="throttled", count=7),)
            return Samples(durations=(), timer=self.name, stop=Stop.BUDGET, discarded=gone)

    def pytest_perfgate_runtimes():
        return [Card()]

    def pytest_perfgate_timers():
        return [Losing()]
"""
