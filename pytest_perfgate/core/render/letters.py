"""Text for a terminal that has not all letters: written as near as it can be, and never as one escaped line."""

from __future__ import annotations

_NEAR = str.maketrans(
    {"µ": "u", "μ": "u", "°": "", "×": "x", "·": "-", "–": "-", "−": "-", "…": "...", "≤": "<=", "≥": ">=", "→": "->"}
)


def writable(text: str, encoding: str | None) -> str:
    """The text itself where the encoding has its letters; else those that are near, and escapes for the rest."""
    known = encoding or "utf-8"
    try:
        text.encode(known)
    except UnicodeEncodeError:
        return text.translate(_NEAR).encode(known, "backslashreplace").decode(known)
    except LookupError:
        return text
    return text
