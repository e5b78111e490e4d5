"""The command `desilt`."""

import sys

import click

from desilt.cli.attempt import run
from desilt.cli.config import chosen
from desilt.cli.lazy import WithPluggedJobs

COMMANDS = {
    "demo": (
        "desilt.cli.lake.demo",
        "Replay six weeks of a small lake: branches, merges, copies, a deleted branch; show what is garbage in it, "
        "and collect that.",
    ),
    "lake": ("desilt.cli.lake.lake", "Work with an embedded lake: versioned objects in a directory or a bucket."),
    "lakefs": (
        "desilt.cli.lakefs.lakefs",
        "Copy repositories between a lake and a lakeFS server, and say whose records count for one of a server.",
    ),
    "gc": (
        "desilt.cli.gc",
        "Remove objects that were uploaded and never became, or are no longer, part of anything.",
    ),
    "lifecycle": (
        "desilt.cli.lifecycle",
        "Remove committed objects below a prefix once they are older than so many days.",
    ),
    "retention": (
        "desilt.cli.retention",
        "Mark what rules call expired, tag it, and let the object store remove it.",
    ),
    "harddelete": (
        "desilt.cli.harddelete",
        "Remove what was never committed as soon as nothing points to it any more: overwritten, removed, reset.",
    ),
    "expire": (
        "desilt.cli.expire",
        "Hide history from before a date; keep what refs point to, and what rules keep.",
    ),
    "abandon": (
        "desilt.cli.expire",
        "Leave the commits from FIRST, the newest, down to LAST out of the history of REF.",
    ),
    "collect": (
        "desilt.cli.collect",
        "Remove commits that no branch, tag or hold reaches, and all that only they had.",
    ),
    "upkeep": (
        "desilt.cli.upkeep",
        "Keep a lake in order: one file says what it does about its past, one command does what is due.",
    ),
    "hold": ("desilt.cli.hold", "Order something to be kept, with a reason; see what is, and lift it."),
    "sweep": (
        "desilt.cli.sweep",
        "Carry out the plan of RUN: remove what it says, in the way it says, and nothing else.",
    ),
    "restore": ("desilt.cli.sweep", "Bring back what RUN moved to the trash and what is still there."),
    "purge": (
        "desilt.cli.sweep",
        "Empty the trash: what is in it for longer than its days is removed for good.",
    ),
    "runs": (
        "desilt.cli.runs",
        "List the runs of a repository (`desilt runs REPO`), or tell of one (`desilt runs show REPO RUN`).",
    ),
    "explain": ("desilt.cli.explain", "Say why an object is kept, or by which run it was removed."),
    "pins": (
        "desilt.cli.pins",
        "Say which branch, tag, hold or staging area keeps how many bytes, alone and together; remove nothing.",
    ),
    "stats": (
        "desilt.cli.stats",
        "Say how much there is by branch, folder and age, what waits, and how it grew; remove nothing.",
    ),
    "completion": (
        "desilt.cli.complete",
        "Print what makes a shell complete the words of desilt: commands, options, runs, branches and tags.",
    ),
    "schema": (
        "desilt.cli.schema",
        "Print the JSON Schema of a document that people write, for an editor to complete and check it by.",
    ),
    "fsck": (
        "desilt.cli.fsck",
        "Check every ref, commit, table, entry and object of REPO. Nothing is changed.",
    ),
}


@click.group(
    cls=WithPluggedJobs,
    lazy=COMMANDS,
    context_settings={
        "help_option_names": ["-h", "--help"],
        "max_content_width": 110,
        "auto_envvar_prefix": "DESILT",
    },
)
@click.version_option(package_name="desilt", prog_name="desilt")
@click.option(
    "--profile",
    envvar="DESILT_PROFILE",
    metavar="NAME",
    expose_value=False,
    is_eager=True,
    callback=chosen,
    help="Go by this profile of desilt.toml.",
)
def desilt() -> None:
    """Remove what a versioned data lake no longer needs, and prove why.

    \b
    Begin with:
      desilt demo                      a small lake, built and shown in a minute
      desilt lake init ./lake#mine     a lake of your own, in a directory
      desilt lake --help               branches, commits and objects in it
      desilt gc plan ./lake#mine       what is garbage in it, and why
      desilt lifecycle --help          what is committed, and goes when it is old
      desilt expire --help             history made shorter; collect removes what that leaves
      desilt upkeep --help             all of that in one file and one command
      desilt stats ./lake#mine         how much there is, where, and how old
      desilt pins ./lake#mine          which branch, tag or hold keeps how many bytes
      desilt fsck ./lake#mine          whether all of it is sound
      desilt gc plan lakefs://NAME     the same jobs on a lakeFS server, with the keys that lakectl has
      desilt lakefs --help             its repositories copied into a lake, and back
      desilt expire plan icechunk+s3://BUCKET/PREFIX --older-than 30d

    Exit codes: 0 done, 1 failed, 2 the request itself was wrong, 3 swept in part, 10 refused by a guard, 11 another
    run is at work, 130 stopped by Ctrl-C. Errors are one line that says what to do.

    What is always the same can be left to a file desilt.toml, here or in ~/.config/desilt, and to variables
    DESILT_…: see docs/configuration.md.
    """


def main() -> None:
    sys.exit(run(desilt))
