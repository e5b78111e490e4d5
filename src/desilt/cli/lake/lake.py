"""`desilt lake`: versioned objects, by hand."""

import click

from desilt.cli.lazy import LazyGroup

COMMANDS = {
    "init": ("desilt.cli.lake.refs", "Make a repository, and the lake around it if there is none."),
    "repositories": ("desilt.cli.lake.refs", "List the repositories of a lake."),
    "branches": ("desilt.cli.lake.refs", "List branches and their last commits."),
    "branch": ("desilt.cli.lake.refs", "Make branch NAME at SOURCE, a ref; by default at the default branch."),
    "delete-branch": (
        "desilt.cli.lake.refs",
        "Delete branch NAME. Its commits and objects stay until a job collects them.",
    ),
    "tags": ("desilt.cli.lake.refs", "List tags."),
    "tag": ("desilt.cli.lake.refs", "Give the commit at REF a NAME that stays."),
    "delete-tag": ("desilt.cli.lake.refs", "Delete tag NAME; the commit stays."),
    "commit": ("desilt.cli.lake.history", "Commit what is staged on BRANCH."),
    "log": (
        "desilt.cli.lake.history",
        "Show the commits that REF (by default the default branch) descends from, newest first.",
    ),
    "show": ("desilt.cli.lake.history", "Show the commit at REF."),
    "diff": (
        "desilt.cli.lake.history",
        "Show what turns commit LEFT into RIGHT; with one branch alone, what is staged on it.",
    ),
    "merge": (
        "desilt.cli.lake.history",
        "Merge SOURCE, a ref, into BRANCH. Conflicts are listed, and nothing is changed.",
    ),
    "revert": ("desilt.cli.lake.history", "Take back on BRANCH what the commit at REF did, by a new commit."),
    "reset": ("desilt.cli.lake.history", "Forget staged changes on BRANCH: --all, below a --prefix, or at one --path."),
    "ls": ("desilt.cli.lake.objects", "List what REF holds below PREFIX, in path order."),
    "stat": ("desilt.cli.lake.objects", "Show what REF says of PATH: size, checksum, times, and where the bytes are."),
    "get": ("desilt.cli.lake.objects", "Read the object at PATH in REF."),
    "put": (
        "desilt.cli.lake.objects",
        "Upload FILE (- for stdin) and stage it on BRANCH at PATH, or below PATH/ under its own name.",
    ),
    "rm": ("desilt.cli.lake.objects", "Remove PATH from BRANCH. Commits that hold it keep it."),
    "cp": ("desilt.cli.lake.objects", "Copy SOURCE in SOURCE_REF to PATH on BRANCH."),
    "mv": ("desilt.cli.lake.objects", "Rename SOURCE to PATH on BRANCH."),
    "address": (
        "desilt.cli.lake.uploads",
        "Ask where to upload an object for PATH on BRANCH without going through desilt.",
    ),
    "link": ("desilt.cli.lake.uploads", "Stage at PATH on BRANCH what was uploaded to the address of TOKEN."),
    "stage": (
        "desilt.cli.lake.uploads",
        "Stage at PATH on BRANCH an object that lies outside of the lake, at URI. No job ever removes it.",
    ),
    "replay": (
        "desilt.cli.lake.scenarios",
        "Build repository REPO, which must not exist, from the operations in the file SCENARIO (- is stdin).",
    ),
    "recover": (
        "desilt.cli.lake.recover",
        "Bring a database that was restored from a copy up to what the store knows.",
    ),
}


@click.group(cls=LazyGroup, lazy=COMMANDS)
def lake() -> None:
    """Work with an embedded lake: versioned objects in a directory or a bucket.

    \b
      desilt lake init ./lake#demo
      echo hello | desilt lake put ./lake#demo main greetings/hello.txt -
      desilt lake commit ./lake#demo main -m "say hello"
      desilt lake branch ./lake#demo dev
      desilt lake ls ./lake#demo dev greetings/

    A ref is a branch, a tag or a commit id (its first 4 characters or more), then ~N for the Nth ancestor,
    ^N for the Nth parent; BRANCH@ is a branch without what is staged on it.
    """
