"""The command `desilt`."""

import sys
from importlib.metadata import version

import click

from desilt.cli.collect import collect
from desilt.cli.common import run
from desilt.cli.demo import demo
from desilt.cli.expire import abandon, expire
from desilt.cli.explain import explain
from desilt.cli.fsck import fsck
from desilt.cli.gc import gc
from desilt.cli.hold import hold
from desilt.cli.lake import lake
from desilt.cli.lifecycle import lifecycle
from desilt.cli.pins import pins
from desilt.cli.runs import runs
from desilt.cli.sweep import purge, restore, sweep


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(version("desilt"), prog_name="desilt")
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
      desilt pins ./lake#mine          which branch, tag or hold keeps how many bytes
      desilt fsck ./lake#mine          whether all of it is sound

    Exit codes: 0 done, 1 failed, 2 the request itself was wrong, 3 swept in part, 10 refused by a guard, 11 another
    run is at work, 130 stopped by Ctrl-C. Errors are one line that says what to do.
    """


desilt.add_command(demo)
desilt.add_command(gc)
desilt.add_command(lifecycle)
desilt.add_command(expire)
desilt.add_command(abandon)
desilt.add_command(collect)
desilt.add_command(hold)
desilt.add_command(sweep)
desilt.add_command(runs)
desilt.add_command(restore)
desilt.add_command(purge)
desilt.add_command(explain)
desilt.add_command(pins)
desilt.add_command(fsck)
desilt.add_command(lake)


def main() -> None:
    sys.exit(run(desilt))
