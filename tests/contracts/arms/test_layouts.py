"""Six layouts, each built for real on both sides: the arms load their own files and leave the user's alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_perfgate.adapters.arms.store import ArmStore
from pytest_perfgate.core.gate.proof import foreign_modules, same_code
from pytest_perfgate.model.arm import ArmSettings

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
TEST = """
import json, os
from pathlib import Path
from pytest_perfgate.adapters.arms.proof import loaded_modules
{imports}

def test_speed():
    said = {{"speed": [{speeds}], "modules": loaded_modules(os.environ["ARM_MODULES"].split(","))}}
    Path(os.environ["ARM_SAYS"]).write_text(json.dumps(said))
"""
C_SOURCE = """
#include <Python.h>
static PyMethodDef none[] = {{{{NULL, NULL, 0, NULL}}}};
static struct PyModuleDef module = {{PyModuleDef_HEAD_INIT, "fast", NULL, -1, none}};
PyMODINIT_FUNC PyInit_fast(void) {{
    PyObject *made = PyModule_Create(&module);
    PyModule_AddIntConstant(made, "SPEED", {speed});
    return made;
}}
"""
SETUP = "from setuptools import Extension, setup\nsetup(name='fast', version='1', ext_modules=[Extension('fast', ['fast.c'])])"


def test_file(*packages: str) -> str:
    imports = "\n".join(f"import {name}" for name in packages)
    return TEST.format(imports=imports, speeds=", ".join(f"{name}.SPEED" for name in packages))


test_file.__test__ = False

LAYOUTS = {
    "src": (
        {"pyproject.toml": HATCH.format(name="k", where="src/k"), "tests/test_k.py": test_file("k")},
        ["src/k/__init__.py"],
    ),
    "flat": (
        {"pyproject.toml": HATCH.format(name="k", where="k"), "tests/test_k.py": test_file("k")},
        ["k/__init__.py"],
    ),
    "inside": (
        {
            "pyproject.toml": HATCH.format(name="k", where="k"),
            "k/tests/__init__.py": "",
            "k/tests/test_k.py": test_file("k"),
        },
        ["k/__init__.py"],
    ),
    "scripts": (
        {"pyproject.toml": "[tool.pytest.ini_options]\npythonpath=['.']", "tests/test_k.py": test_file("k")},
        ["k.py"],
    ),
    "extension": ({"setup.py": SETUP, "tests/test_k.py": test_file("fast")}, ["fast.c"]),
    "monorepo": (
        {
            "one/pyproject.toml": HATCH.format(name="one", where="one"),
            "two/pyproject.toml": HATCH.format(name="two", where="two"),
            "tests/test_k.py": test_file("one", "two"),
        },
        ["one/one/__init__.py", "two/two/__init__.py"],
    ),
}


def git(repo: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.invalid"]
    return subprocess.run(["git", *identity, *arguments], cwd=repo, check=True, capture_output=True, text=True).stdout


def write(repo: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (repo / name).parent.mkdir(parents=True, exist_ok=True)
        (repo / name).write_text(text)


def source(name: str, speed: int) -> str:
    return C_SOURCE.format(speed=speed) if name.endswith(".c") else f"SPEED = {speed}\n"


def make_repo(folder: Path, layout: str) -> Path:
    files, sources = LAYOUTS[layout]
    write(folder, {**files, ".gitignore": ".perfgate/\n", **{name: source(name, 1) for name in sources}})
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "speed 1")
    write(folder, {name: source(name, 2) for name in sources})  # dirty: the head arm is the working copy
    return folder


def run(arm, repo: Path, path: str) -> dict:
    says = repo / ".perfgate" / f"{arm.name}.json"
    variables = {**os.environ, **dict(arm.environment), "ARM_MODULES": ",".join(arm.modules), "ARM_SAYS": str(says)}
    variables["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    line = [*arm.launch, "-q", "-p", "no:cacheprovider", "--import-mode=importlib", "-o", "addopts=", path]
    done = subprocess.run(line, cwd=arm.cwd, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(says.read_text())


@pytest.mark.parametrize("layout", LAYOUTS)
def test_each_arm_loads_its_own_files(tmp_path: Path, layout: str) -> None:
    (tmp_path / "a repo").mkdir()
    repo = make_repo(tmp_path / "a repo", layout)
    path = next(name for name in LAYOUTS[layout][0] if name.endswith("test_k.py"))
    projects = ("one", "two") if layout == "monorepo" else (".",)
    before = sorted(p.relative_to(repo) for p in repo.rglob("*") if ".git" not in p.parts)
    arms = ArmStore(repo, ArmSettings(projects=projects), [path])
    base, head = arms.prepare("base", "HEAD"), arms.prepare("head", "")

    says = {arm.name: run(arm, repo, path) for arm in (base, head)}

    assert set(says["base"]["speed"]) == {1}
    assert set(says["head"]["speed"]) == {2}
    assert (base.dirty, head.dirty) == (False, True)
    assert base.mode == head.mode == ("worktree" if layout in {"inside", "scripts"} else "overlay")
    loaded = {name: [tuple(pair) for pair in said["modules"]] for name, said in says.items()}
    assert foreign_modules(base, loaded["base"]) is None
    assert foreign_modules(head, loaded["head"]) is None
    assert foreign_modules(base, loaded["head"]).code == "arm-foreign-module"
    assert not same_code(loaded["base"], loaded["head"])
    after = sorted(p.relative_to(repo) for p in repo.rglob("*") if ".git" not in p.parts and ".perfgate" not in p.parts)
    assert after == before
    assert arms.prepare("base", "HEAD").reused
    assert arms.leftovers() == ()
    arms.remove()
    assert "tree" not in git(repo, "worktree", "list")


def test_an_editable_install_of_the_head_stays_out_of_the_base(tmp_path: Path) -> None:
    repo = tmp_path / "repo"
    repo.mkdir()
    make_repo(repo, "src")
    user = tmp_path / "user"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(user)], check=True)
    packages = next(user.rglob("site-packages"))
    (packages / "editable_k.pth").write_text(f"{repo / 'src'}\n")
    (packages / "behind.pth").write_text("\n".join(p for p in sys.path if p.endswith("site-packages")) + "\n")
    (packages / "ours.pth").write_text(str(Path(__file__).resolve().parents[3]) + "\n")
    before = {p: p.read_bytes() for p in user.rglob("*") if p.is_file() and not p.is_symlink()}
    script = (
        "from pathlib import Path; import k, sys\n"
        "assert k.SPEED == 2\n"
        "from pytest_perfgate.adapters.arms.store import ArmStore\n"
        "from pytest_perfgate.model.arm import ArmSettings\n"
        "arm = ArmStore(Path.cwd(), ArmSettings(), ['tests/test_k.py']).prepare('base', 'HEAD')\n"
        "import subprocess\n"
        "code = 'import k; print(k.SPEED, k.__file__)'\n"
        "print(subprocess.run([arm.python, '-P', '-c', code], capture_output=True, text=True).stdout)\n"
    )
    line = [str(user / "bin" / "python"), "-B", "-c", script]
    done = subprocess.run(line, cwd=repo, capture_output=True, text=True, check=False)
    assert done.stdout.startswith("1 "), done.stdout + done.stderr
    assert ".perfgate" in done.stdout
    assert {p: p.read_bytes() for p in user.rglob("*") if p.is_file() and not p.is_symlink()} == before
