"""Six layouts through ``pytest --perfgate-against``: each side builds, loads and times its own files."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.plugin.projects import QUIET

pytestmark = pytest.mark.skipif(
    not os.environ.get("PERFGATE_SLOW"), reason="builds two arms and starts ten processes a layout: set PERFGATE_SLOW=1"
)
HATCH = """
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"
[project]
name = "{name}"
version = "1"
[tool.hatch.build.targets.wheel]
packages = ["{where}"]
"""
GATE = '[tool.perfgate]\nbudget = "30 ms"\nwarmup = "5 ms"\nsamples = 5\n'
PYTHON = "def work():\n    total = 0\n    for i in range({count}):\n        total += i * i\n    return total\n"
C_SOURCE = """
#include <Python.h>
static PyObject *work(PyObject *self, PyObject *none) {{
    volatile long total = 0;
    for (long i = 0; i < 10 * {count}; i++) total += i * i;
    return PyLong_FromLong(total);
}}
static PyMethodDef methods[] = {{{{"work", work, METH_NOARGS, ""}}, {{NULL, NULL, 0, NULL}}}};
static struct PyModuleDef module = {{PyModuleDef_HEAD_INIT, "fast", NULL, -1, methods}};
PyMODINIT_FUNC PyInit_fast(void) {{ return PyModule_Create(&module); }}
"""
SETUP = "from setuptools import Extension, setup\nsetup(name='fast', version='1', ext_modules=[Extension('fast', ['fast.c'])])"


def bench(*packages: str) -> str:
    tests = (
        f'@pytest.mark.perfgate("slowdown <= 30%")\ndef test_{name}(perfgate):\n    import {name}\n    perfgate({name}.work)\n'
        for name in packages
    )
    return "import pytest\n\n" + "\n".join(tests)


LAYOUTS = {
    "src": (
        {"pyproject.toml": HATCH.format(name="k", where="src/k") + GATE, "tests/test_k.py": bench("k")},
        ["src/k/__init__.py"],
    ),
    "flat": (
        {"pyproject.toml": HATCH.format(name="k", where="k") + GATE, "tests/test_k.py": bench("k")},
        ["k/__init__.py"],
    ),
    "inside": (
        {
            "pyproject.toml": HATCH.format(name="k", where="k") + GATE,
            "k/tests/__init__.py": "",
            "k/tests/test_k.py": bench("k"),
        },
        ["k/__init__.py"],
    ),
    "editable": (
        {"pyproject.toml": HATCH.format(name="k", where="src/k") + GATE, "tests/test_k.py": bench("k")},
        ["src/k/__init__.py"],
    ),
    "extension": (
        {"setup.py": SETUP, "pyproject.toml": GATE, "tests/test_k.py": bench("fast")},
        ["fast.c"],
    ),
    "monorepo": (
        {
            "one/pyproject.toml": HATCH.format(name="one", where="one"),
            "two/setup.py": "raise SystemExit('two is built by a command of its own')",
            "pyproject.toml": GATE + 'projects = ["one", {path = "two", build = "cp {source}/two.py {site}/two.py"}]\n',
            "tests/test_k.py": bench("one", "two"),
        },
        ["one/one/__init__.py", "two/two.py"],
    ),
}


def git(repo: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.invalid"]
    return subprocess.run(["git", *identity, *arguments], cwd=repo, check=True, capture_output=True, text=True).stdout


def write(repo: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (repo / name).parent.mkdir(parents=True, exist_ok=True)
        (repo / name).write_text(text)


def sources(names: list[str], count: int) -> dict[str, str]:
    return {name: (C_SOURCE if name.endswith(".c") else PYTHON).format(count=count) for name in names}


def make_repo(folder: Path, layout: str) -> Path:
    """Slow at HEAD, four times as fast in the working copy."""
    files, names = LAYOUTS[layout]
    folder.mkdir()
    write(folder, {**files, ".gitignore": ".perfgate/\n__pycache__/\nbuild/\n*.so\n", **sources(names, 12000)})
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "slow")
    write(folder, sources(names, 3000))
    if layout == "extension":
        build = [sys.executable, "setup.py", "-q", "build_ext", "--inplace"]
        subprocess.run(build, cwd=folder, check=True, capture_output=True)
    return folder


IMPORTED = {"src": ("src",), "monorepo": ("one", "two")}
"""Where the head's package is found outside of arms, as an install would see to it; arms must not look there."""


def editable(folder: Path, repo: Path) -> Path:
    """An environment in which the package is installed as an editable one."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    packages = next(folder.rglob("site-packages"))
    (packages / "editable_k.pth").write_text(f"{repo / 'src'}\n")
    (packages / "behind.pth").write_text("\n".join(p for p in sys.path if p.endswith("site-packages")) + "\n")
    (packages / "ours.pth").write_text(str(Path(__file__).resolve().parents[2]) + "\n")
    return folder / "bin" / "python"


@pytest.mark.parametrize("layout", LAYOUTS)
def test_each_side_times_its_own_code(tmp_path: Path, layout: str) -> None:
    repo = make_repo(tmp_path / "a repo", layout)
    python = editable(tmp_path / "user", repo) if layout == "editable" else Path(sys.executable)
    where = "k" if layout == "inside" else "tests"
    line = [str(python), "-m", "pytest", *QUIET, "-v", "--perfgate-against", "HEAD", where]
    inherited = {k: v for k, v in os.environ.items() if k != "CI" and not k.startswith("PYTEST_")}
    inherited["PYTHONPATH"] = os.pathsep.join(str(repo / place) for place in IMPORTED.get(layout, ()))
    done = subprocess.run(line, cwd=repo, env=inherited, capture_output=True, text=True, check=False, timeout=300)
    text = done.stdout + done.stderr
    assert done.returncode == 0, text
    tests = len(LAYOUTS[layout][1])
    assert f"full: {tests} improved" in text, text
    assert git(repo, "status", "--porcelain").count("\n") == len(LAYOUTS[layout][1])
