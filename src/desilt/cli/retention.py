"""`desilt retention`: what rules call expired is marked, tagged, and removed by the object store."""

from dataclasses import asdict
from datetime import datetime, timedelta
from typing import BinaryIO

import click

from desilt.cli.bucket import bucket_rule, check
from desilt.cli.command import DesiltGroup
from desilt.cli.common import with_repository
from desilt.cli.files import decoded, label
from desilt.cli.findings import show_findings, warn
from desilt.cli.job import Words, plan_and_show, run_and_show, with_limits
from desilt.cli.metrics import with_metrics
from desilt.cli.output import done, json_line, when
from desilt.cli.params import MOMENT, SPAN
from desilt.cli.place import with_executor
from desilt.cli.reports import SWEPT_IN_PART, told
from desilt.cli.tagging import with_tagging
from desilt.cli.ways_on import command
from desilt.domain.retention import Retention
from desilt.domain.units import many
from desilt.executors.executor import Executor
from desilt.jobs import documents
from desilt.jobs.retention import document as documented
from desilt.jobs.retention import job as work
from desilt.jobs.retention import lint as linting
from desilt.jobs.retention import restore as restoring
from desilt.jobs.retention import vacuum as vacuuming
from desilt.repository.protocol import Repository
from desilt.runs.report import Amount
from desilt.sweep.limits import Limits

config_argument = click.argument("file", type=click.File("rb"), metavar="CONFIG")
config_option = click.option(
    "--config", "file", type=click.File("rb"), metavar="FILE", help="Go by this document, not by the one that is set."
)


@click.group(cls=DesiltGroup)
def retention() -> None:
    """Mark what rules call expired, tag it, and let the object store remove it.

    A rule names a branch and a path prefix, and how long entries are kept there: all of them, those that are no longer
    current, those that were never committed. An object expires only when every entry that uses it has, on every branch.
    From the moment it is marked, readers are told that it is gone; `restore` brings it back until the store, by a
    lifecycle rule of the bucket, has removed it.
    """


@retention.command("set")
@with_repository
@config_argument
@click.option("--confirm", is_flag=True, help="It is meant so, whatever lint wants said twice.")
def set_(repository: Repository, file: BinaryIO, confirm: bool, as_json: bool) -> None:
    """Check CONFIG, a file of JSON or YAML (- is stdin), and let later runs go by it.

    There is one document for the whole repository; it replaces the one before. Plans that were made for that are
    refused, and the first run that marks anything by the new one needs --confirm.
    """
    read = read_document(file)
    found = linting.given(repository, read, confirm=confirm)
    made = documented.keep(repository, read, found)
    if not as_json:
        warn(found)
    text = f"Set {many(len(read.rules), 'rule')} for {repository.name}. See what goes: {command('retention plan')}"
    facts = {"repository": repository.name, **made.to_json(), "findings": list(map(asdict, found))}
    done(text, facts, as_json=as_json)


@retention.command()
@with_repository
def get(repository: Repository, as_json: bool) -> None:
    """Print the document that runs go by, and when it was set; as YAML that `desilt retention set` reads."""
    made = documented.kept(repository)
    if as_json:
        click.echo(json_line({"repository": repository.name, **made.to_json()}))
    else:
        click.echo(f"# The retention of {repository.name}, set {when(made.created_at)} UTC")
        click.echo(documents.written(made.retention.to_json()), nl=False)


@retention.command()
@with_repository
@config_argument
def lint(repository: Repository, file: BinaryIO, as_json: bool) -> None:
    """Say what CONFIG, a file of JSON or YAML (- is stdin), cannot mean, or should say twice; set nothing.

    The branches and paths are those of REPO. Exits with 0 if there is no error, with 1 if there is.
    """
    show_findings(linting.findings(repository, read_document(file)), as_json=as_json)


@retention.command()
@with_repository
@with_metrics
@config_option
@with_tagging
@click.option("--now", type=MOMENT, help="Judge ages as of this time; it may look back.")
@with_limits
@with_executor
def plan(
    repository: Repository,
    file: BinaryIO | None,
    tagging: Words,
    now: datetime | None,
    limits: Limits,
    executor: Executor,
    as_json: bool,
) -> None:
    """Say what would be marked, by which rule, and what stays, and why; mark nothing.

    The plan is written into the repository, below _desilt/runs/retention/: Parquet files with every object that would
    be marked, report.json, and report.html to open in a browser. `desilt sweep` carries it out.
    """
    work.check_tagging(repository, work.Options(**tagging))
    asked = with_document(repository, {**tagging, "now": now}, file, confirm=True, quiet=as_json)
    plan_and_show(work.job, repository, executor, asked, limits, as_json=as_json)


