"""Error codes: configuration, markers, calls, children; files that are named, other tools' results among them."""

from __future__ import annotations

from pytest_perfgate.model.codes import codes_of

RUN_CODES = codes_of(
    CHILD={
        "rounds-differ": (
            "The rounds of one run did not measure the same thing",
            "one figure cannot summarise processes that measured different things",
            "make the call, its notes and its threads the same in every process",
        ),
        "package-elsewhere": (
            "A package of this checkout was imported from another one, or from an older copy of it",
            "the time is that of the other code, so it says nothing about this checkout",
            (
                "install this checkout: pip install -e . (where the other folder is right, name the packages "
                "under test in packages of [tool.perfgate])"
            ),
        ),
        "child-start": (
            "A measuring child could not be started",
            "",
            "check the launcher in [tool.perfgate] and the interpreter",
        ),
        "child-crashed": (
            "A measuring child died",
            "the case that it ran has no measurement; the others continued in a new child",
            "run the test alone with --perfgate=off to see the crash",
        ),
        "child-hung": (
            "A measuring child stopped answering",
            "perfgate ended it, with all processes that it had started",
            "raise timeout in [tool.perfgate], or find out what the test waits for",
        ),
        "child-garbled": (
            "A measuring child sent something that is not a message",
            "perfgate cannot trust the messages that follow",
            "look for code in the test that writes to file descriptors; otherwise report it with the record",
        ),
        "child-orphan": (
            "A measuring child found no parent",
            "PERFGATE_CHANNEL is set by perfgate for its children; it is not a setting",
            "unset PERFGATE_CHANNEL",
        ),
    },
    CONFIGURATION={
        "config-unreadable": (
            "The configuration file cannot be read",
            "it may hold limits, which would then not be checked",
            "fix the file at the line that is named; `perfgate doctor` reads it again",
        ),
        "config-unknown-key": (
            "[tool.perfgate] has a key that perfgate does not know",
            "the setting would have no effect",
            "correct the key, or delete the line",
        ),
        "config-value": (
            "A setting of [tool.perfgate] has the wrong form",
            "",
            "write the form that the message names, or delete the line to use the default",
        ),
    },
    USAGE={
        "shard-unknown": (
            "Nothing says which part of the tests this job runs",
            "jobs that divide the tests differently measure some twice and others never",
            "--perfgate-shard K/N with K from 1, or PERFGATE_SHARD=K/N and --perfgate-shard auto: docs/ci.md, Shards",
        ),
        "shard-foreign": (
            "Another plugin divides a run that has gated tests",
            "the gate would miss the tests of other jobs, and each job would spend the whole chance of a false alarm",
            "use --perfgate-shard K/N instead",
        ),
        "run-ranks": (
            "torchrun started several pytest in full mode",
            "each rank would choose its own number of calls and processes, and a collective would wait without an end",
            "start pytest once, and the ranks inside of the test: docs/fixture.md, What was measured elsewhere",
        ),
        "run-overruled": (
            "A failed run in CI was ended as if it had passed",
            "the check of CI would pass although limits were missed",
            "remove what ends the run; [tool.perfgate.policy] decides which outcomes fail",
        ),
        "plugin-hidden": (
            "Something in the project hides the plugin",
            "Python finds a folder or a file pytest_perfgate of the project first: no limit would be checked",
            "rename that folder or file",
        ),
        "run-listed": (
            "In CI the project's own settings made pytest list something and run no test",
            "no gated test was run, and the check of CI would pass without a measurement",
            "remove it from addopts; it still works on the command line",
        ),
        "marker-wrong": (
            "A perfgate marker has an argument that it does not know",
            "the argument would have no effect",
            (
                "positional texts are limits; keywords: on, capture, timer, runtime, cache, clocks, data, "
                "rounds, budget, devices"
            ),
        ),
        "test-outside": (
            "A gated test lies outside the rootdir",
            "another project's settings and baselines would judge it, and a child of that project cannot find it",
            "run each project by itself, from its own folder; a pytest.ini above both makes them one project",
        ),
        "call-wrong": (
            "The perfgate fixture was used in a way that cannot be measured",
            "",
            "call it as perfgate(fn, *args, work=..., name=...): docs/fixture.md",
        ),
        "check-failed": (
            "check= refused what the call returned",
            "the time of a wrong result means nothing",
            "fix the kernel, or the check",
        ),
        "not-measured": (
            "A metric was read that this run did not measure",
            "under --perfgate=off nothing is measured, and the value does not exist",
            "guard the line with `if perfgate.measures:`, or use --perfgate=quick",
        ),
        "option-wrong": (
            "A perfgate option has a value that it does not take",
            "",
            "pytest --help lists the values under perfgate",
        ),
    },
    DEVICE={
        "device-other": (
            "A case ran on another device than --perfgate-device names",
            "its figures would be compared with those of the device that was asked for",
            "name the device that the test uses, or make the test use the one that is named",
        ),
    },
)

ARTIFACT_CODES = codes_of(
    USAGE={
        "artifact-missing": (
            "A file that was named is not there or cannot be read",
            "a file that cannot be read cannot be judged",
            "check the path, and whether you may read the file",
        ),
        "artifact-mixed": (
            "Files of different kinds were given as one job",
            "files that are read together are of one kind, and of one program",
            "inspect one kind at a time",
        ),
        "file-refused": (
            "The system refuses to open or write a file",
            "perfgate cannot read or write there",
            "check the permissions (ls -l), or name another place",
        ),
        "file-missing": (
            "A file or its folder does not exist",
            "perfgate cannot read or write there",
            "check the path; mkdir -p makes a folder",
        ),
        "file-kind": (
            "A folder was given for a file, or a file for a folder",
            "perfgate cannot read or write there",
            "name the file itself, or another folder",
        ),
        "view-unknown": (
            "A kind of file has no such view",
            "",
            "perfgate inspect FILE --view list names them",
        ),
        "picture-none": (
            "This file has no such picture",
            "",
            "perfgate inspect FILE --view pictures draws all pictures, and gives the reason for each that is missing",
        ),
        "option-unknown": (
            "This kind of file does not have this option",
            "it would have no effect",
            "leave it out; docs/options.md lists the options of each kind of file",
        ),
        "limit-missing": (
            "perfgate check was given no limit",
            "a check without a limit would always pass",
            'perfgate check FILE... "METRIC <= VALUE"...   (to look without a limit: perfgate inspect FILE...)',
        ),
    },
    ARTIFACT={
        "artifact-unknown": (
            "No reader knows this kind of file",
            "readers recognise a file by its content",
            "give one of the kinds that the message lists; a plugin can add one",
        ),
        "artifact-unreadable": (
            "A file of a known kind cannot be read",
            "a check of an unreadable file would mean nothing",
            "check that the file is complete, and write it again with the tool that made it",
        ),
        "benchmark-dropped": (
            "A benchmark of the earlier file is not in the later one",
            "a comparison of the others would pass without it",
            "run it again, or compare files of the same benchmarks",
        ),
        "benchmark-unlike": (
            "A benchmark has different kinds of figures in the two files",
            "a median against a mean, or the host's clock against the device's, is not a slowdown",
            "write both files with one version of the tool and one set of options",
        ),
        "file-broken": (
            "The disk or the network under a file fails",
            "the data that was read may differ from the data that was written",
            "check the system's log (dmesg), and copy the file again from its source",
        ),
    },
    CONFIGURATION={
        "file-full": (
            "The disk or its quota is full",
            "the file is incomplete; do not read figures from it",
            "free some space, or use another disk (TMPDIR for temporary files), and run it again",
        ),
    },
)
