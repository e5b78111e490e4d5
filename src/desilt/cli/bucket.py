"""`desilt retention bucket-rule` and `check`: the rule by which a bucket removes what was tagged."""

import json
from dataclasses import asdict
from datetime import timedelta

import click

from desilt.cli.common import with_repository
from desilt.cli.output import done, emit
from desilt.cli.params import SPAN
from desilt.cli.tagging import WAIT, tag_option
from desilt.domain.units import many
from desilt.jobs.retention import bucket
from desilt.objects.tags import ObjectTag
from desilt.repository.protocol import Repository

HAS_ERRORS = 1  # the exit code


@click.command("bucket-rule")
@with_repository
@tag_option
@click.option("--wait", type=SPAN, default=WAIT, help="Remove objects so old, in whole days.  [1d]")
@click.option("--whole-bucket", is_flag=True, help="By the tag alone; refused if the bucket holds anything else.")
@click.option("--apply", is_flag=True, help="Put it into the bucket, beside the rules that are there.")
def bucket_rule(
    repository: Repository, tag: str, wait: timedelta, whole_bucket: bool, apply: bool, as_json: bool
) -> None:
    """Print the lifecycle rule that removes what is tagged, and the command that puts it into the bucket.

    The rule asks for the prefix of the lake's data and for the tag; on a bucket that keeps versions, it ends old ones
    as well. What is printed has all rules that the bucket has now, since S3 replaces them all together: save it as
    lifecycle.json. With --apply, desilt reads the rules, adds this one, writes them, and reads them back.
    """
    made = bucket.bucket_rule(repository, ObjectTag.parse(tag), wait, whole_bucket=whole_bucket)
    if apply:
        bucket.apply(repository, made)
        others = f", beside {many(made.others, 'other')}" if made.others else ""
        text = f"Rule {made.rule['ID']} is in bucket {made.bucket}{others}"
        done(text, {"bucket": made.bucket, "rule": made.rule, "others": made.others}, as_json=as_json)
        return
    click.echo(json.dumps({"Rules": list(made.rules)}, indent=None if as_json else 2, default=str))
    if not as_json:
        put = f"aws s3api put-bucket-lifecycle-configuration --bucket {made.bucket}"
        click.echo(f"# {put} --lifecycle-configuration file://lifecycle.json", err=True)
        click.echo("# or let desilt do it, and see that it is there: give the same command with --apply", err=True)


@click.command()
@with_repository
@tag_option
def check(repository: Repository, tag: str, as_json: bool) -> None:
    """Say whether the bucket removes what is tagged, and nothing else, and what versioning makes of it.

    Exits with 0 if all is well, with 1 if there is an error.
    """
    found = bucket.check(repository, ObjectTag.parse(tag))
    emit(map(asdict, found), ["level", "fact", "fix"], as_json=as_json)
    if any(one.level == "error" for one in found):
        raise click.exceptions.Exit(HAS_ERRORS)
