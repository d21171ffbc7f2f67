"""Bytes of an array, counted and fingerprinted where they lie by the operations of its own library."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

MIXERS = (0x1E3779B97F4A7C15, 0x3F58476D1CE4E5B9, 0x14D049BB133111EB)
"""Odd numbers below 2**63: what is multiplied by one wraps, and loses nothing."""
WORD = 8
CHUNK = 1 << 25
"""Bytes looked at at once: what stands in between takes a few times as many."""


class Library(NamedTuple):
    """What of an array library is needed: all of its own, and on the device of the array."""

    integers: dict[int, Any]
    """Its types of integers of so many bytes; of one byte without a sign."""
    count_up: Callable[[int, Any], Any]
    """Whole numbers from nought, of eight bytes, where another array lies."""
    beside: Callable[[Any, Any], Any]
    """A part of what was saved, where another array lies."""


def holding(library: Library, data: Any, saved: Any, itemsize: int, byte: int) -> float:
    """The share of elements that hold nothing but one byte, and did not when they were saved; both are flat bytes."""
    if len(saved) != len(data):
        return 0.0
    size = itemsize if itemsize in library.integers else next(n for n in (8, 4, 2, 1) if itemsize % n == 0)
    found = 0
    for begin, end in _chunks(len(data), itemsize):
        now = _elements(library, data[begin:end], size, itemsize, byte)
        was = _elements(library, library.beside(saved[begin:end], data), size, itemsize, byte)
        found += int((now & ~was).sum())
    return found * itemsize / len(data)


def _elements(library: Library, data: Any, size: int, itemsize: int, byte: int) -> Any:
    """Which elements hold nothing but the byte; one of another size is as many words of a known one."""
    word = int.from_bytes(bytes([byte]) * size, "little", signed=size > 1)
    equal = data.view(library.integers[size]) == word
    return equal if size == itemsize else equal.reshape(-1, itemsize // size).all(1)


def fingerprint(library: Library, data: Any) -> bytes:
    """Two sums of all words, each mixed with its place: another byte anywhere, or two in each other's place, shows.

    A word is mixed one to one, so a single one that is another always changes the first sum.
    """
    whole = len(data) - len(data) % WORD
    places = library.count_up(min(whole, CHUNK) // WORD, data)
    sums = [0, 0]
    for begin, end in _chunks(whole, WORD):
        words = data[begin:end].view(library.integers[WORD])
        place = places[: len(words)] + begin // WORD
        mixed = words ^ (place * MIXERS[0])
        mixed = (mixed ^ (mixed >> 32)) * MIXERS[1]
        sums = [int(mixed.sum()) + sums[0], int((mixed * (place + MIXERS[2])).sum()) + sums[1]]
    tail = bytes(int(byte) for byte in data[whole:])
    return b"".join((total % (1 << 64)).to_bytes(8, "little") for total in sums) + tail


def _chunks(size: int, unit: int) -> Iterator[tuple[int, int]]:
    step = CHUNK - CHUNK % unit
    return ((begin, min(begin + step, size)) for begin in range(0, size, step))
