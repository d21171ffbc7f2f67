"""Error codes: baselines, records, the history, accepting, commands, files that they write, plugins, deliveries."""

from __future__ import annotations

from pytest_perfgate.model.codes import codes_of

_LOST = "a baseline that cannot be read would let its tests pass unjudged; nothing was changed"

STORE_CODES = codes_of(
    BASELINE={
        "baseline-unreadable": (
            "A baseline file is not valid YAML of baselines",
            _LOST,
            "fix the file by hand, or restore it: git checkout -- FILE",
        ),
        "baseline-conflict": (
            "A baseline file holds the markers of an unfinished merge",
            _LOST,
            "keep one line for each case, delete the markers; perfgate doctor checks the merge driver",
        ),
        "baseline-duplicate": (
            "A baseline file says the same thing twice",
            "nothing shows which of the two was accepted",
            "delete one of the two lines",
        ),
        "baseline-value": (
            "A value in a baseline file has the wrong type, unit or range",
            _LOST,
            "fix the value by hand, or restore the file: git checkout -- FILE",
        ),
        "baseline-version": (
            "A baseline file was written by a later version",
            "fields that this version does not know may change what was accepted",
            "upgrade: pip install --upgrade pytest-perfgate",
        ),
        "baseline-path": (
            "A device or a test cannot name a baseline file",
            "the file would lie outside the folder of baselines",
            "give the device or the test a name without .. and without a leading /",
        ),
        "baseline-unwritable": (
            "A baseline line could not be read back",
            "a file that cannot be read stops every later run; nothing was changed",
            "report it with the name of the test; meanwhile give the parameter another id",
        ),
    },
    RECORD={
        "merge-unlike": (
            "The records to merge are not shards of one run",
            "one report on two commits, or on different limits or tests, would be wrong for both; nothing was written",
            "name the records of one commit and one run, from jobs that were started with the same options",
        ),
        "merge-twice": (
            "A shard or a case is in more than one record",
            "nothing shows which result counts, and a second copy may hide a missing record; nothing was written",
            "name one record of each shard: after a retry of a job, the newer one",
        ),
        "record-missing": (
            "There is no record of a run",
            "this command reads the record of a run and measures nothing itself",
            "run the gate first: pytest --perfgate=full",
        ),
        "record-unreadable": (
            "A record cannot be read",
            "nothing can be accepted, shown or compared from it",
            "run the gate again, or name another record",
        ),
        "record-version": (
            "A record was written by a later version",
            "its fields may mean something else",
            "upgrade: pip install --upgrade pytest-perfgate",
        ),
        "record-outdated": (
            "The last record is of another commit, or of another run of CI",
            "a report must describe the commit that is checked out and this run, and these were not measured",
            "run the gate first, or name the record: perfgate report RECORD --to NAME",
        ),
        "record-partial": (
            "The last record is of a run that was cut short",
            "tests that it did not reach were not judged, and pytest may have ended with 0 all the same",
            "find what ended the run, and run the gate again; a record that is named is reported as it is",
        ),
        "record-fetch": (
            "A record could not be fetched",
            "nothing can be accepted, shown or compared from it",
            "check the address and your access, or download the file and name its path",
        ),
    },
    HISTORY={
        "history-unreadable": (
            "The history database is damaged or of another program",
            "runs would be lost or mixed with something else",
            "move the file away; the next run starts a new one",
        ),
        "history-version": (
            "The history database was written by a later version",
            "its columns may mean something else",
            "upgrade: pip install --upgrade pytest-perfgate",
        ),
        "history-unreachable": (
            "The database of the history does not answer",
            "runs that it did not confirm may be missing there; adding them again counts nothing twice",
            "check that the server runs and accepts this user, then repeat it; after a run: perfgate history add",
        ),
        "history-driver": (
            "The driver of PostgreSQL is not installed",
            "the setting history is an address of PostgreSQL",
            "pip install 'pytest-perfgate[postgres]'",
        ),
    },
    USAGE={
        "history-address": (
            "The history has an unknown kind of address",
            "its runs would be lost, or written to a folder of that name",
            "name a file, such as .perfgate/history.db, or an address postgresql://USER@HOST/NAME",
        ),
        "history-empty": (
            "The history has no case of that name",
            "",
            "check the name (perfgate report lists the cases); full runs are remembered: pytest --perfgate=full",
        ),
        "review-terminal": (
            "Review needs a terminal",
            "",
            "perfgate accept NODEID --reason TEXT",
        ),
        "accept-reason": (
            "A slower time is accepted without a reason",
            "a reviewer judges the reason, and later readers look for it",
            "add --reason TEXT",
        ),
        "accept-selection": (
            "The record has no such case",
            "an empty result would look like a success",
            "perfgate report lists the cases of the record",
        ),
        "accept-pinned": (
            "A time of --perfgate-against cannot be accepted",
            "it pins base and head to one core; no run without --perfgate-against could be compared with such a line",
            "measure with pytest --perfgate=full, and accept that",
        ),
        "accept-ci": (
            "Baselines are not written in CI",
            "a job that writes its own baseline would compare each run with itself",
            "run it in a checkout (accept and prune take --from RECORD), or pass --in-ci if this job writes baselines",
        ),
        "accept-untrusted": (
            "A measurement that cannot be trusted cannot be accepted",
            "later runs would be judged by it",
            "fix what the problem names and measure again",
        ),
        "prune-incomplete": (
            "The run does not show which tests are gone: it was not full, failed, or left tests out",
            "a test that is still there, and did not run or failed, would lose its baseline",
            "run everything first: pytest --perfgate=full",
        ),
        "explain-unknown": (
            "perfgate explain does not know this word",
            "it knows codes, outcomes, terms, words of a block, metrics, settings, options, commands, views and advice",
            "perfgate explain lists every word",
        ),
        "command-usage": (
            "A command was not understood",
            "",
            "perfgate --help",
        ),
        "workbook-rows": (
            "A table has more rows than a sheet of a workbook holds",
            "a workbook with fewer rows would look complete",
            "take it as CSV: --csv FOLDER",
        ),
    },
    TOOL={
        "workbook-tool": (
            "A workbook needs openpyxl",
            "nothing else here writes .xlsx files",
            "install the xlsx extra (openpyxl), or take the same tables as CSV: --csv FOLDER",
        ),
        "picture-tool": (
            "No program here converts a picture to PNG",
            "pictures are drawn as SVG, and another program must convert them",
            "pip install cairosvg, or have rsvg-convert or chromium on the PATH; or name a file that ends in .svg",
        ),
    },
    CONFIGURATION={
        "plugin-broken": (
            "A perfgate plugin cannot be loaded",
            "its metrics, readers or timers would be missing",
            "install it, or take it out of [tool.perfgate] plugins",
        ),
        "file-unwritable": (
            "A record or a baseline cannot be written",
            "the measurements would be lost when the run ends; existing files are unchanged",
            (
                "make the folder writable, or free its disk, and run again; --perfgate-json PATH keeps the record "
                "elsewhere too, for perfgate accept --from PATH"
            ),
        ),
    },
    DELIVERY={
        "delivery-failed": (
            "A report could not be delivered",
            "the report did not arrive",
            "check the address, the token and the network; perfgate report RECORD --to NAME delivers again",
        ),
    },
    REPOSITORY={
        "repository-missing": (
            "git cannot tell what was accepted before this change",
            "a change is judged by the lines of the merge base",
            "run in a git checkout with a commit; in CI fetch its history (fetch-depth: 0)",
        ),
    },
)
