"""How many examples a property is given: few in every run, many where somebody asks for a thorough one."""

from __future__ import annotations

import os

from hypothesis import settings

settings.register_profile("few", max_examples=30, deadline=None)
settings.register_profile("thorough", max_examples=1000, deadline=None)
settings.load_profile(os.environ.get("PERFGATE_EXAMPLES") or "few")
