"""Error codes of children, records, stores and commands."""

from __future__ import annotations

from pytest_perfgate.model.codes.family import Code

CODES: tuple[Code, ...] = ()
