"""A process that has imported pytest and forks for each run: importing takes most of what a small run takes.

A fork is a process of its own, with its own folder, variables and exit, as ``python WORDS`` is. The plugin itself is
imported and registered in each run anew. What Python reads when it starts cannot be asked of a fork.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from runpy import run_module, run_path
from threading import Lock
from types import ModuleType
from typing import Any, NoReturn

from _pytest.config import default_plugins

ROOT = Path(__file__).resolve().parents[2]
AT_START = ("PYTHON", "LD_", "LC_", "LANG", "TZ", "COVERAGE_")
"""Variables that a process reads before the first line of a program runs."""
OF_BUILDS = ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED")
OUTSIDE = {
    *("CI", "GITHUB_ACTIONS", "GITHUB_BASE_REF", "CI_MERGE_REQUEST_TARGET_BRANCH_NAME", "CHANGE_TARGET"),
    *("JENKINS_URL", "TF_BUILD", "TEAMCITY_VERSION", "CODEBUILD_BUILD_ID"),
}
"""What CI says of the run that these tests are part of."""


def inherited() -> dict[str, str]:
    """The variables of these tests without what speaks of the run that they are part of."""
    return {k: v for k, v in os.environ.items() if k not in OUTSIDE and not k.startswith("PYTEST_")}


def at_start(variables: Mapping[str, str]) -> dict[str, str]:
    return {name: text for name, text in variables.items() if name.startswith(AT_START)}


class Forking:
    """The parent of the forks, what it was started with, and what else it imports first."""

    def __init__(self, also: tuple[str, ...] = ()) -> None:
        self.variables = at_start(os.environ)
        self._asked = Lock()
        self._process = subprocess.Popen(
            [sys.executable, __file__, *also],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env=inherited(),  # the plugin reads CI from what a process was started with, which a fork shares
        )
        atexit.register(self.end)

    def end(self) -> None:
        """What it imported is gone with it; nothing is asked of it afterwards."""
        self._process.communicate()

    def run(self, words: Sequence[str], cwd: Path, env: Mapping[str, str], out: Path, *, children: bool | str) -> int:
        """The exit code of ``python WORDS``, as subprocess has it; what it writes is appended to a file."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        wanted = {"words": list(words), "cwd": str(cwd), "env": dict(env), "out": str(out), "children": children}
        with self._asked:
            self._process.stdin.write(json.dumps(wanted) + "\n")
            self._process.stdin.flush()
            return int(self._process.stdout.readline())


@cache
def forking(*also: str) -> Forking:
    return Forking(also)


def can_fork(variables: Mapping[str, str]) -> bool:
    """Whether nothing that Python reads when it starts is another with these variables."""
    return at_start(variables) == forking().variables


def forked(
    words: Sequence[str],
    cwd: Path,
    variables: Mapping[str, str],
    *,
    children: bool | str = False,
    also: tuple[str, ...] = (),
) -> tuple[int, str]:
    """Exit code and output of ``python WORDS`` in a fork; with ``children`` those that it measures in are forks too.

    "of builds" are those of another build that shares its interpreter. It has imported ``also``: a module that takes
    seconds.
    """
    with tempfile.NamedTemporaryFile() as out:
        code = forking(*also).run(words, cwd, variables, Path(out.name), children=children)
        return code, without_our_warnings(Path(out.name).read_text(encoding="utf-8", errors="replace"))


def without_our_warnings(printed: str) -> str:
    """What a run printed, in which a user must find no warning about a line of the package."""
    assert not OUR_WARNING.search(printed), printed
    return printed


OUR_WARNING = re.compile(r"\bpytest_perfgate/[\w/]+\.py:\d+: \w*Warning\b")
OURS = """
adapters.bindings.cuda_driver adapters.bindings.cupti adapters.children.spawn adapters.devices.clocks
adapters.devices.clock_watch adapters.devices.host adapters.runtimes.arrays adapters.runtimes.cuda
adapters.runtimes.host adapters.runtimes.opencl adapters.runtimes.torch adapters.stores.baselines
adapters.stores.history adapters.stores.records adapters.stores.repository adapters.timers.auto adapters.timers.bench
adapters.timers.cupti adapters.timers.events app.conclude app.inspections app.output_check app.profile app.screening
core.judge.shards core.render.families core.render.report wiring.built_ins wiring.devices wiring.stores
plugin.child plugin.controller plugin.ending plugin.fixture plugin.measure_ahead
""".split()  # noqa: SIM905 - a list of words
"""What almost every run or child imports of the package."""
USED_BY_PYTEST = ("ctypes", "email.parser", "pdb", "readline", "sqlite3")


