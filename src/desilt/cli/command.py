"""What all commands have in common: words that a file or a variable says for them, where nobody types them."""

from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from desilt.cli import config

REPO, REFS = "repo", ("ref", "branch")


class RepoArgument(click.Argument):
    """A repository that is there."""

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:  # noqa: ARG002
        return [CompletionItem(incomplete, type="file")]


class DesiltCommand(click.Command):
    """A command whose options, and whose REPO and REF, may be left to a file."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if ctx.resilient_parsing or {*ctx.help_option_names} & {*args}:
            return super().parse_args(ctx, args)
        for one in self.params:
            if isinstance(one, click.Option) and one.name in config.ONCE:
                one.allow_from_autoenv = False
        ctx.default_map = {**config.defaults(self, ctx), **(ctx.default_map or {})}
        return super().parse_args(ctx, self._completed(ctx, list(args)))

    def _completed(self, ctx: click.Context, args: list[str]) -> list[str]:
        """``args`` with the REPO that is meant, unless the first of them is one; and with a ref, if that is missing."""
        places = [one.name for one in self.params if isinstance(one, click.Argument)]
        asks = any(isinstance(one, RepoArgument) for one in self.params)
        if not asks:
            return args
        if (db := config.typed(ctx, "db")) and not self._given(ctx, args).get("db"):
            args = ["--db", db, *args]
        repo, ref = config.everywhere(ctx, REPO), config.everywhere(ctx, "ref")
        given = self._given(ctx, args).get(REPO)
        if repo is not None and not (isinstance(given, str) and is_repository(given)):
            args, given = [repo, *args], repo
        if ref is not None and places[1:2] and places[1] in REFS and isinstance(given, str):
            found = self._given(ctx, args)
            needed = [one.name for one in self.params if isinstance(one, click.Argument) and one.required]
            wanted = [*needed, *places[1:2]]
            if any(not isinstance(found.get(name), str) for name in wanted):
                at = args.index(given) + 1
                args = [*args[:at], ref, *args[at:]]
        return args

    def _given(self, ctx: click.Context, args: list[str]) -> dict[str, Any]:
        """What would be taken for what; nothing where the words cannot be parsed, which is told later."""
        try:
            found: dict[str, Any] = self.make_parser(ctx).parse_args(list(args))[0]
        except click.UsageError:
            return {}
        return found


class DesiltGroup(click.Group):
    """Commands of that kind."""

    command_class = DesiltCommand
    group_class = type


def is_repository(word: str) -> bool:
    """Whether a word can only be meant as a repository: DIRECTORY#NAME, a URI, or a directory that is there."""
    return "#" in word or "://" in word or Path(word).is_dir()
