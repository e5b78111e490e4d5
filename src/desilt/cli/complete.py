"""`desilt completion`: what a shell offers behind a half-typed word; and what can only be known by looking."""

from collections.abc import Iterable
from contextlib import AbstractContextManager, suppress
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem, get_completion_class

from desilt.cli import config
from desilt.cli.attempt import COMPLETING
from desilt.cli.command import REPO, DesiltCommand

if TYPE_CHECKING:
    from desilt.repository.protocol import Repository

WHERE = {
    "bash": "echo 'eval \"$(desilt completion bash)\"' >> ~/.bashrc",
    "zsh": "echo 'eval \"$(desilt completion zsh)\"' >> ~/.zshrc",
    "fish": "desilt completion fish > ~/.config/fish/completions/desilt.fish",
}


@click.command(cls=DesiltCommand)
@click.argument("shell", type=click.Choice(list(WHERE)))
def completion(shell: str) -> None:
    """Print what makes a shell complete the words of desilt: commands, options, runs, branches and tags.

    \b
      echo 'eval "$(desilt completion bash)"' >> ~/.bashrc
      echo 'eval "$(desilt completion zsh)"' >> ~/.zshrc
      desilt completion fish > ~/.config/fish/completions/desilt.fish
    """
    found = get_completion_class(shell)
    assert found is not None
    root = click.get_current_context().find_root().command
    click.echo(found(root, {}, "desilt", COMPLETING).source())


def runs(context: click.Context, _argument: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Runs that begin so, the newest first."""
    from desilt.runs.folder import LAST, runs_of

    found = [CompletionItem(LAST)] if LAST.startswith(incomplete) else []
    with suppress(Exception), _opened(context) as repository:  # a shell that completes must not complain
        known = runs_of(repository.store, repository.prefix)
        found += [CompletionItem(run_id, help=job) for job, run_id in known if run_id.startswith(incomplete)]
    return found


def refs(context: click.Context, _argument: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Branches and tags that begin so."""
    from desilt.executors.executor import HERE

    found: list[CompletionItem] = []
    with suppress(Exception), _opened(context) as repository:
        seen = repository.source(HERE).snapshot(repository.clock())
        found = [*_named("branch", seen.names, incomplete), *_named("tag", [tag.name for tag in seen.tags], incomplete)]
    return found


def _named(kind: str, names: Iterable[str], incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(name, help=kind) for name in names if name.startswith(incomplete)]


def _opened(context: click.Context) -> "AbstractContextManager[Repository]":
    from desilt.repository.opening import repository_at

    repo = context.params.get(REPO) or config.everywhere(context, REPO) or ""
    return repository_at(repo, db=context.params.get("db") or config.everywhere(context, "db"))
