"""Native builds through ``pytest --perfgate-against``: each backend builds both arms, and the user's install stays as it is."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.layouts import BUILDS, commit, contents, editable, git, make_repo, sources, write
from tests.plugin.projects import QUIET

pytestmark = pytest.mark.skipif(
    not os.environ.get("PERFGATE_SLOW"), reason="builds arms and starts fifty processes: set PERFGATE_SLOW=1"
)
NEEDED = {
    "scikit-build-core": ("scikit_build_core", "cmake"),
    "meson-python": ("mesonpy", "meson", "ninja"),
    "cmake": ("cmake",),
}
TEST = """
import fast
import pytest

@pytest.mark.perfgate("slowdown <= 10%")
def test_fast(perfgate):
    perfgate(fast.work)
"""
GATE = 'budget = "60 ms"\nwarmup = "10 ms"\nsamples = 5\n'
FAST, SLOW = 40_000, 52_000


class User:
    """Somebody with the package installed as its tools' own pages say, editable where they have that."""

    def __init__(self, folder: Path, build: str) -> None:
        self.repo, self._folder = folder / "ein Größer Pfad", folder / "user"
        make_repo(self.repo, BUILDS[build], lambda _: TEST, GATE, FAST)
        write(self.repo, sources(BUILDS[build], SLOW))
        commit(self.repo, "slower")
        self._python = editable(self._folder)
        self.site = next(self._folder.rglob("site-packages"))
        self._install(build)

    def run(self, *line: str) -> subprocess.CompletedProcess[str]:
        environment = {
            k: v for k, v in os.environ.items() if k not in {"CI", "PYTHONPATH"} and not k.startswith("PYTEST_")
        }
        environment |= {"PATH": f"{programs()}{os.pathsep}{environment['PATH']}", "PYTHONDONTWRITEBYTECODE": "1"}
        return subprocess.run(
            [str(self._python), *line],
            cwd=self.repo,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )

    def against(self, revision: str) -> str:
        done = self.run("-m", "pytest", *QUIET, "-v", "--perfgate-against", revision, "tests")
        return done.stdout + done.stderr

    def files(self) -> dict[str, bytes]:
        """What is installed and what its build left in the repository."""
        checkout = {
            name: data for name, data in contents(self.repo).items() if not name.startswith((".git/", ".perfgate/"))
        }
        return {**checkout, **{f"user {name}": data for name, data in contents(self._folder).items()}}

    def _install(self, build: str) -> None:
        if build == "cmake":
            for line in (
                ["-S", ".", "-B", "build", f"-DPython_EXECUTABLE={sys.executable}"],
                ["--build", "build"],
                ["--install", "build", "--prefix", str(self.site)],
            ):
                subprocess.run(["cmake", *line], cwd=self.repo, check=True, capture_output=True)
        else:
            done = self.run("-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation", "--editable", ".")
            assert done.returncode == 0, done.stdout + done.stderr
        assert self.run("-c", "import fast; print(fast.SPEED)").stdout.strip() == str(SLOW)


def programs() -> str:
    """Where programs of installed packages lie, also of an environment that this one only sees."""
    tool = (
        next(Path(place) for place in sys.path if (Path(place) / "mesonbuild").is_dir())
        if find_spec("mesonbuild")
        else None
    )
    return str(tool.parents[2] / "bin") if tool else str(Path(sys.executable).parent)


@pytest.mark.parametrize("build", BUILDS)
def test_a_native_part_that_became_slower_is_confirmed(tmp_path: Path, build: str) -> None:
    for name in NEEDED[build]:
        if find_spec(name) is None and shutil.which(name, path=f"{programs()}:{os.environ['PATH']}") is None:
            pytest.skip(f"{name} is not installed")
    user = User(tmp_path, build)
    before = user.files()

    slower = user.against("HEAD~1")
    assert "full: 1 regressed" in slower, slower
    arms = {path.name: path.stat().st_ino for path in (user.repo / ".perfgate" / "arms").iterdir()}
    write(user.repo, {"README": "words\n"})
    commit(user.repo, "words alone")
    clean = user.against("HEAD~1")
    assert "full: 1 passed" in clean, clean
    after = {path.name: path.stat().st_ino for path in (user.repo / ".perfgate" / "arms").iterdir()}
    assert arms.items() <= after.items()  # the head of the first run is the base of the second
    assert len(after) == len(arms) + 1

    now = {name: data for name, data in user.files().items() if name != "README"}
    assert now == before

    if build != "cmake":  # a conftest that brings the hooks of the editable install into the arms
        hooked = f"import site\nsite.addsitedir({str(user.site)!r})\n"
        write(user.repo, {"tests/conftest.py": hooked})
        output = user.against("HEAD~1")
        assert "full: 1 invalid" in output, output
        assert "the base build loaded files of the package under test from elsewhere" in output, output
        (user.repo / "tests" / "conftest.py").unlink()

    write(user.repo, {"_loop.c": "#error out of order\n"})
    commit(user.repo, "broken")
    git(user.repo, "revert", "--no-edit", "HEAD")
    broken = user.against("HEAD~1")
    assert "the base build (HEAD~1, " in broken, broken
    assert "out of order" in broken.partition("[arm-build-failed]")[2], broken
    assert len(git(user.repo, "worktree", "list").splitlines()) == 1
