"""All commands by group: the table of contents of ``perfgate --help``."""

from __future__ import annotations

GROUPS: dict[str, dict[str, str]] = {
    "gate": {
        "run": "run pytest and exit by what the gate found",
        "check": "hold limits against files: traces, reports, cubins, records",
        "compare": "two files of one kind, or two runs; limits on the difference",
    },
    "accept": {
        "accept": "accept measured times as the baseline",
        "review": "walk through what moved, on a terminal, and accept or skip each",
        "prune": "remove baselines whose tests are gone",
        "import": "begin baselines from another tool's results",
        "merge-driver": "merge baseline files for git, line by line",
    },
    "look": {
        "inspect": "say what is in a file",
        "report": "the last run, or a record, as text, HTML or Markdown",
        "history": "a case over time",
        "devlog": "write the last run into a kernel's log",
    },
    "profile": {
        "profile": "run one test under a profiler and keep what it says",
        "scrub": "take the environment out of an Nsight Systems export",
    },
    "machine": {
        "calibrate": "the gate's error rates on this machine, with your tests",
        "ceilings": "measure the highest rates that this machine reaches",
        "clocks": "show, lock or reset the clocks of devices",
        "explain": "what an error code, an outcome, a term, a metric or a setting means",
        "doctor": "what works here, what does not, and what mends it",
        "devices": "data sheets of known devices, and the devices of this machine",
    },
}
