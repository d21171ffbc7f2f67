"""What surrounded accepted sittings: one small file each beside a device's baselines, named by its content.

A file is never edited, so it shows up in a change only where the surroundings changed, and two branches
that accept never conflict in one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from pytest_perfgate.adapters.system.files import write_atomically
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
        what = f"it is no environment as perfgate writes it: {fault}"
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
        kept = set(used)
        for path in self._folder.glob("*.json") if self._folder.is_dir() else ():
            if path.stem not in kept:
                path.unlink(missing_ok=True)
