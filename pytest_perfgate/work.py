"""What a call has to compute and move: public, see the page on work."""

from __future__ import annotations

from pytest_perfgate.core.analysis import work as _work
from pytest_perfgate.core.analysis.work import *  # noqa: F403 - the families of operators, one list of names

__all__ = _work.__all__
