"""`desilt lifecycle`: committed objects that a policy calls old."""

from dataclasses import asdict
from typing import BinaryIO

import click

from desilt.cli.command import DesiltGroup
from desilt.cli.common import with_repository
from desilt.cli.files import decoded, label
from desilt.cli.findings import show_findings, warn
from desilt.cli.job import Words, plan_and_show, run_and_show, with_ask, with_limits
from desilt.cli.metrics import with_metrics
from desilt.cli.output import done, json_line, when
from desilt.cli.place import with_executor
from desilt.cli.simulate import simulate
from desilt.cli.ways_on import command
from desilt.domain.policy import Policy
from desilt.domain.units import many
from desilt.executors.executor import Executor
from desilt.jobs.lifecycle import job as work
from desilt.jobs.lifecycle import kept_policy
from desilt.jobs.lifecycle import lint as linting
from desilt.jobs.lifecycle.kept_policy import Set
from desilt.jobs.lifecycle.policy_file import read_policy, written
from desilt.repository.protocol import Repository
from desilt.sweep.limits import Limits

policy_argument = click.argument("file", type=click.File("rb"), metavar="POLICY")
policy_option = click.option(
    "--policy", "file", type=click.File("rb"), metavar="FILE", help="Go by this policy, not by the one that is set."
)


@click.group(cls=DesiltGroup)
def lifecycle() -> None:
    """Remove committed objects below a prefix once they are older than so many days.

    A policy says which, and what must stay. An object goes only when every path that uses it, on every branch that
    reaches it in any commit, lets it go; tags, staged entries, keep rules, holds, and commits that no branch reaches
    keep what they have. Its entries stay in history, and read as gone.
    """


@lifecycle.command("set")
@with_repository
@policy_argument
@click.option("--confirm", is_flag=True, help="It is meant so, whatever lint wants said twice.")
def set_(repository: Repository, file: BinaryIO, confirm: bool, as_json: bool) -> None:
    """Check POLICY, a file of JSON or YAML (- is stdin), and let later runs go by it.

    Errors that `desilt lifecycle lint` finds are refused. Plans that were made for the policy before are, too; and the
    first run that removes anything by the new one needs --confirm.
    """
    policy = read(file)
    found = linting.given(repository, policy, confirm=confirm)
    made = kept_policy.keep(repository, policy, found)
    if not as_json:
        warn(found)
    see = command("lifecycle plan")
    text = f"Set {many(len(policy.rules), 'rule')} for {repository.name}. See what goes: {see}"
    done(text, {**facts(repository, made), "findings": list(map(asdict, found))}, as_json=as_json)


@lifecycle.command()
@with_repository
def get(repository: Repository, as_json: bool) -> None:
    """Print the policy that runs go by, and when it was set; as YAML that `desilt lifecycle set` reads."""
    made = kept_policy.kept(repository)
    if as_json:
        row = {**facts(repository, made), "policy": made.policy.to_json()}
        click.echo(json_line(row))
    else:
        click.echo(f"# The lifecycle policy of {repository.name}, set {when(made.at)} UTC")
        click.echo(written(made.policy), nl=False)


@lifecycle.command()
@with_repository
@policy_argument
def lint(repository: Repository, file: BinaryIO, as_json: bool) -> None:
    """Say what POLICY, a file of JSON or YAML (- is stdin), cannot mean, or should say twice; set nothing.

    An error is refused by `desilt lifecycle set`, a confirm needs --confirm there, a warning is told. The branches and
    paths are those of REPO. Exits with 0 if there is no error, with 1 if there is.
    """
    show_findings(linting.findings(repository, read(file)), as_json=as_json)


@lifecycle.command()
@with_repository
@with_metrics
@policy_option
@with_ask
@with_limits
@with_executor
def plan(
    repository: Repository, file: BinaryIO | None, ask: Words, limits: Limits, executor: Executor, as_json: bool
) -> None:
    """Say what would be removed, by which rule, and what stays, and why; remove nothing.

    The plan is written into the repository, below _desilt/runs/lifecycle/: Parquet files with every object that would
    go, report.json, and report.html to open in a browser. `desilt sweep` carries it out. A run looks into the commits
    in which something may have come of age since the last one that swept, and at what had to wait then.
    """
    asked = with_policy(repository, ask, file, confirm=True, quiet=as_json)
    plan_and_show(work.job, repository, executor, asked, limits, as_json=as_json)


@lifecycle.command()
@with_repository
@with_metrics
@policy_option
@with_ask
@with_limits
@with_executor
def run(
    repository: Repository, file: BinaryIO | None, ask: Words, limits: Limits, executor: Executor, as_json: bool
) -> None:
    """Plan, then remove what was planned.

    The first run of a policy, and of a changed one, needs --confirm: look at a plan before. A run that was cut off is
    finished first. Guards refuse to go on (exit code 10, nothing removed) where something looks wrong. Objects that
    somebody holds again by now are left alone and counted. Exit code 3: some could not be removed, and the next run
    tries again.
    """
    asked = with_policy(repository, ask, file, confirm=limits.confirm, quiet=as_json)
    run_and_show(work.job, repository, executor, asked, limits, as_json=as_json)


lifecycle.add_command(simulate)


def with_policy(repository: Repository, ask: Words, file: BinaryIO | None, *, confirm: bool, quiet: bool) -> Words:
    """``ask`` with the policy in ``file``, if there is nothing against it; else by what is set."""
    if file is None:
        work.set_policy(repository)  # where there is none, let nobody wait for Spark
        return ask
    policy = read(file)
    found = linting.given(repository, policy, confirm=confirm)
    if not quiet:
        warn(found)
    return {**ask, "policy": policy}


def read(file: BinaryIO) -> Policy:
    return read_policy(decoded(file), name=label(file))


def facts(repository: Repository, made: Set) -> dict[str, object]:
    return {"repository": repository.name, "set_at": made.at, "fingerprint": made.policy.fingerprint}
