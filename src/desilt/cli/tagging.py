"""How marked objects are tagged, as options that commands share."""

import functools
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import click

from desilt.cli.params import SPAN
from desilt.objects.tags import EXPIRE_NOW

Command = Callable[..., None]
WAIT = timedelta(days=1)

tag_option = click.option(
    "--tag", default=str(EXPIRE_NOW), metavar="KEY=VALUE", show_default=True, help="The tag that lets the store remove."
)


def with_tagging(command: Command) -> Command:
    """The command gets ``tagging``, words of the job."""

    @tag_option
    @click.option(
        "--wait", type=SPAN, default=WAIT, help="Where a store has no tags: remove what is marked so long.  [1d]"
    )
    @click.option("--batch", is_flag=True, help="Let S3 Batch Operations tag, where objects have no other tags.")
    @click.option("--account-id", default="", metavar="ID", help="With --batch: the account whose bucket it is.")
    @click.option("--role-arn", default="", metavar="ARN", help="With --batch: the role that S3 acts as.")
    @functools.wraps(command)
    def wrapped(
        *values: Any, tag: str, wait: timedelta, batch: bool, account_id: str, role_arn: str, **rest: Any
    ) -> None:
        words = {"tag": tag, "wait": wait, "batch": batch, "account_id": account_id, "role_arn": role_arn}
        command(*values, tagging=words, **rest)

    return wrapped
