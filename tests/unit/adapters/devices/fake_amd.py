"""A module that behaves as amdsmi does, over two cards."""

from __future__ import annotations

from types import SimpleNamespace

UUIDS = ("12ff74a1-0000-1000-80f6-2ec6f9c5de6b", "8eff74a1-0000-1000-80c1-15ff1e4b4bd0")
BUSES = ("0000:05:00.0", "0000:26:00.0")


class AmdSmiException(Exception):
    """amdsmi's own."""


class AmdSmiLibraryException(AmdSmiException):
    def __init__(self, err_code: int) -> None:
        self.err_code = err_code
        super().__init__(f"Error code:\n\t{err_code} | AMDSMI_STATUS")


class FakeAmdSmi:
    """The names of amdsmi that are used, over two cards."""

    AmdSmiException = AmdSmiException
    AmdSmiClkType = SimpleNamespace(GFX="gfx", MEM="mem")
    AmdSmiTemperatureType = SimpleNamespace(HOTSPOT="hotspot")
    AmdSmiTemperatureMetric = SimpleNamespace(CURRENT="current", CRITICAL="critical")
    AmdSmiDevPerfLevel = SimpleNamespace(AUTO="auto")
    AmdSmiMemoryType = SimpleNamespace(VRAM="vram")

    def __init__(self) -> None:
        self.changes, self.refuses, self.keeps = [], 0, 0
        self.cap, self.clock, self.temperature, self.cooling = 0, 2100, 50, 0
        self.active, self.pids, self.gone = {}, [], False
        self.clock_key = "clk"
        self.memory, self.highest, self.one_clock = 1300, 1300, 2

    def amdsmi_init(self) -> None:
        self.changes.append("init")

    def amdsmi_get_processor_handles(self):
        return [0, 1]

    def amdsmi_get_gpu_device_uuid(self, handle):
        return UUIDS[handle]

    def amdsmi_get_gpu_device_bdf(self, handle):
        return BUSES[handle]

    def amdsmi_get_gpu_asic_info(self, handle):
        return {"market_name": "AMD Instinct MI300X"}

    def amdsmi_get_gpu_driver_info(self, handle):
        return {"driver_version": "6.10.5"}

    def amdsmi_get_gpu_memory_total(self, handle, kind):
        raise AmdSmiLibraryException(2)

    def amdsmi_get_clock_info(self, handle, kind):
        if self.gone:
            raise AmdSmiLibraryException(32)
        clock = min(self.cap or self.clock, self.clock) if kind == "gfx" else self.memory
        return {self.clock_key: clock, "max_clk": 2100 if kind == "gfx" else self.highest}

    def amdsmi_get_temp_metric(self, handle, kind, metric):
        if metric == "critical":
            return 100
        self.temperature -= self.cooling
        return self.temperature

    def amdsmi_get_power_info(self, handle):
        return {"socket_power": "N/A", "average_socket_power": 640}

    def amdsmi_get_violation_status(self, handle):
        return {"active_ppt_pwr": False, "active_hbm_thrm": "N/A", **self.active}

    def amdsmi_get_gpu_process_list(self, handle):
        return [{"pid": pid, "name": "x"} for pid in self.pids]

    def amdsmi_set_gpu_perf_determinism_mode(self, handle, megahertz):
        if self.refuses:
            raise AmdSmiLibraryException(self.refuses)
        self.changes.append(("determinism", handle, megahertz))
        self.cap = megahertz

    def amdsmi_set_gpu_clk_limit(self, handle, kind, limit, megahertz):
        if self.one_clock:
            raise AmdSmiLibraryException(self.one_clock)
        self.changes.append((kind, limit, megahertz))

    def amdsmi_set_gpu_perf_level(self, handle, level):
        if self.keeps:
            raise AmdSmiLibraryException(self.keeps)
        self.changes.append(("level", handle, level))
        self.cap = 0
