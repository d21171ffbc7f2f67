"""Environments and ceilings of accepted sittings."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from pytest_perfgate.adapters.system.files import write_atomically
from pytest_perfgate.model.device import Ceilings
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.measurement import Environment

FOLDER = "environments"

_DIGITS = 10


def digest_of(environment: Environment) -> str:
    return hashlib.sha256(render_environment(environment).encode("utf-8")).hexdigest()[:_DIGITS]


def render_environment(environment: Environment) -> str:
    """Sorted and indented, for people who review it."""
    lasting = environment.lasting
    body = {
        "facts": dict(lasting.facts),
        "packages": dict(lasting.packages),
        "platform": lasting.platform,
        "python": lasting.python,
    }
    text = json.dumps(body, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
    return text.encode("utf-8", "replace").decode("utf-8")


def parse_environment(text: str, place: str) -> Environment:
    """The environment again; anything doubtful is an error."""
    try:
        body = json.loads(text)
        facts, packages = _pairs(body["facts"]), _pairs(body["packages"])
        return Environment(python=str(body["python"]), platform=str(body["platform"]), packages=packages, facts=facts)
    except (ValueError, KeyError, TypeError, AttributeError) as fault:
        what = f"it is not an environment as perfgate writes it: {fault}"
        raise PerfgateError("baseline-unreadable", what, place=place) from fault


def _pairs(table: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    return tuple((str(name), str(text)) for name, text in table.items())


class Environments:
    """Those of one device, each read once."""

    def __init__(self, home: Path) -> None:
        self._folder = home / FOLDER
        self._read: dict[str, Environment | None] = {}

    def path(self, digest: str) -> Path:
        return self._folder / f"{digest}.json"

    def read(self, digest: str, elsewhere: Callable[[Path], str | None] | None = None) -> Environment | None:
        """What a digest stands for; a revision is asked where the work tree has swept it out."""
        if not digest.isalnum():
            return None
        if digest not in self._read:
            self._read[digest] = self._found(digest, elsewhere)
        return self._read[digest]

    def _found(self, digest: str, elsewhere: Callable[[Path], str | None] | None) -> Environment | None:
        path = self.path(digest)
        try:
            text: str | None = path.read_text(encoding="utf-8")
        except FileNotFoundError:
            text = elsewhere(path) if elsewhere is not None else None
        except (OSError, UnicodeDecodeError) as fault:
            raise PerfgateError("baseline-unreadable", f"it cannot be read: {fault}", place=str(path)) from fault
        return None if text is None else parse_environment(text, str(path))

    def write(self, environment: Environment) -> tuple[str, Path | None]:
        """Its digest, and the file where it is a new one."""
        digest = digest_of(environment)
        path = self.path(digest)
        if path.is_file():
            return digest, None
        write_atomically(path, render_environment(environment).encode("utf-8"))
        return digest, path

    def sweep(self, used: Iterable[str]) -> None:
        """Remove those that no line names any more."""
        in_use = set(used)
        for path in self._folder.glob("*.json") if self._folder.is_dir() else ():
            if path.stem not in in_use:
                path.unlink(missing_ok=True)


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
            facts=tuple((str(name), str(fact)) for name, fact in fields.get("facts", {}).items()),
        )
    except (ValueError, KeyError, TypeError, AttributeError) as fault:
        raise PerfgateError("ceilings-unreadable", f"{type(fault).__name__}: {fault}", place=place) from fault


def _rate(number: Any) -> float:
    if isinstance(number, bool) or not isinstance(number, (int, float)) or not number > 0:
        raise ValueError(f"{number!r} is not a rate")
    return float(number)
