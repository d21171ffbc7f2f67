"""Error codes of artifacts and of the commands that look into them."""

from __future__ import annotations

from pytest_perfgate.model.codes.family import Code, Family

CODES: tuple[Code, ...] = (
    Code(
        name="artifact-missing",
        family=Family.USAGE,
        title="A file that was named is not there or cannot be read",
        why="nothing can be said about it",
        mend="check the path: ls -l FILE",
    ),
    Code(
        name="artifact-unknown",
        family=Family.ARTIFACT,
        title="A file is of no kind that anything here reads",
        why="files are told apart by their content",
        mend="perfgate inspect --help lists the kinds; a plugin can add one",
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
        mend="check who may read and write there (ls -l), or name another place",
    ),
    Code(
        name="file-missing",
        family=Family.USAGE,
        title="A file, or the folder it was to be written into, is not there",
        why="what was asked for cannot be read from there or left there",
        mend="check the path; a folder is made with mkdir -p",
    ),
    Code(
        name="file-kind",
        family=Family.USAGE,
        title="A folder stands where a file was meant, or a file where a folder was",
        why="what was asked for cannot be read from there or left there",
        mend="name the file itself, or another folder",
    ),
    Code(
        name="file-full",
        family=Family.CONFIGURATION,
        title="The disk, or what one may use of it, is full",
        why="the file is not whole; do not read figures from what is there",
        mend="free some space, or name another disk (TMPDIR for temporary files), and do it again",
    ),
    Code(
        name="file-broken",
        family=Family.ARTIFACT,
        title="The disk or the network under a file fails",
        why="what could be read of it may not be what was written",
        mend="look at the system's log (dmesg) and copy the file again from where it was made",
    ),
    Code(
        name="view-unknown",
        family=Family.USAGE,
        title="A kind of file has no such view",
        mend="perfgate inspect FILE --view list names them",
    ),
    Code(
        name="option-unknown",
        family=Family.USAGE,
        title="An option means nothing to this kind of file",
        why="it would be ignored in silence",
        mend="leave it out; perfgate inspect --help lists the options of each kind",
    ),
    Code(
        name="limit-missing",
        family=Family.USAGE,
        title="Files were to be checked against no limit",
        why="a check without a limit would pass in silence",
        mend='perfgate check FILE... "METRIC <= VALUE"...   (to look without a limit: perfgate inspect FILE...)',
    ),
)
