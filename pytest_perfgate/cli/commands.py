"""All commands by group: the table of contents of ``perfgate --help``."""

from __future__ import annotations

GROUPS: dict[str, dict[str, str]] = {
    "gate": {
        "run": "run pytest and exit by what the gate found",
        "check": "hold limits against files: traces, exports, reports, cubins, records",
        "compare": "two files of one kind, or two runs, and limits on the difference",
    },
    "accept": {
        "accept": "accept measured times as the baseline",
    },
    "look": {
        "inspect": "say what is in a file",
    },
    "profile": {
        "scrub": "take the environment out of an Nsight Systems export",
    },
    "machine": {
        "ceilings": "measure the highest rates that this machine reaches, and keep them",
        "clocks": "show, lock or reset the clocks of devices",
        "doctor": "explain this machine in one screen: what works here, and why the rest does not",
        "devices": "data sheets of known devices, and the devices of this machine",
    },
}
