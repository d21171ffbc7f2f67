from __future__ import annotations

import pytest

from pytest_perfgate.adapters.runtimes.fakes import FakeRuntime
from pytest_perfgate.app.instrument import choose_runtime, choose_timer, per_call
from pytest_perfgate.model.device import Availability
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.measurement import Samples, Stop
from pytest_perfgate.model.plan import Plan


class Missing(FakeRuntime):
    name = "missing"

    def availability(self):
        return Availability(name=self.name, usable=False, why="no driver", mend="install one")


class Timer:
    name = "events"

    def availability(self, runtime):
        return Availability(name=self.name, usable=False, why="no queue")


def test_a_library_that_was_asked_for_and_does_not_work_is_an_error() -> None:
    with pytest.raises(PerfgateError) as caught:
        choose_runtime(Plan(runtime="missing"), [Missing([1.0]), FakeRuntime([1.0])], frozenset())
    assert caught.value.code.name == "runtime-unavailable"
    assert "no driver" in caught.value.what
    assert caught.value.mend == "install one"


class Touched(Missing):
    """Found in the call, and it does not work."""

    def recognises(self, modules):
        return True

    def touches(self, call):
        return call == "its own"


def test_a_library_that_the_call_uses_and_that_does_not_work_is_no_matter_for_the_host() -> None:
    runtimes = [Touched([1.0]), host := FakeRuntime([1.0])]
    with pytest.raises(PerfgateError, match="the runtime missing does not work here: no driver"):
        choose_runtime(Plan(), runtimes, frozenset(), "its own")
    assert choose_runtime(Plan(), runtimes, frozenset(), "another's") is host
    assert choose_runtime(Plan(), runtimes, frozenset()) is host


def test_the_queue_of_the_call_is_taken_before_a_timer_is_looked_for() -> None:
    taken = []
    library = FakeRuntime([1.0])
    library.adopt = taken.append
    assert choose_runtime(Plan(runtime=library.name), [library], frozenset(), "call") is library
    assert choose_runtime(Plan(), [library], frozenset()) is library
    assert taken == ["call"]


@pytest.mark.parametrize(("family", "choose"), [("runtime", choose_runtime), ("timer", choose_timer)])
def test_names_that_nobody_has_are_errors(family, choose) -> None:
    plan = Plan(**{family: "none"})
    third = frozenset() if family == "runtime" else FakeRuntime([1.0])
    with pytest.raises(PerfgateError) as caught:
        choose(plan, [FakeRuntime([1.0])] if family == "runtime" else [Timer()], third)
    assert caught.value.code.name == f"{family}-unknown"


def test_a_timer_that_was_asked_for_is_never_replaced() -> None:
    with pytest.raises(PerfgateError, match="no queue"):
        choose_timer(Plan(timer="events"), [Timer()], FakeRuntime([1.0]))


def test_everything_is_per_call_where_one_call_makes_several() -> None:
    samples = Samples(
        durations=(40.0,), timer="cupti", stop=Stop.COUNT, span=(80.0,), cpu=(20.0,), overhead=4.0, resolution=2.0,
        launch_gap=12.0,
    )  # fmt: skip
    one = per_call(samples, 4)
    assert (one.durations, one.span, one.cpu) == ((10.0,), (20.0,), (5.0,))
    assert (one.overhead, one.resolution, one.launch_gap, one.batch) == (4.0, 2.0, 3.0, 4)
    assert per_call(samples, 1) is samples


def test_the_projects_own_data_sheet_is_what_a_runtime_measures_with() -> None:
    from pytest_perfgate.model.project import Config
    from pytest_perfgate.wiring.built_ins import BuiltIns

    own = Config(device=(("My Card", {"bandwidth_gbps": 1000, "lock_mhz": 1200}),), source="pyproject.toml")
    for runtime in BuiltIns(own).pytest_perfgate_runtimes():
        spec = runtime._lookup("My Card")
        assert (spec.bandwidth, spec.lock_hz) == (1e12, 1.2e9)
        assert runtime._lookup("NVIDIA H200").name == "H200 SXM"
    for runtime in BuiltIns().pytest_perfgate_runtimes():
        assert runtime._lookup("My Card") is None
    inspector = next(i for i in BuiltIns(own).pytest_perfgate_inspectors() if i.name == "kineto")
    assert inspector._catalogue().lookup("My Card").bandwidth == 1e12


def test_a_data_sheet_that_does_not_read_is_an_error_when_it_is_looked_into() -> None:
    from pytest_perfgate.model.project import Config
    from pytest_perfgate.wiring.built_ins import BuiltIns

    runtime = BuiltIns(Config(device=(("My Card", {"bandwith": 1}),))).pytest_perfgate_runtimes()[0]
    with pytest.raises(PerfgateError, match="device-entry"):
        runtime._lookup("My Card")
