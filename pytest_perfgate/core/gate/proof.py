"""Whether an arm loaded its own modules and no others."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_perfgate.model.arm import Arm
from pytest_perfgate.model.problem import Problem


def foreign_modules(arm: Arm, loaded: Sequence[tuple[str, str]]) -> Problem | None:
    """The problem of an arm that loaded files from elsewhere, or nothing to prove it by."""
    root = arm.root.rstrip("/") + "/"
    strangers = [file for file, _ in loaded if not file.startswith(root)]
    if strangers:
        evidence = (("arm", arm.name), ("belongs below", arm.root), *(("loaded", file) for file in strangers[:5]))
        more = f" and {len(strangers) - 1} more" if len(strangers) > 1 else ""
        what = f"the {arm.name} arm loaded files of the package under test that are not its own: {strangers[0]}{more}"
        return Problem(code="arm-foreign-module", what=what, evidence=evidence, retry=False)
    if not loaded:
        what = f"the {arm.name} arm loaded no module of the package under test ({', '.join(arm.modules)})"
        return Problem(code="arm-foreign-module", what=what, evidence=(("arm", arm.name),), retry=False)
    return None


def same_code(one: Sequence[tuple[str, str]], other: Sequence[tuple[str, str]]) -> bool:
    """Whether both arms loaded the same contents: then a difference is the machine's."""
    return bool(one) and sorted(digest for _, digest in one) == sorted(digest for _, digest in other)
