"""Writes tests/artifacts/variants.tar.xz: our own kernels by every assembler and in every wrapping there is.

``PTXAS`` names assemblers, separated as on PATH; the wrappings are made by ``nvcc``, ``ar`` and the host's compiler.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).resolve().parent
PACKED = HERE.parents[1] / "tests" / "artifacts" / "variants.tar.xz"
VERSIONS = ("6.0", "7.0", "7.8", "8.0", "8.7", "8.8", "9.0", "9.3")
TWO = ("-gencode", "arch=compute_80,code=sm_80", "-gencode", "arch=compute_90,code=sm_90")
WRAPPINGS = {
    "stored.fatbin": ("-fatbin", *TWO, "--compress-mode=none"),
    "packed.fatbin": ("-fatbin", *TWO, "--compress-mode=size"),
    "with_ptx.fatbin": ("-fatbin", *TWO, "-gencode", "arch=compute_90,code=compute_90"),
    "ptx_alone.fatbin": ("-fatbin", "-gencode", "arch=compute_90,code=compute_90"),
    "object.o": ("-c", *TWO),
    "relocatable.o": ("-dc", *TWO),
    "function.o": ("-dc", *TWO, "-DFUNCTION"),
    "link_time.o": ("-dc", "-gencode", "arch=compute_90,code=lto_90"),
    "recursive.cubin": ("-cubin", "-arch=sm_90", "-DRECURSIVE"),
    "program": ("-cudart", "none", "-Xlinker", "--unresolved-symbols=ignore-all", "-Xlinker", "-e0", *TWO),
}
_USED = re.compile(
    r"Compiling entry function '(\w+)'.*?(\d+) bytes stack frame.*?Used (\d+) registers([^\n]*)", re.DOTALL
)


def main() -> None:
    with tempfile.TemporaryDirectory() as room:
        resources = dict(assembled(Path(room)))
        (Path(room) / "said.json").write_text(json.dumps(resources))
        with tarfile.open(PACKED, "w:xz", preset=9) as packed:
            for name in ("said.json", *resources, *wrapped(Path(room))):
                packed.add(Path(room) / name, name, filter=nameless)


def nameless(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    """Without whose it is and when it was made."""
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    entry.mtime, entry.mode = 0, 0o644
    return entry


def assembled(room: Path) -> Iterator[tuple[str, dict[str, list[int]]]]:
    """(file, registers, shared memory and stack by kernel) of each assembler and each architecture it knows."""
    for ptxas in os.environ["PTXAS"].split(os.pathsep):
        version = re.findall(
            r"V([\d.]+)", subprocess.run([ptxas, "--version"], capture_output=True, text=True, check=False).stdout
        )[0]
        usage = subprocess.run([ptxas, "--help"], capture_output=True, text=True, check=False).stdout
        for arch in sorted(set(re.findall(r"'(sm_\d+[af]?)'", usage))):
            name = f"{version}.{arch}.cubin"
            log = assemble(ptxas, arch, room / name)
            if log:
                yield (
                    name,
                    {kernel: [int(n), shared(rest), int(stack)] for kernel, stack, n, rest in _USED.findall(log)},
                )
            else:
                print(f"{ptxas} does not take {arch} in any PTX tried", file=sys.stderr)


def assemble(ptxas: str, arch: str, out: Path) -> str:
    """What the assembler said, in the first version of PTX that knows the architecture."""
    source = (HERE / "variants.ptx").read_text()
    for version in VERSIONS:
        ptx = out.with_suffix(".ptx")
        ptx.write_text(source.replace("@VERSION@", version).replace("@ARCH@", arch))
        done = subprocess.run(
            [ptxas, "-v", f"-arch={arch}", ptx, "-o", out], capture_output=True, text=True, check=False
        )
        if not done.returncode:
            return done.stderr + done.stdout
    return ""


def shared(rest: str) -> int:
    match = re.search(r"(\d+) bytes smem", rest)
    return int(match[1]) if match else 0


def wrapped(room: Path) -> Iterator[str]:
    for name, options in WRAPPINGS.items():
        subprocess.run(["nvcc", *options, HERE / "variants.cu", "-o", room / name], check=True)
        yield name
    (room / "host.c").write_text("int host(void) { return 1; }\n")
    subprocess.run(["cc", "-c", room / "host.c", "-o", room / "host.o"], check=True)
    subprocess.run(
        ["ar", "rcs", room / "archive.a", room / "host.o", room / "function.o", room / "object.o"], check=True
    )
    yield from ("host.o", "archive.a")


if __name__ == "__main__":
    main()
