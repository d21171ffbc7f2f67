"""What a measurement that an instrument found invalid may still spend on another try."""

from __future__ import annotations

from dataclasses import replace

from pytest_perfgate.model.plan import Plan


def left_of(plan: Plan, spent_ns: float, samples: int) -> Plan | None:
    """The plan for what the first try left of its warm-up and budget; ``None`` where it is too little to sample.

    Too little is less than the samples asked for took the first time. A turn of two processes is a slice of a budget
    that whoever deals the turns keeps: it is taken whole once more, and paid for there.
    """
    if plan.witness:
        return plan
    whole = plan.warmup_ns + plan.budget_ns
    part = 1 - spent_ns / whole if whole > 0 else 0.0
    needed = max(plan.min_samples, plan.least_samples) * spent_ns / max(samples, 1)
    if part <= 0 or plan.budget_ns * part < needed:
        return None
    return replace(plan, warmup_ns=plan.warmup_ns * part, budget_ns=plan.budget_ns * part)


def exhausted(plan: Plan, spent_ns: float) -> tuple[str, str]:
    """Why there was no other try, as evidence."""
    whole = plan.warmup_ns + plan.budget_ns
    left = max(0.0, whole - spent_ns)
    least = max(plan.min_samples, plan.least_samples)
    return ("not taken again", f"{left / 1e9:.3g} s of {whole / 1e9:.3g} s were left: too little for {least} samples")
