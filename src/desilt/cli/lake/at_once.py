"""Commands that may drop staged objects: where hard delete has no grace, what they drop goes as they end."""

import functools
from collections.abc import Callable
from typing import Any

import click

from desilt.errors import DesiltError
from desilt.lake.repository import LakeRepository

Command = Callable[..., None]


def may_drop(command: Command) -> Command:
    """After the command, what it dropped and whatever else is due is removed, if hard delete is on without a grace."""

    @functools.wraps(command)
    def wrapped(repository: LakeRepository, *values: Any, **rest: Any) -> None:
        try:
            command(repository, *values, **rest)
        finally:
            remove_at_once(repository)

    return wrapped


def remove_at_once(repository: LakeRepository) -> None:
    """What keeps it from being removed must not hide what the command has to say: a worker removes it later."""
    try:
        setting = repository.hard_delete.setting()
        if setting is None or setting.grace or not repository.hard_delete.is_due():
            return
        from desilt.jobs.harddelete.worker import remove  # which loads what few commands need

        remove(repository)
    except DesiltError as error:
        click.echo(f"warning: what was dropped is not removed yet: {error}", err=True)
