"""A forge in a folder: its API on a port of this machine, and its runner, which plays what a workflow says."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

ROOT = Path(__file__).resolve().parents[1]
TEMPLATES = ROOT / "ci" / "templates"


@contextmanager
def api() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Its address, and the comments that lie there: all that GitHub and GitLab are asked of these."""
    comments: list[dict[str, Any]] = []

    class Api(BaseHTTPRequestHandler):
        def answer(self) -> None:
            length, path = int(self.headers.get("Content-Length") or 0), urlsplit(self.path).path
            body = json.loads(self.rfile.read(length)) if length else {}
            if self.command == "POST":
                comments.append({"id": len(comments), "path": path, **body})
            elif self.command != "GET":
                comments[int(path.rpartition("/")[2])].update(body)
            data = json.dumps(comments if self.command == "GET" else {}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_PATCH = do_PUT = answer

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Api)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", comments
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def tools(folder: Path, **others: str) -> Path:
    """A folder of commands: ours as they are, ``python -m pip`` that installs nothing, and those that are given."""
    folder.mkdir()
    texts = {
        "python": f'case "$*" in "-m pip"*) exit 0;; esac; exec {sys.executable} "$@"',
        "pytest": f'exec {sys.executable} -m pytest -p no:cacheprovider -p no:randomly -p no:benchmark "$@"',
        "perfgate": f'exec {sys.executable} -c "from pytest_perfgate.cli import main; raise SystemExit(main())" "$@"',
        **others,
    }
    for name, text in texts.items():
        (folder / name).write_text(f"#!/bin/bash\n{text}\n", encoding="utf-8")
        (folder / name).chmod(0o755)
    return folder


def environment(commands: Path, **names: str) -> dict[str, str]:
    """That of a job: of this process what finds programs and the package, and nothing of the CI that runs us."""
    outer = {name: os.environ[name] for name in ("HOME", "LANG", "PYTHONPATH") if name in os.environ}
    path = f"{commands}:{os.environ['PATH']}"
    return {**outer, "PYTHONPATH": str(ROOT), "PATH": path, "CI": "true", "PERFGATE": "pytest-perfgate", **names}


def shell(script: str, folder: Path, names: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """A step as runners start it."""
    command = ["bash", "-eo", "pipefail", "-c", script]
    return subprocess.run(command, cwd=folder, env=dict(names), capture_output=True, text=True, check=False)


@dataclass
class Workflow:
    """One run of a workflow of GitHub: its steps, with artifacts in a folder and each job in a copy of the project."""

    text: str
    project: Path
    home: Path
    names: dict[str, str]
    context: dict[str, str]
    failed: dict[str, list[str]] = field(default_factory=dict)
    """By job, the output of steps that failed."""

    def job(self, name: str, only: Callable[[dict[str, Any]], bool] = lambda _: True) -> bool:
        """Whether every run of the job kept all of its steps; ``only`` leaves runners out, as a machine does that dies."""
        workflow = yaml.safe_load(self.text)
        job = workflow["jobs"][name]
        axes = job.get("strategy", {}).get("matrix", {})
        succeeded = True
        for values in filter(only, (dict(zip(axes, row)) for row in product(*axes.values()))):
            matrix = {f"matrix.{axis}": str(value) for axis, value in values.items()}
            context = {**self.context, **matrix, "github.job": name}
            folder = self.home / "-".join([name, *matrix.values()])
            names = {**self.names, "GITHUB_JOB": name}
            variables = {**workflow.get("env", {}), **job.get("env", {})}
            names |= {key: filled(str(value), context) for key, value in variables.items()}
            succeeded &= self._played(name, job["steps"], folder, (names, context))
        return succeeded

    def _played(
        self, job: str, steps: list[dict[str, Any]], folder: Path, surroundings: tuple[dict[str, str], dict[str, str]]
    ) -> bool:
        names, context = surroundings
        succeeded = True
        for step in steps:
            if not runs_if(step.get("if", ""), context, succeeded=succeeded):
                continue
            if "uses" in step:
                self._used(step["uses"].partition("@")[0], step.get("with", {}), folder, context)
                continue
            own = {key: filled(str(value), context) for key, value in step.get("env", {}).items()}
            done = shell(filled(step["run"], context), folder, {**names, **own})
            if done.returncode:
                self.failed.setdefault(job, []).append(done.stdout + done.stderr)
                succeeded &= bool(step.get("continue-on-error"))
        return succeeded

    def _used(self, action: str, inputs: dict[str, Any], folder: Path, context: dict[str, str]) -> None:
        store, name = self.home / "artifacts", filled(str(inputs.get("name", "")), context)
        if action == "actions/checkout":
            shutil.copytree(self.project, folder)
        elif action == "actions/setup-python":
            assert inputs["python-version"]
        elif action == "actions/upload-artifact":
            (store / name).mkdir(parents=True)
            for path in str(inputs["path"]).split():
                lies = folder / path  # what is in a folder lies at the top of an artifact, as a file does
                for one in lies.iterdir() if lies.is_dir() else [lies]:
                    shutil.copy(one, store / name)
        elif action == "actions/download-artifact":
            (folder / inputs["path"]).mkdir(parents=True, exist_ok=True)
            for artifact in sorted(store.iterdir()):
                if fnmatchcase(artifact.name, inputs["pattern"]):
                    shutil.copytree(artifact, folder / inputs["path"] / artifact.name)
        else:
            raise AssertionError(f"nobody plays {action}")


def filled(text: str, context: Mapping[str, str]) -> str:
    """With what stands in ``${{ }}`` in its place; a name that nobody gave is an error."""
    return re.sub(r"\$\{\{ ([\w.]+) \}\}", lambda place: context[place[1]], text)


def runs_if(condition: str, context: Mapping[str, str], *, succeeded: bool) -> bool:
    """Whether a step runs: where nothing failed, unless it says ``always()``, and each part of its condition holds."""
    parts = [part.strip() for part in condition.split("&&") if part.strip()]
    for part in parts:
        left, equals, right = part.partition(" == ")
        if equals and context[left] != context[right]:
            return False
        assert equals or part == "always()", part
    return succeeded or "always()" in parts
