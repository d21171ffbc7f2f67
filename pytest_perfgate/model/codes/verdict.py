"""Error codes of arms, rounds, calibration and history."""

from __future__ import annotations

from pytest_perfgate.model.codes.family import Code, Family

CODES: tuple[Code, ...] = (
    Code(
        name="arm-no-commit",
        family=Family.REPOSITORY,
        title="A baseline names no commit",
        why="a suspect is convicted beside the commit that was accepted",
        mend="accept it again inside the repository: perfgate accept NODEID --reason TEXT",
    ),
    Code(
        name="arm-no-merge-base",
        family=Family.REPOSITORY,
        title="There is no merge base with a target branch",
        why="--perfgate-against without a revision compares with it",
        mend="name a revision: --perfgate-against main; or fetch the target branch",
    ),
    Code(
        name="calibration-wrong",
        family=Family.RECORD,
        title="A calibration has too little to judge by, or could not measure",
        why="rates of few rounds say nothing",
        mend="perfgate calibrate --minutes 20",
    ),
    Code(
        name="judging-failed",
        family=Family.RECORD,
        title="perfgate itself failed while it judged one case",
        why="the case has no verdict, so it fails; the others are judged, and its samples are in the record",
        mend="this is a fault of perfgate: report it with the record (pytest --perfgate-json PATH)",
    ),
    Code(
        name="showing-failed",
        family=Family.RECORD,
        title="perfgate itself, or a plugin, failed while it showed or wrote something",
        why="what it came to counts all the same, and everything else is shown",
        mend="this is a fault of perfgate or of a plugin: report it with the record (pytest --perfgate-json PATH)",
    ),
)
