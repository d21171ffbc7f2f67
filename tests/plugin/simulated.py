"""A clock that goes on by what calls say that they take, for suites whose verdicts follow from their times.

No machine is too busy for it: a limit is kept, or missed, by what the suite says. The samples of a call differ from
each other by half a percent, as those of a quiet machine do.
"""

from __future__ import annotations

from tests.plugin.projects import Project

CONFTEST = """
from pytest_perfgate.model.device import Device
from pytest_perfgate.testing import FakeRuntime


class Simulated(FakeRuntime):
    calls = 0

    def takes(self, nanoseconds):
        self.calls += 1
        self.host_ns += nanoseconds * (1 + 0.0025 * (self.calls % 3))

    def clock(self):
        self.host_ns += 20
        return super().clock()

    def device(self, index=0):
        return Device(key="simulated", name="Simulated host", kind="host")


SIMULATED = Simulated([1.0])


def pytest_perfgate_runtimes():
    return [SIMULATED]
"""


def simulate(project: Project, settings: str = "") -> None:
    """Time every call of a project on the simulated clock: ``from conftest import SIMULATED``."""
    project.configure(f'runtime = "fake"\ntimer = "host"\n{settings}', 'pythonpath = ["."]')
    project.write("conftest.py", CONFTEST)
