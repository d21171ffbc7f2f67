"""The folder that a run reads the past from and leaves its record in: asked for before anything is measured."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.wiring.stores import record_store

if TYPE_CHECKING:
    from pytest_perfgate.plugin.docket import Docket


def begin(session: Docket) -> None:
    """From here on the last run is this one, also where it is killed."""
    with contextlib.suppress(PerfgateError):  # a folder that takes nothing says so where the record is written
        _pointer(session).suspend(_without_record(session))


def take_back(session: Docket) -> None:
    """Nothing was measured: what is accepted and reported is what an earlier run left."""
    with contextlib.suppress(PerfgateError):
        _pointer(session).resume(_without_record(session))


def _pointer(session: Docket) -> Any:
    return record_store(session.settings.pytest.rootpath).pointer


def _without_record(session: Docket) -> str:
    since = f"the run that began at {session.started.isoformat(timespec='seconds')}"
    return f"{since} has left no record: it goes on, or it was killed"


def insist_on_folder(folder: Path) -> None:
    """An error where a folder is there and may not be looked into; one that is not there yet is made later."""
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                entry.stat(follow_symlinks=False)
                break
    except (FileNotFoundError, NotADirectoryError):  # the latter says so where it is written
        return
    except OSError as fault:
        what = f"{fault.strerror or fault}: local baselines, the history and the record of a run lie there"
        why = "a run would judge without what was accepted here, and leave no record"
        mend = f"make it yours (chown, chmod u+rwx {folder}), or delete it: what it holds is of this checkout alone"
        raise PerfgateError("file-refused", what, why=why, mend=mend, place=str(folder)) from fault
