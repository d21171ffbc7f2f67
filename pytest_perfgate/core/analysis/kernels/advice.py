"""Advice as sentences: what, how much it may bring, what triggered it, what it may cost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pytest_perfgate.model.problem import Finding


def advice_items(advice: Sequence[Finding]) -> Iterator[str]:
    """One item each, in the order given."""
    for finding in advice:
        parts = [f"{finding.title} — {gain_text(finding)} — trigger: {finding.trigger}", _sentence(finding.advice)]
        parts += [_sentence(finding.detail)] if finding.detail else []
        parts += [f"Doubt: {finding.doubt}."] if finding.doubt else []
        parts += [f"Conflict: {conflict}." for conflict in finding.conflicts]
        yield ". ".join(parts[:1]) + ". " + " ".join(parts[1:])


def gain_text(finding: Finding) -> str:
    """``estimated 0-35 % gain``; a gain that nobody measured says so."""
    if finding.gain is None:
        return "gain not known"
    low, high = finding.gain.low * 100, finding.gain.high * 100
    return f"estimated {low:.0f}-{high:.0f} % gain" if round(low) != round(high) else f"estimated {high:.0f} % gain"


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")
