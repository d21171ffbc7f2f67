"""Repositories of one small package in different layouts and builds, at two speeds."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

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
SETUP = "from setuptools import Extension, setup\nsetup(name='fast', version='1', ext_modules=[Extension('fast', ['fast.c'])])"
PYTHON = """
SPEED = {count}
def work():
    total = 0
    for i in range(SPEED):
        total += i * i
    return total
"""
C_SOURCE = """
#include <Python.h>
static PyObject *work(PyObject *self, PyObject *none) {
    volatile long total = 0;
    for (long i = 0; i < 10 * %(count)d; i++) total += i * i;
    return PyLong_FromLong(total);
}
static PyMethodDef methods[] = {{"work", work, METH_NOARGS, ""}, {NULL, NULL, 0, NULL}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "%(name)s", NULL, -1, methods};
PyMODINIT_FUNC PyInit_%(name)s(void) {
    PyObject *made = PyModule_Create(&module);
    PyModule_AddIntConstant(made, "SPEED", %(count)d);
    return made;
}
"""
CMAKE = """
cmake_minimum_required(VERSION 3.18)
project(fast LANGUAGES C)
find_package(Python REQUIRED COMPONENTS Interpreter Development.Module)
python_add_library(_loop MODULE _loop.c WITH_SOABI)
install(TARGETS _loop DESTINATION fast)
"""
MESON = """
project('fast', 'c', default_options: ['buildtype=release'])
py = import('python').find_installation(pure: false)
py.extension_module('_loop', '_loop.c', install: true, subdir: 'fast')
py.install_sources('fast/__init__.py', subdir: 'fast')
"""
BACKEND = (
    '[build-system]\nrequires = ["{wants}"]\nbuild-backend = "{backend}"\n[project]\nname = "fast"\nversion = "1"\n'
)
BY_CMAKE = '''
build = """
cmake -S {source} -B {build} -D CMAKE_BUILD_TYPE=Release -D Python_EXECUTABLE={python}
cmake --build {build}
cmake --install {build} --prefix {site}
"""
'''
FACE = "from fast._loop import SPEED, work\n"


@dataclass(frozen=True)
class Layout:
    """Files of a repository beside its tests, and the sources whose speed changes."""

    sources: Sequence[str]
    files: Mapping[str, str] = field(default_factory=dict)
    packages: Sequence[str] = ("k",)
    tests: str = "tests"
    settings: str = ""
    """Of ``[tool.perfgate]``."""

    @property
    def test(self) -> str:
        return f"{self.tests}/test_k.py"


def _hatch(name: str, where: str) -> dict[str, str]:
    return {"pyproject.toml": HATCH.format(name=name, where=where)}


def _backend(wants: str, backend: str) -> dict[str, str]:
    return {"pyproject.toml": BACKEND.format(wants=wants, backend=backend)}


PLACES = {
    "src": Layout(["src/k/__init__.py"], _hatch("k", "src/k")),
    "flat": Layout(
        ["k/__init__.py"],
        {
            **_backend("setuptools", "setuptools.build_meta"),
            "baselines/host/t.yaml": "",
        },  # no package, and looks like one
    ),
    "inside": Layout(["k/__init__.py"], {**_hatch("k", "k"), "k/tests/__init__.py": ""}, tests="k/tests"),
    "scripts": Layout(["k.py"], {"pyproject.toml": "[tool.pytest.ini_options]\npythonpath=['.']\n"}),
    "extension": Layout(["fast.c"], {"setup.py": SETUP}, ["fast"]),
    "monorepo": Layout(
        ["one/one/__init__.py", "two/two.py"],
        {
            "one/pyproject.toml": HATCH.format(name="one", where="one"),
            "two/setup.py": "raise SystemExit('two is built by a command of its own')",
        },
        ["one", "two"],
        settings='projects = ["one", {path = "two", build = "cp {source}/two.py {site}/two.py"}]\n',
    ),
}
BUILDS = {
    "scikit-build-core": Layout(
        ["_loop.c"],
        {
            **_backend("scikit-build-core", "scikit_build_core.build"),
            "CMakeLists.txt": CMAKE,
            "src/fast/__init__.py": FACE,
        },
        ["fast"],
    ),
    "meson-python": Layout(
        ["_loop.c"],
        {**_backend("meson-python", "mesonpy"), "meson.build": MESON, "fast/__init__.py": FACE},
        ["fast"],
    ),
    "cmake": Layout(
        ["_loop.c"],
        {"CMakeLists.txt": f"{CMAKE}install(DIRECTORY python/fast DESTINATION .)\n", "python/fast/__init__.py": FACE},
        ["fast"],
        settings=BY_CMAKE,
    ),
}


def git(repo: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.invalid", "-c", "protocol.file.allow=always"]
    return subprocess.run(["git", *identity, *arguments], cwd=repo, check=True, capture_output=True, text=True).stdout


def commit(repo: Path, message: str) -> None:
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", message)


def write(repo: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        (repo / name).parent.mkdir(parents=True, exist_ok=True)
        (repo / name).write_text(text)


def sources(layout: Layout, count: int) -> dict[str, str]:
    """What does ``count`` steps of work."""
    return {name: _source(Path(name), count) for name in layout.sources}


def make_repo(folder: Path, layout: Layout, test: Callable[[Sequence[str]], str], settings: str, count: int) -> Path:
    """One commit of a layout, with git told to ignore what builds and Python leave."""
    folder.mkdir(exist_ok=True)
    table = f"[tool.perfgate]\n{settings}{layout.settings}" if settings or layout.settings else ""
    project = layout.files.get("pyproject.toml", "") + table
    write(folder, {**layout.files, "pyproject.toml": project, layout.test: test(layout.packages)})
    write(folder, {".gitignore": ".perfgate/\n__pycache__/\nbuild/\n*.so\n", **sources(layout, count)})
    git(folder, "init", "-q", "-b", "main")
    commit(folder, "first")
    return folder


def editable(folder: Path, *places: Path) -> Path:
    """An environment that has what this one has, and these folders as an editable install would add them."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    packages = next(folder.rglob("site-packages"))
    (packages / "editable_k.pth").write_text("".join(f"{place}\n" for place in places))
    (packages / "behind.pth").write_text("\n".join(p for p in sys.path if p.endswith("site-packages")) + "\n")
    (packages / "ours.pth").write_text(str(Path(__file__).resolve().parents[1]) + "\n")
    return folder / "bin" / "python"


def contents(folder: Path) -> dict[str, bytes]:
    """Every file of a user's environment, to hold against what it is later."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file() and not p.is_symlink()}


def _source(name: Path, count: int) -> str:
    return C_SOURCE % {"name": name.stem, "count": count} if name.suffix == ".c" else PYTHON.format(count=count)