@retention.command()
@with_repository
@with_metrics
@config_option
@with_tagging
@click.option("--now", type=MOMENT, help="Judge ages as of this time; it may look back.")
@with_limits
@with_executor
def run(
    repository: Repository,
    file: BinaryIO | None,
    tagging: Words,
    now: datetime | None,
    limits: Limits,
    executor: Executor,
    as_json: bool,
) -> None:
    """Mark what expired, tag all that is marked, look for what the store has removed; meant for cron.

    Marking is one transaction for every batch: what somebody holds again by then is left alone and counted. What is
    marked and not tagged, by this run or one that was cut off, is tagged. On stores without tags, what has been marked
    for --wait is removed. What was restored in the last 48 hours is looked at again: a tag that came late is taken off.
    """
    work.check_tagging(repository, work.Options(**tagging))
    asked = with_document(repository, {**tagging, "now": now}, file, confirm=limits.confirm, quiet=as_json)
    run_and_show(work.job, repository, executor, asked, limits, as_json=as_json)


@retention.command()
@with_repository
@click.option("--run", "run_id", metavar="RUN", help="All that this run marked.")
@click.option("--prefix", metavar="BRANCH/PATH", help="What lies below it, written as in a rule.")
@click.option("--address", "addresses", multiple=True, metavar="ADDRESS", help="One object; may be given often.")
@with_executor
def restore(
    repository: Repository,
    run_id: str | None,
    prefix: str | None,
    addresses: tuple[str, ...],
    executor: Executor,
    as_json: bool,
) -> None:
    """Bring back what was marked: its tag is taken off, then everybody can read it again.

    It works until the store has removed the object; one that went before is told as gone. A job of S3 Batch Operations
    that is still tagging is cancelled first. The next runs leave what came back alone for as long as a ticket lives
    (24 hours); then the rule counts again: change it, or order the objects to be kept with `desilt hold`.
    """
    back = restoring.restore(repository, executor, run=run_id, prefix=prefix, addresses=addresses)
    executor.watch.ends()
    text = f"{told(Amount(back.restored, back.bytes))} restored"
    text += f"; {back.gone:,} are gone by rule" if back.gone else ""
    text += f"; {back.failed:,} failed, and stay hidden: try again" if back.failed else ""
    done(text, asdict(back), as_json=as_json)
    if back.restored and not as_json:
        click.echo("The rule that marked them still stands; see `desilt retention get`, or `desilt hold`.", err=True)
    if back.failed:
        raise click.exceptions.Exit(SWEPT_IN_PART)


@retention.command()
@with_repository
@click.option("--older-than", type=SPAN, default=vacuuming.OLDER_THAN, help="What was removed so long ago.  [90d]")
@with_executor
def vacuum(repository: Repository, older_than: timedelta, executor: Executor, as_json: bool) -> None:
    """Move what the ledger says of objects that are gone, and that nothing points to any more, to an archive.

    The archive is a few Parquet files below _desilt/ledger/; `desilt explain` goes on reading it.
    """
    found = vacuuming.vacuum(repository, executor, older_than=older_than)
    executor.watch.ends()
    text = f"{many(found.tombstones, 'record')} moved to the archive"
    text += f"; {found.used:,} stay, since something still points to them" if found.used else ""
    done(text, asdict(found), as_json=as_json)


retention.add_command(bucket_rule)
retention.add_command(check)


def with_document(repository: Repository, ask: Words, file: BinaryIO | None, *, confirm: bool, quiet: bool) -> Words:
    """``ask`` with the document in ``file``, if there is nothing against it; else by what is set."""
    if file is None:
        documented.kept(repository)  # where there is none, let nobody wait
        return ask
    read = read_document(file)
    found = linting.given(repository, read, confirm=confirm)
    if not quiet:
        warn(found)
    return {**ask, "document": read}


def read_document(file: BinaryIO) -> Retention:
    return documented.read_retention(decoded(file), name=label(file))
