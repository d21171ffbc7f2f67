"""How many examples a property is given: few in every run, many where somebody asks for a thorough one."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""A busy machine is no fault of a property."""
settings.register_profile("few", PATIENT, max_examples=30)
settings.register_profile("thorough", PATIENT, max_examples=1000)
settings.load_profile(os.environ.get("PERFGATE_EXAMPLES") or "few")
