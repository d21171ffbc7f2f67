"""What a GPU's calls are given, looked at once for values that are all the same."""

from __future__ import annotations

from typing import Any

from pytest_perfgate.app.inputs import constant_inputs
from pytest_perfgate.model.plan import CaseKey
from pytest_perfgate.model.ports import Call, Contents, Runtime
from pytest_perfgate.model.problem import Finding
from pytest_perfgate.plugin.asked import Asked


class Inputs:
    """What was seen of each case's inputs in this process."""

    def __init__(self, contents: Contents | None) -> None:
        self._contents = contents
        self._seen: dict[CaseKey, Finding | None] = {}

    def findings(self, key: CaseKey) -> tuple[Finding, ...]:
        seen = self._seen.get(key)
        return (seen,) if seen else ()

    def prepared(self, asked: Asked, runtime: Runtime) -> Call | None:
        """What runs before each call; a GPU's inputs are looked at before any call writes them."""
        unseen = self._contents is not None and asked.key not in self._seen and runtime.device().kind == "gpu"
        if asked.setup is None:
            if unseen:
                self._look(asked)
            return None
        return self._first(asked) if unseen else asked.prepare

    def _first(self, asked: Asked) -> Call:
        """The set-up; what it makes the first time is looked at."""

        def prepare() -> Any:
            made = asked.prepare()
            if asked.key not in self._seen:
                self._look(asked, made)
            return made

        return prepare

    def _look(self, asked: Asked, made: Any = ()) -> None:
        if self._contents is not None:
            self._seen[asked.key] = constant_inputs(self._contents, (asked.fn, asked.args, made))
