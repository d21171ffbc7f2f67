"""Measured ceilings: one small file in the folder of a device's baselines."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pytest_perfgate.adapters.system.files import write_atomically
from pytest_perfgate.model.ceilings import Ceilings
from pytest_perfgate.model.errors import PerfgateError

NAME = "ceilings.json"


class CeilingStore:
    """Reads and writes them by the key of a device."""

    def __init__(self, home: Callable[[str], Path]) -> None:
        self._home = home

    def read(self, device: str) -> Ceilings | None:
        path = self._home(device) / NAME
        try:
            text = path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError) as fault:
            raise PerfgateError("ceilings-unreadable", str(fault), place=str(path)) from fault
        return parse_ceilings(text, place=str(path))

    def write(self, ceilings: Ceilings) -> Path:
        """Atomically: a reader sees the old file or the new one."""
        path = self._home(ceilings.device) / NAME
        write_atomically(path, render_ceilings(ceilings).encode("utf-8"))
        return path


def render_ceilings(ceilings: Ceilings) -> str:
    """Rounded to three digits: a ceiling is no finer."""
    fields: dict[str, Any] = {
        "device": ceilings.device,
        "tflops": {dtype: float(f"{rate / 1e12:.3g}") for dtype, rate in ceilings.compute},
        "bandwidth_gbps": ceilings.bandwidth and float(f"{ceilings.bandwidth / 1e9:.3g}"),
        "cache_bytes": ceilings.cache_bytes,
        "clock_mhz": ceilings.clock_hz and round(ceilings.clock_hz / 1e6),
        "method": ceilings.method,
        "when": ceilings.when,
        "facts": dict(ceilings.facts),
    }
    return json.dumps(fields, indent=2) + "\n"


def parse_ceilings(text: str, place: str) -> Ceilings:
    """What ``render_ceilings`` wrote, and what a person may have edited."""
    try:
        fields = json.loads(text)
        bandwidth, clock = fields.get("bandwidth_gbps"), fields.get("clock_mhz")
        return Ceilings(
            device=str(fields["device"]),
            compute=tuple((str(dtype), _rate(rate) * 1e12) for dtype, rate in fields.get("tflops", {}).items()),
            bandwidth=None if bandwidth is None else _rate(bandwidth) * 1e9,
            cache_bytes=fields.get("cache_bytes"),
            clock_hz=None if clock is None else _rate(clock) * 1e6,
            method=str(fields.get("method", "")),
            when=str(fields.get("when", "")),
            facts=tuple((str(name), str(said)) for name, said in fields.get("facts", {}).items()),
        )
    except (ValueError, KeyError, TypeError, AttributeError) as fault:
        raise PerfgateError("ceilings-unreadable", f"{type(fault).__name__}: {fault}", place=place) from fault


def _rate(number: Any) -> float:
    if isinstance(number, bool) or not isinstance(number, (int, float)) or not number > 0:
        raise ValueError(f"{number!r} is no rate")
    return float(number)
