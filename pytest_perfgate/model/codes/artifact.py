"""Error codes of artifacts and of the commands that look into them."""

from __future__ import annotations

from pytest_perfgate.model.codes.family import Code, Family

CODES: tuple[Code, ...] = (
    Code(
        name="artifact-missing",
        family=Family.USAGE,
        title="A file that was named is not there or cannot be read",
        why="nothing can be said about it",
    ),
    Code(
        name="artifact-unknown",
        family=Family.ARTIFACT,
        title="A file is of no kind that anything here reads",
        why="files are told apart by their content",
    ),
    Code(
        name="artifact-mixed",
        family=Family.USAGE,
        title="Files of different kinds were given as one job",
        why="several files are read as the ranks or processes of one job",
        mend="look into one kind at a time",
    ),
    Code(
        name="file-refused",
        family=Family.USAGE,
        title="The system refuses to open or write a file",
        why="what was asked for cannot be read from there or left there",
        mend="check that its folder exists and that you may write there",
    ),
    Code(
        name="view-unknown",
        family=Family.USAGE,
        title="A kind of file has no such view",
    ),
    Code(
        name="option-unknown",
        family=Family.USAGE,
        title="An option means nothing to this kind of file",
        why="it would be ignored in silence",
    ),
    Code(
        name="limit-missing",
        family=Family.USAGE,
        title="Files were to be checked against no limit",
        why="a check without a limit would pass in silence",
        mend='perfgate check FILE... "METRIC <= VALUE"...   (to look without a limit: perfgate inspect FILE...)',
    ),
)
