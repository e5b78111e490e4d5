"""`desilt NAME plan` and `desilt NAME run`, for every job that another package brings.

Options are the fields of the job's own dataclass; ``field(metadata={"help": …})`` says what each is for.
"""

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import fields
from datetime import datetime, timedelta
from typing import Any

import click

from desilt.cli.command import DesiltCommand, DesiltGroup
from desilt.cli.common import with_repository
from desilt.cli.job import Words, plan_and_show, run_and_show, with_ask, with_limits
from desilt.cli.metrics import with_metrics
from desilt.cli.params import MOMENT, SHARE, SPAN
from desilt.cli.place import with_executor
from desilt.cli.verbosity import with_verbosity
from desilt.errors import BadRequest, DesiltError, span
from desilt.executors.executor import Executor
from desilt.jobs import registry
from desilt.jobs.job import ASKED, Job
from desilt.jobs.options import Option, options_of
from desilt.repository.protocol import Repository
from desilt.sweep.limits import Limits

Command = Callable[..., None]
TYPES: Mapping[type, Any] = {str: str, int: int, bool: bool, timedelta: SPAN, datetime: MOMENT, float: SHARE}
LIMITS = {one.name for one in fields(Limits)}
TAKEN = {*ASKED, "to", "repo", "db", "json", "master", "spark", "verbose", "quiet", "help"}


def loaded(name: str) -> click.Command:
    """The commands of a job, or in their place who says why it cannot be loaded."""
    try:
        return command_of(registry.find(name))
    except DesiltError as reason:
        return broken(name, reason)


def command_of(job: Job[Any]) -> click.Group:
    """The commands of one job."""

    @with_repository
    @with_metrics
    @with_options(job)
    @with_executor
    def plan(repository: Repository, ask: Words, limits: Limits, executor: Executor, as_json: bool) -> None:
        """Say what would be removed, and why; remove nothing. `desilt sweep` carries it out."""
        plan_and_show(job, repository, executor, ask, limits, as_json=as_json)

    @with_repository
    @with_metrics
    @with_options(job)
    @with_executor
    def run(repository: Repository, ask: Words, limits: Limits, executor: Executor, as_json: bool) -> None:
        """Plan, then remove what was planned; the first run needs --confirm."""
        run_and_show(job, repository, executor, ask, limits, as_json=as_json)

    about = inspect.getdoc(inspect.getmodule(job.mark)) or inspect.getdoc(job.mark) or f"The job {job.name}."
    group = DesiltGroup(
        job.name, help=about, commands=[click.command(cls=DesiltCommand)(plan), click.command(cls=DesiltCommand)(run)]
    )
    with_verbosity(group)
    return group


def with_options(job: Job[Any]) -> Callable[[Command], Command]:
    """A job's own options, beside those that all have; the command gets ``ask`` with them."""
    own = options_of(job.options)

    def decorate(command: Command) -> Command:
        @with_ask
        @with_limits
        @functools.wraps(command)
        def wrapped(*values: Any, ask: Words, limits: Limits, **rest: Any) -> None:
            said = {name: rest.pop(name) for name in own if name in rest}
            shared = {name: getattr(limits, name) for name in own if name in LIMITS}
            command(*values, ask={**ask, **said, **shared}, limits=limits, **rest)

        decorated: Command = wrapped
        for one in reversed(own.values()):
            if one.name not in LIMITS:
                decorated = option_for(job, one)(decorated)
        return decorated

    return decorate


def option_for(job: Job[Any], one: Option) -> Callable[[Command], Command]:
    """One field as an option; a kind that nobody can write is left to Python."""
    if one.name in TAKEN:
        raise BadRequest(f"job {job.name!r} has an option {one.name!r}, which all jobs have; give it another name")
    kinds = [kind for kind in one.kinds if kind in TYPES]
    if len(kinds) != 1 or len(one.kinds) != 1:
        if one.required:
            raise BadRequest(f"job {job.name!r} must be told {one.name!r}, which nobody can write; run it from Python")
        return lambda command: command
    word, default = f"--{one.name.replace('_', '-')}", None if one.required else one.default
    if kinds[0] is bool:
        return click.option(f"{word}/--no{word[1:]}", one.name, default=default, required=one.required, help=one.help)
    usual = "" if default is None else f"  [{span(default) if isinstance(default, timedelta) else default}]"
    return click.option(
        word, one.name, type=TYPES[kinds[0]], default=default, required=one.required, help=one.help + usual
    )


def broken(name: str, reason: DesiltError) -> click.Command:
    """In place of a job that cannot be loaded: whoever lists commands is told, whoever asks for it is refused."""

    def refuse(**_: object) -> None:
        raise reason

    settings = {"ignore_unknown_options": True, "allow_extra_args": True}
    return click.Command(name, callback=refuse, help=f"(cannot be used: {reason})", context_settings=settings)
