"""What a run could have collected: only of that may be said that it is gone."""

from __future__ import annotations

from fnmatch import fnmatchcase

from pytest_perfgate.model.values import value


@value
class Reach:
    """Where pytest looked for tests; paths are those of node ids, relative to the root."""

    beneath: tuple[str, ...] = ()
    """Folders, files and node ids that were named; without any the whole project."""
    without: tuple[str, ...] = ()
    """Paths and patterns that were left out."""
    unknown: str = ""
    """The option that keeps anybody from saying where it looked."""

    def holds(self, nodeid: str) -> bool:
        """Whether a test of this name would have been collected."""
        if self.leaves_out(nodeid):
            return False
        places = _places(nodeid.partition("::")[0])
        return not self.beneath or any(named in places or _is_below(nodeid, named) for named in self.beneath)

    def leaves_out(self, nodeid: str) -> bool:
        """Whether it was told not to look there."""
        places = _places(nodeid.partition("::")[0])
        return any(place == out or fnmatchcase(place, out) for place in places for out in self.without)


def _places(path: str) -> list[str]:
    """The file itself and every folder above, the root of the project as the last."""
    parts = path.split("/")
    return ["/".join(parts[:end]) for end in range(len(parts), 0, -1)] + ["."]


def _is_below(nodeid: str, named: str) -> bool:
    """Whether a node id is what another names: the test, one of its parameters, or a test of its class."""
    return nodeid == named or nodeid.startswith((f"{named}[", f"{named}::"))
