"""Ways to damage a file of any kind, byte by byte; each says what must be true of whoever reads the result."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Mapping
from random import Random
from typing import NamedTuple

Damage = Callable[[Random, bytes], bytes]


class Way(NamedTuple):
    """A way to change a file."""

    make: Damage
    same: bool = False
    """Whether a reader that accepts the result must give the same figures, or say that something is wrong."""


HUGE = (b"1e308", b"-1e308", b"1e400", b"-1", b"0", b"NaN", b"Infinity", b"9223372036854775808", b"1" * 400)


def _span(rng: Random, data: bytes, most: int = 400) -> tuple[int, int]:
    first = rng.randrange(len(data) or 1)
    return first, min(len(data), first + rng.randint(1, most))


def cut(rng: Random, data: bytes) -> bytes:
    """The end is missing."""
    return data[: rng.randrange(len(data) or 1)]


def beheaded(rng: Random, data: bytes) -> bytes:
    """The beginning is missing."""
    return data[rng.randrange(len(data) or 1) :]


def zeroed(rng: Random, data: bytes) -> bytes:
    """A range of NUL bytes, as a lost block of a disk leaves."""
    first, last = _span(rng, data)
    return data[:first] + b"\0" * (last - first) + data[last:]


def flipped(rng: Random, data: bytes) -> bytes:
    """A few bits are others."""
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 8))):
        if out:
            out[rng.randrange(len(out))] ^= 1 << rng.randrange(8)
    return bytes(out)


def repeated(rng: Random, data: bytes) -> bytes:
    """A range twice."""
    first, last = _span(rng, data)
    return data[:last] + data[first:last] + data[last:]


def swapped(rng: Random, data: bytes) -> bytes:
    """Two ranges change places."""
    first, last = sorted((_span(rng, data), _span(rng, data)))
    if first[1] > last[0]:
        return data
    return data[: first[0]] + data[slice(*last)] + data[first[1] : last[0]] + data[slice(*first)] + data[last[1] :]


def shifted(rng: Random, data: bytes) -> bytes:
    """Some bytes too many, or too few."""
    first, last = _span(rng, data, 16)
    return data[:first] + (rng.randbytes(last - first) + data[first:] if rng.random() < 0.5 else data[last:])


def widened(rng: Random, data: bytes) -> bytes:
    """A word of two, four or eight bytes becomes as large as it can, or zero, or one less than nothing."""
    size = rng.choice((2, 4, 8))
    at = rng.randrange(max(1, len(data) - size)) // size * size
    word = rng.choice((b"\xff" * size, b"\0" * size, b"\xff" * (size - 1) + b"\x7f", rng.randbytes(size)))
    return data[:at] + word + data[at + size :]


def recompressed(rng: Random, data: bytes) -> bytes:
    """Packed anew: once, twice, or in two members."""
    half = rng.randrange(len(data) or 1)
    return rng.choice(
        (
            gzip.compress(data, 1),
            gzip.compress(gzip.compress(data, 1), 1),
            gzip.compress(data[:half], 1) + gzip.compress(data[half:], 1),
        )
    )


def packed_and_cut(rng: Random, data: bytes) -> bytes:
    """Packed, and the end of that is missing, or a bit of it another; an empty file is none that was packed."""
    packed = gzip.compress(data, 1)
    return cut(rng, packed) or packed[:1] if rng.random() < 0.5 else flipped(rng, packed)


def alone(rng: Random, data: bytes) -> bytes:
    """Nothing, one byte, only NUL, only line ends."""
    return rng.choice((b"", data[:1], b"\0" * len(data), b"\n" * 100, b"\xff\xfe", b"\xef\xbb\xbf"))


BYTES: Mapping[str, Way] = {
    "cut": Way(cut),
    "beheaded": Way(beheaded),
    "zeroed": Way(zeroed),
    "flipped": Way(flipped),
    "repeated": Way(repeated),
    "swapped": Way(swapped),
    "shifted": Way(shifted),
    "widened": Way(widened),
    "recompressed": Way(recompressed, same=True),
    "packed and cut": Way(packed_and_cut, same=True),
    "alone": Way(alone),
}


def encoded(rng: Random, data: bytes) -> bytes:
    """The same text in another encoding."""
    text = data.decode("utf-8", "surrogateescape")
    name = rng.choice(("utf-8-sig", "utf-16", "utf-16-le", "utf-32"))
    return text.encode(name, "surrogatepass")


def line_ends(rng: Random, data: bytes) -> bytes:
    """Line ends of another system, or none at the end."""
    if rng.random() < 0.3:
        return data.rstrip(b"\r\n")
    return data.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")


def line_lost(rng: Random, data: bytes) -> bytes:
    lines = data.splitlines(keepends=True)
    if lines:
        del lines[rng.randrange(len(lines))]
    return b"".join(lines)


def line_twice(rng: Random, data: bytes) -> bytes:
    lines = data.splitlines(keepends=True)
    if lines:
        at = rng.randrange(len(lines))
        lines.insert(at, lines[at])
    return b"".join(lines)


def number_odd(rng: Random, data: bytes) -> bytes:
    """A number becomes huge, negative, not a number, or a very long one."""
    places = [at for at, byte in enumerate(data) if 48 <= byte <= 57]
    if not places:
        return data
    first = rng.choice(places)
    last = first
    while last < len(data) and data[last] in b"0123456789.eE":
        last += 1
    while first and data[first - 1] in b"0123456789.-":
        first -= 1
    return data[:first] + rng.choice(HUGE) + data[last:]


def word_odd(rng: Random, data: bytes) -> bytes:
    """A word becomes another one: of another kind, too long, or none."""
    words = [word for word in data.replace(b'"', b" ").split() if word.isalpha()]
    if not words:
        return data
    other = rng.choice(
        (rng.choice(words), b"x" * 5000, b"", "\u202e\u0000µ名".encode(), b"{{%s}}", b"null", b"../../x")
    )
    return data.replace(rng.choice(words), other, rng.choice((1, -1)))


TEXT: Mapping[str, Way] = {
    **BYTES,
    "encoded": Way(encoded, same=True),
    "line ends": Way(line_ends, same=True),
    "line lost": Way(line_lost),
    "line twice": Way(line_twice),
    "number odd": Way(number_odd),
    "word odd": Way(word_odd),
}
