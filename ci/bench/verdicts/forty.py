"""Forty host kernels of five kinds, each of a hundred equal portions of work: a slowdown is real work.

Eight each in plain Python, in NumPy, in C extensions (one of the project's own, seven of the standard library), that
allocate, and that move memory. ``ckern`` is built from ``CKERN`` beside this file, by ``BUILD``.
"""

from __future__ import annotations

import bisect
import collections
import hashlib
import json
import re
import zlib
from collections.abc import Callable

import numpy as np

Kernel = Callable[[int], object]
UNITS = 100
KINDS = ("python", "numpy", "extension", "allocating", "memory")
CKERN = r"""
#include <Python.h>

static PyObject *mix(PyObject *self, PyObject *args) {
    unsigned long long state;
    int steps;
    if (!PyArg_ParseTuple(args, "Ki", &state, &steps)) return NULL;
    for (int at = 0; at < steps; at++) {
        state = state * 6364136223846793005ULL + 1442695040888963407ULL;
        state ^= state >> 29;
    }
    return PyLong_FromUnsignedLongLong(state);
}

static PyMethodDef methods[] = {{"mix", mix, METH_VARARGS, NULL}, {NULL, NULL, 0, NULL}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "ckern", NULL, -1, methods};
PyMODINIT_FUNC PyInit_ckern(void) { return PyModule_Create(&module); }
"""
BUILD = """
import os, subprocess, sysconfig
name = "ckern" + sysconfig.get_config_var("EXT_SUFFIX")
include = sysconfig.get_paths()["include"]
subprocess.run(["cc", "-O2", "-shared", "-fPIC", f"-I{include}", "ckern.c", "-o", name + ".part"], check=True)
os.replace(name + ".part", name)
"""


def repeated(portion: Callable[[], object]) -> Kernel:
    def run(units: int) -> object:
        for _ in range(units):
            portion()
        return None

    return run


def python() -> dict[str, Callable[[], object]]:
    numbers, words = list(range(200)), [f"word-{at % 17}" for at in range(120)]
    grid = [[at * row for at in range(10)] for row in range(10)]

    def fibonacci() -> int:
        a, b = 0, 1
        for _ in range(150):
            a, b = b, (a + b) % 1_000_003
        return a

    def counting() -> dict[str, int]:
        counts: dict[str, int] = {}
        for word in words:
            counts[word] = counts.get(word, 0) + 1
        return counts

    return {
        "sum": lambda: sum(number * number for number in numbers),
        "fibonacci": fibonacci,
        "counting": counting,
        "sieve": lambda: [n for n in range(2, 60) if all(n % d for d in range(2, int(n**0.5) + 1))],
        "transpose": lambda: [list(row) for row in zip(*grid)],
        "horner": lambda: [((3 * x + 2) * x + 1) * x for x in numbers],
        "joining": lambda: ",".join(word.upper() for word in words),
        "sorting": lambda: sorted(words, key=len),
    }


def numeric() -> dict[str, Callable[[], object]]:
    dice = np.random.default_rng(1)
    vector, square, whole = dice.random(2048), dice.random((24, 24)), dice.integers(0, 99, 2048)
    return {
        "add": lambda: vector + 1.0,
        "matmul": lambda: square @ square,
        "exp": lambda: np.exp(vector),
        "argsort": lambda: np.argsort(vector[:256]),
        "cumsum": lambda: np.cumsum(vector),
        "where": lambda: np.where(vector > 0.5, vector, 0.0),
        "bincount": lambda: np.bincount(whole),
        "fft": lambda: np.fft.rfft(vector[:512]),
    }


def extension() -> dict[str, Callable[[], object]]:
    from ckern import mix

    dice = np.random.default_rng(2)
    blob, numbers = dice.bytes(2048), dice.random(64).tolist()
    record, text = {"id": 7, "tags": ["a", "b"] * 8, "sizes": numbers[:8]}, "the quick fox 42 over 17 lazy dogs " * 4
    written, ordered, pattern = json.dumps(record), sorted(numbers), re.compile(r"(\w+) (\d+)")
    return {
        "mix": lambda: mix(7, 3000),
        "sha256": lambda: hashlib.sha256(blob).digest(),
        "crc32": lambda: [zlib.crc32(blob, at) for at in range(4)],
        "compress": lambda: zlib.compress(blob[:512], 1),
        "json-write": lambda: json.dumps(record),
        "json-read": lambda: json.loads(written),
        "regex": lambda: pattern.findall(text),
        "bisect": lambda: [bisect.bisect(ordered, number) for number in numbers],
    }


def allocating() -> dict[str, Callable[[], object]]:
    keys = [f"key-{at}" for at in range(60)]

    class Point:
        def __init__(self, x: int, y: int) -> None:
            self.x, self.y = x, y

    Pair = collections.namedtuple("Pair", "x y")  # noqa: PYI024 - what it allocates is the point
    return {
        "objects": lambda: [Point(at, at) for at in range(60)],
        "tuples": lambda: [(at, at + 1, at + 2) for at in range(200)],
        "pairs": lambda: [Pair(at, at) for at in range(60)],
        "lists": lambda: [[at] * 20 for at in range(60)],
        "dicts": lambda: [dict.fromkeys(keys[:10], at) for at in range(30)],
        "strings": lambda: [key + "-more" for key in keys for _ in range(3)],
        "bytes": lambda: [bytes(512) for _ in range(120)],
        "sets": lambda: [set(keys[:20]) for _ in range(20)],
    }


def memory() -> dict[str, Callable[[], object]]:
    large, other = np.ones(64 * 1024), np.empty(64 * 1024)
    table, far = np.ones((256, 256)), np.random.default_rng(3).permutation(64 * 1024)[:8192]
    raw = bytearray(512 * 1024)
    return {
        "copy": lambda: np.copyto(other, large),
        "fill": lambda: other.fill(2.0),
        "scale": lambda: np.multiply(large, 2.0, out=other),
        "reduce": large.sum,
        "gather": lambda: large.take(far),
        "columns": table.T.copy,
        "reverse": lambda: np.copyto(other, large[::-1]),
        "bytes": lambda: bytes(raw[: 64 * 1024]),
    }


def kernels() -> dict[str, Kernel]:
    """All forty, by kind and name."""
    kinds = zip(KINDS, (python(), numeric(), extension(), allocating(), memory()))
    return {f"{kind}-{name}": repeated(portion) for kind, portions in kinds for name, portion in portions.items()}
