"""`desilt lakefs import` and `export`: a repository copied whole."""

from dataclasses import asdict

import click

from desilt.cli.command import DesiltCommand
from desilt.cli.common import db_option, json_option
from desilt.cli.output import done
from desilt.cli.progress import Told
from desilt.errors import InvalidUri
from desilt.exchange.exporting import export as give
from desilt.exchange.importing import take_in
from desilt.exchange.report import Exchanged
from desilt.lake.lake import Lake, locate
from desilt.lakefs.settings import find, parse

missing_option = click.option(
    "--allow-missing",
    is_flag=True,
    help="Copy entries too whose objects are not in the store, as a collector may leave them.",
)


@click.command(cls=DesiltCommand)
@click.argument("repo")
@click.argument("lake")
@missing_option
@db_option
@json_option
def import_(repo: str, lake: str, allow_missing: bool, db: str | None, as_json: bool) -> None:
    """Copy REPO of a lakeFS server into a lake, as the new repository LAKE.

    This is how to try desilt on your data without risk: the server is only read, the copy has objects of its own, and
    whatever is done to it is done to nothing else.

    \b
      desilt lakefs import lakefs://datasets ./try#datasets
      desilt gc plan ./try#datasets

    All commits come along with their ids, branches with their heads, tags, and every object that a commit points to.
    What is staged is left behind, and told. Objects outside of the repository's own place stay where they are, in
    their owner's hands. Objects are renamed as a lake names them, and tables rewritten for that.

    Cut off, it has made no repository; the same command goes on where it was. A lake that has a repository of this
    name is refused, and so is a lake in the repository's own place.

    REPO is lakefs://NAME, or lakefs+https://HOST/NAME; LAKE is DIRECTORY#NAME or s3://BUCKET/PREFIX#NAME with its
    database from --db, and the lake is made if there is none.
    """
    parse(repo)
    location = locate(lake, db=db)
    if location.repository is None:
        raise InvalidUri(f"say what the copy is called, as in {lake}#NAME")
    settings = find(repo)
    opened, told = Lake.create(location), Told()
    try:
        made = take_in(settings, opened, location.repository, may_miss=allow_missing, watch=told)
    finally:
        told.ends()
        opened.close()
    _say(made, f"See `desilt fsck {lake}` and `desilt gc plan {lake}`.", as_json=as_json)


@click.command(cls=DesiltCommand)
@click.argument("lake")
@click.argument("repo")
@click.option(
    "--namespace",
    default="",
    metavar="URI",
    help="Where the server keeps its objects, as s3://BUCKET/PREFIX; by default where it puts new repositories.",
)
@missing_option
@db_option
@json_option
def export(lake: str, repo: str, namespace: str, allow_missing: bool, db: str | None, as_json: bool) -> None:
    """Copy LAKE, a repository of a lake, to a lakeFS server as the new REPO.

    The lake is only read. The server's repository gets objects of its own, in a namespace of its own, which must be
    empty: to try something on a server, or to move there, without risk to the lake.

    \b
      desilt lakefs export ./lake#mine lakefs://mine --namespace s3://bucket/mine

    All commits, branches and tags come along, and every object that a commit points to. What is staged, holds, rules
    and the trash are left behind. Objects are renamed as a server names them, and tables rewritten for that, so that
    its collectors know them; a server names a commit by its content, so most get new ids. The file commit-ids.json,
    in the folder _desilt of the new place, says which.

    Cut off, it leaves a bare repository there; the same command goes on where it was. A server that has a history
    under this name is refused, and so is a namespace in the lake's own place.

    It takes rights to write to the namespace itself, besides keys for the server. LAKE is DIRECTORY#NAME or
    s3://BUCKET/PREFIX#NAME with its database from --db; REPO is lakefs://NAME, or lakefs+https://HOST/NAME.
    """
    settings, location = find(repo), locate(lake, db=db)
    opened, told = Lake.open(location), Told()
    try:
        repository = opened.repository(location.repository)
        made = give(repository, settings, namespace=namespace, may_miss=allow_missing, watch=told)
    finally:
        told.ends()
        opened.close()
    _say(made, f"See `desilt gc plan {repo}`.", as_json=as_json)


def _say(made: Exchanged, way_on: str, *, as_json: bool) -> None:
    done("\n".join([*made.told, way_on]), asdict(made), as_json=as_json)
