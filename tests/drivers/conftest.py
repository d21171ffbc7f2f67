from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

HERE = Path(__file__).parent
LIBRARIES = {
    "nvml.c": "libnvidia-ml.so.1",
    "cuda.c": "libcuda.so.1",
    "cupti.c": "libcupti.so.13",
    "amd.c": "libamd_smi.so",
}


@pytest.fixture(scope="session")
def drivers(tmp_path_factory) -> Path:
    """The driver libraries of our own making, built once."""
    if shutil.which("gcc") is None:
        pytest.skip("no gcc to build driver libraries with")
    folder = tmp_path_factory.mktemp("drivers")
    for source, library in LIBRARIES.items():
        named, sources = f"-Wl,-soname,{library}", [HERE / source]
        if source == "amd.c":
            sources.append(unsupported(folder))
        command = ["gcc", "-shared", "-fPIC", "-w", "-O1", named, "-o", folder / library, *sources, "-ldl"]
        subprocess.run(list(map(str, command)), check=True)
    return folder


def unsupported(folder: Path) -> Path:
    """Source of every function that amdsmi looks up when it is imported: ours says that it is not supported."""
    place = find_spec("amdsmi")
    named = set()
    if place is not None:
        text = (Path(place.origin).parent / "amdsmi_wrapper.py").read_text(encoding="utf-8")
        named = set(re.findall(r"_libraries\['libamd_smi.so'\]\.(\w+)", text))
    source = folder / "unsupported.c"
    source.write_text("".join(f"__attribute__((weak)) int {name}(void) {{ return 2; }}\n" for name in sorted(named)))
    return source


@pytest.fixture(scope="session")
def scenarios(drivers, tmp_path_factory):
    """What every scenario of a module told, run once in processes of their own on the made drivers."""
    played: dict[tuple[str, str], dict] = {}

    def answer_of(module: str, name: str, *, missing: bool = False) -> dict:
        alone = name if missing else ""
        if (module, alone) not in played:
            played[module, alone] = run(module, alone)
        answer = played[module, alone][name]
        assert "traceback" not in answer, answer["traceback"]
        return answer

    def run(module: str, alone: str) -> dict:
        """Every scenario on the made drivers, or one of them without any."""
        folder = tmp_path_factory.mktemp("scenarios")
        env = {**os.environ, "LD_LIBRARY_PATH": str(folder if alone else drivers)}
        env.pop("PERFGATE_ROOT_PID", None)
        command = [sys.executable, str(HERE / "forked.py"), str(HERE / module), str(folder), alone]
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=600, check=False)
        answers = [line for line in done.stdout.splitlines() if line.startswith("ANSWER ")]
        assert answers, done.stderr
        return json.loads(answers[0][7:])

    return answer_of
