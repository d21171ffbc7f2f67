"""Error codes of arms: revisions, worktrees and builds."""

from __future__ import annotations

from pytest_perfgate.model.codes.family import Code, Family

CODES: tuple[Code, ...] = (
    Code(
        name="no-repository",
        family=Family.REPOSITORY,
        title="There is no git repository here",
        why="an arm is a revision of the package, and revisions live in a repository",
        mend="run inside the repository, or judge against the accepted baseline without --perfgate-against",
    ),
    Code(
        name="revision-missing",
        family=Family.REPOSITORY,
        title="A revision is not in this clone",
        why="the arm to compare with cannot be checked out",
        mend="git fetch origin REVISION",
    ),
    Code(
        name="revision-shallow",
        family=Family.REPOSITORY,
        title="A revision lies beyond the end of a shallow clone",
        why="the arm to compare with was never fetched",
        mend="git fetch --unshallow   (in CI: fetch-depth: 0)",
    ),
    Code(
        name="git-failed",
        family=Family.REPOSITORY,
        title="Git did not do what an arm needs",
        why="an arm is checked out by git, and the working copy is read by it",
        mend="run that git command by hand and mend what it says",
    ),
    Code(
        name="lfs-missing",
        family=Family.REPOSITORY,
        title="An arm has pointers of git-lfs instead of files",
        why="a package built or run with pointers is not the package of that revision",
        mend="git lfs install && git lfs fetch --all, then run again",
    ),
    Code(
        name="submodule-missing",
        family=Family.REPOSITORY,
        title="A submodule of the revision could not be checked out",
        why="a package built without its submodule is not the package of that revision",
        mend="git submodule update --init --recursive, then run again",
    ),
    Code(
        name="arm-no-project",
        family=Family.BUILD,
        title="There is no package at a revision",
        why="an arm that has no package of its own would measure whatever else is installed",
        mend='name its folder or its modules: projects = ["path"] or packages = ["name"] in [tool.perfgate]',
    ),
    Code(
        name="arm-build-failed",
        family=Family.BUILD,
        title="The package could not be built for one arm",
        why="both sides must be built the same way before they can be compared",
        mend='mend the build, or set build = "COMMAND" in [tool.perfgate]',
    ),
    Code(
        name="arm-busy",
        family=Family.BUILD,
        title="Another run does not finish making an arm",
        why="two runs that make one arm at once would spoil it",
        mend="end that process, or wait for it, then run again",
    ),
    Code(
        name="arm-no-room",
        family=Family.BUILD,
        title="The disk was full while an arm was made",
        why="an arm needs room for a checkout, an environment and a build",
        mend="make room and run again; rm -r .perfgate/arms removes all arms, TMPDIR=FOLDER builds elsewhere",
    ),
    Code(
        name="arm-not-made",
        family=Family.BUILD,
        title="The folder of an arm could not be made",
        why="an arm is a checkout and an environment under .perfgate/arms",
        mend="mend what the system says; rm -r .perfgate/arms starts afresh",
    ),
    Code(
        name="arm-empty",
        family=Family.BUILD,
        title="A build installed no importable module",
        why="the arm would import whatever else lies on the path",
        mend="let the build command install into {site}",
    ),
    Code(
        name="arm-foreign-module",
        family=Family.CHILD,
        title="An arm loaded modules that are not its own",
        why="both sides would measure the same code; the verdict would mean nothing",
        mend="let nothing name a folder of the working copy: no sys.path.insert in a conftest, no variable with a "
        'path of the build; where tests and package cannot be separated, set arms = "worktree" in [tool.perfgate]',
    ),
)
