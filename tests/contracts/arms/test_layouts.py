"""Six layouts, each built for real on both sides: the arms load their own files and leave the user's alone."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from pytest_perfgate.adapters.arms.store import ArmStore
from pytest_perfgate.core.judge.against_revision import foreign_modules, same_code
from pytest_perfgate.model.verdict import ArmSettings
from tests.layouts import PLACES, contents, editable, git, make_repo, sources, write

TEST = """
import json, os
from pathlib import Path
from pytest_perfgate.adapters.arms.overlay import loaded_modules
{imports}

def test_speed():
    said = {{"speed": [{speeds}], "modules": loaded_modules(os.environ["ARM_MODULES"].split(","))}}
    Path(os.environ["ARM_SAYS"]).write_text(json.dumps(said))
"""
COMMANDS = (("two", "cp {source}/two.py {site}/two.py"),)


def speeds(packages: Sequence[str]) -> str:
    imports = "\n".join(f"import {name}" for name in packages)
    return TEST.format(imports=imports, speeds=", ".join(f"{name}.SPEED" for name in packages))


def repository(folder: Path, layout: str) -> Path:
    """Speed 1 in the commit, 2 in the working copy, which is the head arm."""
    make_repo(folder, PLACES[layout], speeds, "", 1)
    write(folder, sources(PLACES[layout], 2))
    return folder


def run(arm, repo: Path, path: str) -> dict:
    says = repo / ".perfgate" / f"{arm.name}.json"
    variables = {**os.environ, **dict(arm.environment), "ARM_MODULES": ",".join(arm.modules), "ARM_SAYS": str(says)}
    variables["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    line = [*arm.launch, "-q", "-p", "no:cacheprovider", "--import-mode=importlib", "-o", "addopts=", path]
    done = subprocess.run(line, cwd=arm.cwd, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(says.read_text())


@pytest.mark.parametrize("layout", PLACES)
def test_each_arm_loads_its_own_files(tmp_path: Path, layout: str) -> None:
    repo = repository(tmp_path / "ein Größer Pfad", layout)
    path = PLACES[layout].test
    mono = layout == "monorepo"
    settings = ArmSettings(projects=("one", "two"), builds=COMMANDS) if mono else ArmSettings()
    before = sorted(p.relative_to(repo) for p in repo.rglob("*") if ".git" not in p.parts)
    arms = ArmStore(repo, settings, [path])
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
    repo = repository(tmp_path / "repo", "src")
    user = tmp_path / "user"
    python = editable(user, repo / "src")
    before = contents(user)
    script = (
        "from pathlib import Path; import k, sys\n"
        "assert k.SPEED == 2\n"
        "from pytest_perfgate.adapters.arms.store import ArmStore\n"
        "from pytest_perfgate.model.verdict import ArmSettings\n"
        "arm = ArmStore(Path.cwd(), ArmSettings(), ['tests/test_k.py']).prepare('base', 'HEAD')\n"
        "import subprocess\n"
        "code = 'import sys; del sys.path[0]; import k; print(k.SPEED, k.__file__)'\n"
        "print(subprocess.run([arm.python, '-c', code], capture_output=True, text=True).stdout)\n"
    )
    line = [str(python), "-B", "-c", script]
    done = subprocess.run(line, cwd=repo, capture_output=True, text=True, check=False)
    assert done.stdout.startswith("1 "), done.stdout + done.stderr
    assert ".perfgate" in done.stdout
    assert contents(user) == before
