"""`desilt lake replay`: a repository built from a scenario file."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import BinaryIO

import click

from desilt.cli.command import DesiltCommand
from desilt.cli.common import db_option, json_option
from desilt.cli.files import decoded, label
from desilt.cli.output import done, shown, when
from desilt.cli.progress import counted
from desilt.domain.names import check_repository
from desilt.domain.units import many, size
from desilt.errors import AlreadyExists, InvalidUri
from desilt.lake import commits
from desilt.lake.lake import Lake, locate
from desilt.lake.repository import LakeRepository
from desilt.testing import oracle
from desilt.testing.scenario import Operation, parse
from desilt.testing.scenario import replay as replay_scenario


@click.command(cls=DesiltCommand)
@click.argument("scenario", type=click.File("rb"))
@click.argument("repo")
@db_option
@json_option
def replay(scenario: BinaryIO, repo: str, db: str | None, as_json: bool) -> None:
    """Build repository REPO, which must not exist, from the operations in the file SCENARIO (- is stdin).

    A scenario is one JSON object a line, each an operation with a date or the time since the one before:

    \b
      {"do": "put", "branch": "main", "path": "a", "text": "hello", "at": "2026-01-05T09:00:00Z"}
      {"do": "commit", "branch": "main", "message": "first", "as": "first"}
      {"do": "delete", "branch": "main", "path": "a", "at": "+30d"}

    The whole file is checked before anything is done. The repository has a manual clock: objects, entries and
    commits have the scenario's times, and its clock stands where the scenario ends. REPO is DIRECTORY#NAME.
    All operations are in docs/scenarios.md.
    """
    operations = parse(decoded(scenario), source=label(scenario))
    location = locate(repo, db=db)
    if location.repository is None:
        raise click.UsageError(f"say which repository to make, as in {repo}#NAME")
    if not location.is_directory:
        raise InvalidUri(f"{location.storage} dates objects by its own clock; replay into a directory, DIRECTORY#NAME")
    check_repository(location.repository)
    lake = Lake.create(location)
    try:
        if location.repository in lake.repositories():
            raise AlreadyExists("repository", location.repository, "a scenario makes a new one; choose another name")
        made = replay_scenario(lake, location.repository, operations, say=None if as_json else tell, track=tracker)
        summarize(made, operations, as_json=as_json)
    finally:
        lake.close()


def tracker(operations: Sequence[Operation]) -> Iterator[Operation]:
    return counted(operations, "replay")


def tell(moment: datetime, text: str) -> None:
    click.echo(f"{when(moment)}  {shown(text)}")


def summarize(repository: LakeRepository, operations: list[Operation], *, as_json: bool) -> None:
    """What there is now, and between which times it came about."""
    stored = oracle.stored(repository)
    with repository.database.read() as tx:
        times = [commit.created_at for commit in commits.every(tx, repository.uid)]
    count, amount = sum(operation.do != "wait" for operation in operations), sum(stored.values())
    start, end = min(times), repository.clock()
    row = {"repository": repository.name, "operations": count, "commits": len(times), "objects": len(stored)}
    text = (
        f"Replayed {many(count, 'operation')} into {repository.name}, from {when(start)} to {when(end)}: "
        f"{many(len(times), 'commit')}, {many(len(stored), 'object')}, {size(amount)}"
    )
    done(text, {**row, "bytes": amount, "from": start, "to": end}, as_json=as_json)
