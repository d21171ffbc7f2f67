"""Runs every scenario of a module in a fork of its own and prints what each told: one start for all of them."""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
import traceback
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2]))
SAME_FOLDER = {"stale_is_found": "killed"}


def main(module: str, folder: str, alone: str) -> None:
    functions = {n: f for n, f in runpy.run_path(module).items() if getattr(f, "__scenario__", False)}
    scenarios = {alone: functions[alone]} if alone else functions
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as foreign:
        os.environ["STRANGER"] = str(foreign.pid)
        answers = {name: forked(name, scenario, Path(folder)) for name, scenario in scenarios.items()}
    print("ANSWER", json.dumps(answers))


def forked(name: str, scenario, folder: Path) -> dict:
    locks = folder / SAME_FOLDER.get(name, name)
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.environ["PERFGATE_LOCKS"] = str(locks)
        try:
            answer = scenario()
        except BaseException:
            answer = {"traceback": traceback.format_exc()}
        os.write(writing, json.dumps(answer).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        answer = json.loads(pipe.read() or b"{}")
    _, status = os.waitpid(child, 0)
    signal = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    return {"signal": signal, "locks": len(list(locks.glob("*"))) if locks.is_dir() else 0, **answer}


if __name__ == "__main__":
    main(*sys.argv[1:4])
