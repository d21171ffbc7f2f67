"""One screen, device by device, from instruments that only say what they are."""

from __future__ import annotations

from dataclasses import replace

from pytest_perfgate.app.diagnosis import DoctorTools, timed_here, unsuited
from pytest_perfgate.app.doctor import Level, Remark, brief, groups, screen
from pytest_perfgate.model.device import Availability, Device, DeviceSpec
from pytest_perfgate.model.errors import PerfgateError

SHEET = DeviceSpec(name="H200 SXM", pattern="H200", arch="sm_90")
CARD = Device(
    key="NVIDIA-H200-140GiB", name="NVIDIA H200", kind="gpu", uuid="GPU-7", memory_bytes=140 * 2.0**30, spec=SHEET
)
HOST = Device(key="host-epyc-64", name="AMD EPYC", kind="host", memory_bytes=2.0**38)


def works(name, version=""):
    return Availability(name=name, usable=True, version=version)


def fails(name, why, fix=""):
    return Availability(name=name, usable=False, why=why, fix=fix)


class Library:
    def __init__(self, name, queue=True) -> None:
        self.name = name
        if queue:
            self.wait = lambda event: None


class Instrument:
    def __init__(self, name, **why) -> None:
        self.name, self.why = name, why

    def availability(self, runtime):
        why = self.why.get(runtime.name, "")
        return Availability(name=self.name, usable=not why, why=why, fix="another" if why else "")


NO_QUEUE = "the host runtime has no queue of its own"
TIMERS = [
    Instrument("auto"),
    *(Instrument(name, host=NO_QUEUE) for name in ("events", "blocking", "graph")),
    Instrument("cupti", host=NO_QUEUE, torch="RuntimeError: NotSupportedError: only CUDA 13.0 or later"),
    Instrument("host"),
]
LOCK = "once for everybody: sudo perfgate clocks lock"


def doctor_tools(**changed) -> DoctorTools:
    parts = {
        "devices": [CARD, HOST],
        "libraries": [works("torch", "2.9.0"), fails("cupy", "ModuleNotFoundError: No module named 'cupy'", "pip install cupy"), works("host")],
        "runtimes": [Library("torch"), Library("host", queue=False)],
        "timers": TIMERS,
        "management": works("nvml", "driver 580.65"),
        "profilers": [works("nsys", "2025.3"), works("torch", "2.9.0"), works("event"), works("cubin"), fails("ncu", "ncu is not on the PATH", "install it"), fails("annotation", "ncu is not on the PATH", "install it")],
        "gpu_permissions": [fails("lock GPU clocks", "for administrators only", LOCK), fails("GPU counters", "for administrators only", "options nvidia")],
        "host_permissions": [works("processor counters"), fails("turbo off", "it is on")],
        "locks": [],
        "visible": "CUDA_VISIBLE_DEVICES=1",
        "restricted": True,
        "resolution": lambda runtime, timer: (73.0, 68.0) if timer == "host" else (3_200.0, 500.0),
    }  # fmt: skip
    return DoctorTools(**{**parts, **changed})


SCREEN = """\
NVIDIA-H200-140GiB: 140 GiB, data sheet H200 SXM
  libraries     yes  torch 2.9.0
                no   cupy: No module named 'cupy'; next: pip install cupy
  torch timers  yes  overhead/resolution: events 3.2 µs/500 ns, blocking 3.2 µs/500 ns, graph 3.2
                     µs/500 ns, host 73 ns/68 ns
                no   cupti: NotSupportedError: only CUDA 13.0 or later
  clocks        yes  observe (driver 580.65), off
                no   lock: for administrators only; next: once for everybody: sudo perfgate clocks
                     lock
  permissions   no   GPU counters: for administrators only; next: options nvidia
  profilers     yes  event
                no   ncu, annotation: ncu is not on the PATH; next: install it
  shown         yes  CUDA_VISIBLE_DEVICES=1
host-epyc-64: 256 GiB, no data sheet
  host timers  yes  overhead/resolution: host 73 ns/68 ns
               no   events, blocking, graph, cupti: the host runtime has no queue of its own
  profilers    yes  nsys 2025.3, torch 2.9.0, cubin
  settings     yes  processor counters
               no   turbo off: it is on
The same call against itself: shift +0.1 %, scatter of a pair 0.2 %. This machine is quiet.
"""


def test_a_machine_with_a_card_on_one_screen() -> None:
    assert screen(doctor_tools(), (0.001, 0.002)) == SCREEN


def test_a_timer_that_fails_when_it_is_tried_says_why() -> None:
    def fineness(runtime, timer):
        if timer == "cupti":
            raise PerfgateError("cupti-unproved", "a record without room was lost, and it was not counted")
        if timer == "graph":
            raise RuntimeError("an illegal memory access was encountered")
        return 3_200.0, 500.0

    tools = doctor_tools(
        timers=[Instrument(name, host=NO_QUEUE) for name in ("events", "graph", "cupti")], resolution=fineness
    )
    text = " ".join(screen(tools, None).split())
    assert "no graph: an illegal memory access was encountered; cupti: a record without room was lost" in text
    assert "torch timers yes overhead/resolution: events 3.2 µs/500 ns no" in text
    assert any("torch without cupti: a record without room" in line for line in unsuited(tools))


def test_an_administrator_locks_and_nobody_looks_at_what_is_not_restricted() -> None:
    text = screen(doctor_tools(gpu_permissions=[works("lock GPU clocks")], restricted=False), None)
    assert "yes  observe (driver 580.65), lock (as root; not tried), off" in text
    assert "shown" not in text


def test_without_a_card_the_reasons_come_first() -> None:
    libraries = [fails("torch", "RuntimeError: torch 2.9.0 sees no GPU", "a build for it"), works("host")]
    tools = doctor_tools(devices=[HOST], runtimes=[Library("host", queue=False)], libraries=libraries, management=fails("nvml", "no driver"))  # fmt: skip
    none, host = groups(tools)
    assert none.title == "No GPU that a library can use"
    title = groups(replace(tools, driven=["NVIDIA L4", "NVIDIA L4", "NVIDIA T4"]))[0].title
    assert title == "No GPU that a library can use, though the driver sees 2 x NVIDIA L4, 1 x NVIDIA T4"
    text = screen(tools, None)
    assert "no   torch: torch 2.9.0 sees no GPU; next: a build for it" in text
    assert "no   observe, lock: no driver" in text
    assert [part.name for part in host.parts] == ["host timers", "profilers", "settings"]


def test_event_mode_is_there_where_a_device_has_events() -> None:
    event, host, card = works("event"), Library("host", queue=False), Library("torch")
    assert timed_here(event, [host, card]) is event
    assert timed_here(event, [host]) == replace(event, usable=False, why="no library here has a device with events")
    assert timed_here(works("nsys"), [host]).usable
    processor = replace(HOST, key="pocl")
    mine = groups(doctor_tools(devices=[processor, HOST], runtimes=[Library("opencl"), host]))[1]
    assert [line for part in mine.parts for line in part.lines() if part.name == "profilers"] == [
        ("profilers", "yes", "event")
    ]


def test_what_is_well_has_one_line_a_check() -> None:
    good = [Remark(name="baselines", level=Level.GOOD, what=f"device {at}") for at in range(3)]
    bad = Remark(name="baselines", level=Level.BAD, what="broken")
    assert [finding.what for finding in brief([good[0], bad, *good[1:]])] == ["device 0; 2 more", "broken"]
    assert brief([good[0]]) == (good[0],)
