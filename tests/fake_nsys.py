"""A stand-in for nsys: says its version, runs the child, leaves a report, exports what was made before."""

from __future__ import annotations

from pathlib import Path

_SCRIPT = """#!/bin/sh
case "$1" in
--version) echo "NVIDIA Nsight Systems version {version}";;
profile)
  shift; out=
  while :; do case "$1" in --output=*) out="${{1#--output=}}"; shift;; --*) echo "$1" >> {log}; shift;; *) break;; esac; done
  echo run >> {log}
  "$@" || exit $?
  {leave}
  ;;
export)
  for a; do case "$a" in --output=*) cp {made} "${{a#--output=}}";; esac; done;;
esac
"""
VERSION = "2024.6.2.225-246235244400v0"
REPORT = 'echo report > "$out.nsys-rep"'


def write_fake(bins: Path, made: Path, log: Path, version: str = VERSION, leave: str = REPORT) -> Path:
    """The program in a folder of programs; ``made`` is what an export becomes, ``log`` has flags and runs."""
    program = bins / "nsys"
    bins.mkdir(exist_ok=True)
    program.write_text(_SCRIPT.format(version=version, log=log, made=made, leave=leave))
    program.chmod(0o755)
    return program
