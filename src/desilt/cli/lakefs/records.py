"""`desilt lakefs adopt`: whose records count."""

from dataclasses import asdict

import click

from desilt.cli.command import DesiltCommand
from desilt.cli.common import db_option, json_option
from desilt.cli.output import done
from desilt.lakefs.adoption import Adoptable
from desilt.lakefs.adoption import adopt as take_over
from desilt.lakefs.settings import find
from desilt.repository.opening import repository_at

ICECHUNK = "icechunk+"


@click.command(cls=DesiltCommand)
@click.argument("repo")
@click.option("--confirm", is_flag=True, help="Do it: what only the old records knew is given up.")
@db_option
@json_option
def adopt(repo: str, confirm: bool, db: str | None, as_json: bool) -> None:
    """Let the records of REPO be those in this database from now on, whatever counted before.

    Holds, policies, the list of what is in the trash and how far runs came are in a database of desilt's own. The
    first run that removes anything, or the first hold, notes beside the objects which database that is, and every other
    is refused. Use this when that database is lost, or was moved by making a new one; and when the server itself was
    restored from a copy, and lacks commits that desilt has seen: its history then counts as it is.

    Without --confirm it says what would be given up, and refuses:

    \b
      holds       nothing is kept any more because of an order in the old database: order it here again first
      trash       `desilt restore` no longer finds what old runs moved there; it stays until somebody removes it
      watermarks  the next run looks at everything again
      policies    they must be set again

    It is refused while a run may be at work: for an hour after desilt last wrote anything beside the objects.

    REPO is lakefs://NAME, or lakefs+https://HOST/NAME; or an Icechunk repository, whose records are kept alike.
    """
    if not repo.lower().startswith(ICECHUNK):
        find(repo)
    with repository_at(repo, db=db) as repository:
        assert isinstance(repository, Adoptable)
        made = take_over(repository, confirm=confirm)
    done("\n".join(made.told), asdict(made), as_json=as_json)
