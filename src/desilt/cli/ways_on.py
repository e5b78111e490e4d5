"""How to go on from a plan: what guards say to it, and the command that they let pass, to be copied."""

import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager

import click
from click.core import ParameterSource

from desilt.cli import config
from desilt.cli.reports import bold
from desilt.cli.verbosity import is_quiet
from desilt.errors import Refused
from desilt.jobs import registry
from desilt.records.passwords import without_password
from desilt.runs.report import Report
from desilt.runs.steps import Action

PLAIN = re.compile(r"[\w@%+=:,./#~-]+")  # what a shell takes as it is; a # only begins a comment where a word does


def show_ways_on(report: Report) -> None:
    """All that guards say, and then one command."""
    if not report.does or is_quiet():
        return
    if report.objections:
        click.echo(f"\n{bold('A sweep would be refused')} as it is:")
        for one in report.objections:
            click.echo(f"  {one.fact}" + ("" if report.passes is not None else f"; {one.way_out}"))
    if report.passes is None:
        return
    click.echo(f"{'If all of that is right' if report.objections else 'Carry it out with'}: {sweeping(report)}")
    if report.action == Action.DELETE and not registry.traits(report.job).no_way_back:
        click.echo("Plan with --to trash to be able to bring things back.")


def sweeping(report: Report) -> str:
    """The command that carries a plan out."""
    return command("sweep", report.run, report.passes or "")


def command(name: str, *words: str) -> str:
    """A command on the same repository as this one."""
    context = click.get_current_context()
    profile, params = config.profile_typed(context), context.params
    typed = context.get_parameter_source("db") is ParameterSource.COMMANDLINE
    db = f"--db {quoted(without_password(params['db']))}" if typed and not config.typed(context, "db") else ""
    words = (f"--profile {quoted(profile)}" if profile else "", name, quoted(params["repo"]), *words, db)
    return " ".join(["desilt", *filter(None, words)])


def quoted(word: str) -> str:
    return word if PLAIN.fullmatch(word) else shlex.quote(word)


@contextmanager
def ways_past() -> Iterator[None]:
    """A refusal in the block offers the command that would be let pass, if there is one."""
    try:
        yield
    except Refused as reason:
        if reason.run and reason.passes:
            facts = "; ".join(one.fact for one in reason.all)
            offer = command("sweep", reason.run, reason.passes)
            reason.args = (f"{facts}; look at the plan, and if all of it is right: {offer}",)
        raise
