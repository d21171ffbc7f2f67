"""Error codes of baselines, records, the history and the command line."""

from __future__ import annotations

from pytest_perfgate.model.codes.family import Code, Family

_LOST = "a baseline that cannot be read would let its tests pass unjudged; nothing was changed"

CODES: tuple[Code, ...] = (
    Code(
        name="baseline-unreadable",
        family=Family.BASELINE,
        title="A baseline file is not the YAML that it should be",
        why=_LOST,
        mend="mend the file by hand, or take it back with: git checkout -- FILE",
    ),
    Code(
        name="baseline-conflict",
        family=Family.BASELINE,
        title="A baseline file holds the markers of an unfinished merge",
        why=_LOST,
        mend="keep one line for each case and delete the markers; the merge driver spares you this",
    ),
    Code(
        name="baseline-duplicate",
        family=Family.BASELINE,
        title="A baseline file says the same thing twice",
        why="nobody could tell which of the two was accepted",
        mend="delete one of the two lines",
    ),
    Code(
        name="baseline-value",
        family=Family.BASELINE,
        title="A value in a baseline file has the wrong type, unit or range",
        why=_LOST,
    ),
    Code(
        name="baseline-version",
        family=Family.BASELINE,
        title="A baseline file was written by a later version",
        why="fields that this version does not know may change what was accepted",
        mend="upgrade: pip install --upgrade pytest-perfgate",
    ),
    Code(
        name="baseline-path",
        family=Family.BASELINE,
        title="A device or a test cannot name a baseline file",
        why="the file would lie outside the folder of baselines",
    ),
    Code(
        name="baseline-unwritable",
        family=Family.BASELINE,
        title="A baseline line would not read back as it was meant",
        why="a file that does not read stops every later run; nothing was changed",
        mend="report it with the name of the test; a parameter's id is free to choose",
    ),
    Code(
        name="record-missing",
        family=Family.RECORD,
        title="There is no record of a run",
        why="this command reads what a run left behind and measures nothing itself",
        mend="run the gate first: pytest --perfgate=full",
    ),
    Code(
        name="record-unreadable",
        family=Family.RECORD,
        title="A record cannot be read",
        why="nothing can be accepted, shown or compared from it",
        mend="run the gate again, or name another record",
    ),
    Code(
        name="record-version",
        family=Family.RECORD,
        title="A record was written by a later version",
        why="its fields may mean something else",
        mend="upgrade: pip install --upgrade pytest-perfgate",
    ),
    Code(
        name="record-outdated",
        family=Family.RECORD,
        title="The last record is of another commit, or of another run of CI",
        why="what is delivered speaks for the commit that is checked out and for this run, and that was not measured",
        mend="run the gate first, or name the record: perfgate report RECORD --to NAME",
    ),
    Code(
        name="record-fetch",
        family=Family.RECORD,
        title="A record could not be fetched",
        why="nothing can be accepted, shown or compared from it",
        mend="check the address and your access, or download the file and name its path",
    ),
    Code(
        name="history-unreadable",
        family=Family.HISTORY,
        title="The history database is damaged or not ours",
        why="sittings would be lost or mixed with something else",
        mend="move the file away; the next run begins a new one",
    ),
    Code(
        name="history-version",
        family=Family.HISTORY,
        title="The history database was written by a later version",
        why="its columns may mean something else",
        mend="upgrade: pip install --upgrade pytest-perfgate",
    ),
    Code(
        name="history-empty",
        family=Family.USAGE,
        title="The history has nothing of that name",
    ),
    Code(
        name="review-terminal",
        family=Family.USAGE,
        title="Review needs a terminal",
        mend="perfgate accept NODEID --reason TEXT",
    ),
    Code(
        name="accept-reason",
        family=Family.USAGE,
        title="A slower time is accepted without a reason",
        why="the reason is what a reviewer judges and what later readers find",
        mend="add --reason TEXT",
    ),
    Code(
        name="accept-selection",
        family=Family.USAGE,
        title="Nothing in the record is named like that",
        why="accepting nothing in silence would leave the gate as it was",
    ),
    Code(
        name="accept-ci",
        family=Family.USAGE,
        title="Baselines are not written in CI",
        why="a gate that moves its own baseline judges nothing",
        mend="accept from a checkout with --from RECORD, or say --in-ci if this job is meant to write them",
    ),
    Code(
        name="accept-untrusted",
        family=Family.USAGE,
        title="A measurement that is not to be trusted cannot be accepted",
        why="it would become the truth that others are judged by",
        mend="mend what the problem names and measure again",
    ),
    Code(
        name="prune-incomplete",
        family=Family.USAGE,
        title="Only a full, unfiltered run that passed may prune",
        why="a test that was not selected would lose its baseline",
        mend="run everything first: pytest --perfgate=full",
    ),
    Code(
        name="artifact-unreadable",
        family=Family.ARTIFACT,
        title="An artifact cannot be read",
        why="a check of what cannot be read would pass or fail for nothing",
    ),
    Code(
        name="benchmark-dropped",
        family=Family.ARTIFACT,
        title="A benchmark of the earlier file is not in the later one",
        why="a comparison of what is left would pass without it",
        mend="run it again, or compare files of the same benchmarks",
    ),
    Code(
        name="benchmark-unlike",
        family=Family.ARTIFACT,
        title="A benchmark has another figure in the earlier file than in the later one",
        why="a median against a mean, or the host's clock against the device's, is no slowdown",
        mend="write both files with one version of the tool and one set of options",
    ),
    Code(
        name="command-usage",
        family=Family.USAGE,
        title="A command was not understood",
        mend="perfgate --help",
    ),
    Code(
        name="plugin-broken",
        family=Family.CONFIGURATION,
        title="A perfgate plugin cannot be loaded",
        why="what it provides would be missing in silence",
        mend="install it, or take it out of [tool.perfgate] plugins",
    ),
    Code(
        name="file-unwritable",
        family=Family.CONFIGURATION,
        title="A record or a baseline cannot be written",
        why="what was measured would be lost when the run ends; what stood there before is unchanged",
        mend="make the folder writable, or free its disk, and run again; --perfgate-json PATH keeps the record "
        "elsewhere too, for perfgate accept --from PATH",
    ),
    Code(
        name="delivery-failed",
        family=Family.DELIVERY,
        title="A report could not be delivered",
        why="nobody would read it",
    ),
    Code(
        name="repository-missing",
        family=Family.REPOSITORY,
        title="Version control cannot answer",
        why="what was accepted before this change cannot be told",
    ),
)
