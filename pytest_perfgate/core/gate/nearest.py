"""Which valid word a person probably meant."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pytest_perfgate.core.render.plural import first_of

_SHOWN = 12


def nearest(word: str, valid: Iterable[str], count: int = 3) -> tuple[str, ...]:
    """Valid words close to a wrong one, the closest first; only case or blanks wrong comes before all."""
    from difflib import get_close_matches

    words = list(dict.fromkeys(valid))
    same = [w for w in words if w.casefold() == word.casefold()]
    folded = {w.casefold(): w for w in words}
    close = [folded[c] for c in get_close_matches(word.casefold(), folded, n=count, cutoff=0.55)]
    inside = [w for w in words if len(word) > 2 and (word.casefold() in w.casefold())]
    return tuple(dict.fromkeys([*same, *close, *inside]))[:count]


def proposal(word: str, valid: Iterable[str], *, all_of: str = "") -> str:
    """``did you mean 'mfu' or 'mfu_ceiling'?``, or all there are when nothing is near."""
    words = tuple(dict.fromkeys(valid))
    near = nearest(word, words)
    if near:
        return f"did you mean {either(near)}?"
    return f"{all_of}: {some_of(sorted(words))}" if all_of and words else ""


def some_of(words: Sequence[str]) -> str:
    """The first dozen, and how many more there are."""
    return first_of(words, _SHOWN)


def either(words: Iterable[str]) -> str:
    """``'a', 'b' or 'c'``."""
    quoted = [f"'{w}'" for w in words]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} or {quoted[-1]}"