def prepare() -> None:
    """Import what they need, but not the plugin itself, which pytest imports and registers in each."""
    ours = (f"pytest_perfgate.{name}" for name in OURS)
    for name in (*(f"_pytest.{plugin}" for plugin in default_plugins), *ours, *USED_BY_PYTEST, *sys.argv[1:]):
        import_module(name)
    del sys.modules["pytest_perfgate.plugin"]
    gc.freeze()  # else each fork's collections touch, and so copy, all that was imported


def main() -> None:
    """Fork for each line, and say how it ended; in a fork, what Python does with these words."""
    prepare()
    for line in sys.stdin:
        wanted = json.loads(line)
        pid = os.fork()
        if pid == 0:
            become(wanted)
            if wanted["children"] and sys.platform == "linux":  # elsewhere files cannot be handed on so
                fork_children(wanted["env"], builds=wanted["children"] == "of builds")
            start(*wanted["words"])
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)


def become(wanted: Mapping[str, object]) -> None:
    """Its folder, its variables, its files."""
    os.chdir(wanted["cwd"])
    os.environ.clear()
    os.environ.update(wanted["env"])
    signal.alarm(600)  # one that hangs ends
    out = os.open(wanted["out"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for fd, stream in ((nothing, 0), (out, 1), (out, 2)):
        os.dup2(fd, stream)
    os.close(nothing)
    os.close(out)


def fork_children(variables: Mapping[str, str], *, builds: bool) -> None:
    """A child of this run is a fork of what this process is now; with ``builds`` one of another build is too."""
    import offspring  # beside this script, and by this name: a project may have a package of tests itself

    from pytest_perfgate.adapters.children import spawn

    def begin(wanted: Mapping[str, Any]) -> NoReturn:
        become(wanted)
        sys.executable, *words = wanted["words"]
        sys.path[1:1] = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
        sys.dont_write_bytecode = "PYTHONDONTWRITEBYTECODE" in os.environ
        start(*words)

    def alike(command: Sequence[str], child: Mapping[str, str]) -> bool:
        ours, theirs = (
            {name: text for name, text in at_start(env).items() if name not in names} for env in (variables, child)
        )
        python = os.path.realpath(command[0]) if builds else command[0]
        return python == own and command[1] in starts and ours == theirs

    own = os.path.realpath(sys.executable) if builds else sys.executable
    starts = ("-c", "-P") if builds else ("-c",)
    names = {"PYTHONHASHSEED", *(OF_BUILDS if builds else ())}
    spawn.subprocess = offspring.forking(offspring.Parent(begin), alike)


def start(*words: str) -> NoReturn:
    """A module, a text or a script, with the words and the first folder of the path that Python gives to each."""
    safe = words[0] == "-P"
    what, *words = words[safe:]
    sys.argv = [what, *words]
    sys.path[:1] = [] if safe else [{"-m": str(Path.cwd()), "-c": ""}.get(what, str(Path(what).parent))]
    code: object = 0
    try:
        if what == "-m":
            sys.argv = list(words)
            run_module(words[0], run_name="__main__", alter_sys=True)
        elif what == "-c":
            sys.argv = [what, *words[1:]]
            module = sys.modules["__main__"] = ModuleType("__main__")
            exec(compile(words[0], "<string>", "exec"), vars(module))
        else:
            run_path(what, run_name="__main__")
    except SystemExit as exited:
        code = exited.code
    leave(code)


def leave(code: object) -> NoReturn:
    """End as Python does, but do not free what was imported: it would copy each page, ten times the cost of a fork."""
    if isinstance(code, str):
        print(code, file=sys.stderr)
    threading._shutdown()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code if isinstance(code, int) else int(code is not None))


if __name__ == "__main__":
    main()
