"""What there is to say against a document that somebody wrote."""

from collections.abc import Sequence
from dataclasses import asdict

import click

from desilt.cli.output import emit, shown
from desilt.domain.lint import Lint
from desilt.jobs.rules.agreed import told

HAS_ERRORS = 1  # the exit code


def show_findings(found: Sequence[Lint], *, as_json: bool) -> None:
    """All of it; and leave with an exit code if there is an error among it."""
    rows = map(asdict, found)
    emit(rows, ["level", "rule", "fact", "fix"], as_json=as_json, empty="There is nothing to say against it.")
    if any(one.level == "error" for one in found):
        raise click.exceptions.Exit(HAS_ERRORS)


def warn(found: Sequence[Lint]) -> None:
    """What does not stop it."""
    for one in found:
        click.echo(f"warning: {shown(told(one))}", err=True)
