"""The identity of a kernel's machine code: equal when the compiler wrote the same thing."""

from __future__ import annotations

import hashlib

from pytest_perfgate.model.kernel import KernelCode


def identity(code: KernelCode) -> str:
    """A hash of every instruction with its operands and scheduling; names and padding are no part of it."""
    digest = hashlib.sha256()
    bits = code.controls or (0,) * len(code)
    for row in zip(code.predicates, code.opcodes, code.operands, bits):
        digest.update(repr(row).encode())
    return digest.hexdigest()[:16]
