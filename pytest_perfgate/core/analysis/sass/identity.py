"""The identity of a kernel's machine code: equal when the compiler wrote the same thing."""

from __future__ import annotations

import hashlib

from pytest_perfgate.model.kernel import KernelCode


def identity(code: KernelCode) -> str:
    """A hash of the machine code without its padding; of the listing where the code itself was not at hand."""
    told = code.words or repr((code.predicates, code.opcodes, code.operands)).encode()
    return hashlib.sha256(told).hexdigest()[:16]
