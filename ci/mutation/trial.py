"""One mutant's trial in a process of its own, and what is kept of it; ci/mutate tries them."""

from __future__ import annotations

import json
import os
import resource
import signal
from collections.abc import Callable
from typing import TypedDict

from ci.mutation.mutants import ROOT, Mutant

RESULTS = ROOT / ".perfgate" / "mutation.jsonl"
PLACES = tuple(f"pytest_perfgate/core/{name}" for name in ("limits", "judge", "changes", "stats"))
TESTS = (*(f"tests/unit/core/{name}" for name in ("limits", "judge", "changes", "stats", "render")),
         "tests/unit/core/analysis/test_roofline.py", "tests/golden/test_block.py", "tests/golden/test_calibration.py",
         "tests/unit/app")  # fmt: skip
PROPERTIES = ("tests/properties/test_grammar.py", "tests/properties/test_intervals.py",
              "tests/properties/test_judging.py", "tests/properties/test_exact_properties.py")  # fmt: skip
OPTIONS = ("-q", "-s", "-x", "--no-header", "-o", "addopts=--import-mode=importlib", "-p", "no:cacheprovider")
STUCK = 20
"""Times as long on the clock as by the processor: it waits for what never comes."""
HEAP = 4 << 30
"""The bytes that an attempt may hold beside libraries: a loop that collects would take all of the machine's."""

PASSED, FAILED, ENDLESS, UNTRIED = "passed", "failed", "endless", "untried"


class Outcome(TypedDict):
    key: str
    outcome: str
    how: str
    way: str
    place: str


def outcomes_by_key() -> dict[str, Outcome]:
    """Return the last outcome of each mutant by its key."""
    if not RESULTS.exists():
        return {}
    lines = [json.loads(line) for line in RESULTS.read_text(encoding="utf-8").splitlines() if line.endswith("}")]
    return {line["key"]: line for line in lines}


def keep(mutant: Mutant, how: str, way: str) -> None:
    outcome = "survived" if how == PASSED else "killed"
    line = Outcome(key=mutant.key, outcome=outcome, how=how, way=way, place=str(mutant))
    RESULTS.parent.mkdir(exist_ok=True)
    with RESULTS.open("a", encoding="utf-8") as out:
        out.write(json.dumps(line) + "\n")


def say(text: str) -> None:
    print(text, flush=True)


def forked(seconds: int, attempt: Callable[[], bool]) -> str:
    """Return how an attempt ends in a child that may use so many seconds of processor time, on a busy machine too."""
    child = os.fork()
    if not child:
        code = 2
        try:
            os.setpgid(0, 0)
            signal.setitimer(signal.ITIMER_PROF, seconds)
            signal.alarm(STUCK * seconds)
            resource.setrlimit(resource.RLIMIT_DATA, (HEAP, HEAP))
            sink = os.open(os.devnull, os.O_WRONLY)
            os.dup2(sink, 1)
            os.dup2(sink, 2)
            code = 0 if attempt() else 1
        except BaseException:  # a mutant may do anything
            code = 2
        finally:
            os._exit(code)
    status = os.waitpid(child, 0)[1]
    return ENDLESS if os.WIFSIGNALED(status) else {0: PASSED, 1: FAILED}.get(os.WEXITSTATUS(status), UNTRIED)
