"""Commands that are loaded when they are used: a list of them costs no imports."""

from collections.abc import Mapping
from importlib import import_module
from keyword import iskeyword
from textwrap import shorten
from typing import Any

import click
from click.shell_completion import CompletionItem

from desilt.cli.command import DesiltGroup
from desilt.cli.verbosity import with_verbosity
from desilt.jobs.packages import others

SHORT = 60  # what a shell shows beside a name


class LazyGroup(DesiltGroup):
    """``lazy`` says of each command the module it is in, and what it does: the first paragraph of its help."""

    def __init__(self, *values: Any, lazy: Mapping[str, tuple[str, str]], **more: Any) -> None:
        super().__init__(*values, **more)
        self.lazy = lazy
        with_verbosity(self)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*self.lazy, *(name for name in super().list_commands(ctx) if name not in self.lazy)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in self.lazy and cmd_name not in self.commands:
            name = cmd_name.replace("-", "_") + ("_" if iskeyword(cmd_name) else "")
            found: click.Command = getattr(import_module(self.lazy[cmd_name][0]), name)
            with_verbosity(found)
            self.add_command(found, cmd_name)
        return super().get_command(ctx, cmd_name)

    def about(self, ctx: click.Context, name: str) -> str:
        """What a command does."""
        if name in self.lazy:
            return self.lazy[name][1]
        command = self.get_command(ctx, name)
        return command.get_short_help_str(limit=1000) if command else ""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        names = self.list_commands(ctx)
        limit = formatter.width - 6 - max(map(len, names))
        with formatter.section("Commands"):
            formatter.write_dl([(name, cut(self.about(ctx, name), max(limit, 20))) for name in names])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        names = [name for name in self.list_commands(ctx) if name.startswith(incomplete)]
        return [
            *(CompletionItem(name, help=cut(self.about(ctx, name), SHORT)) for name in names),
            *click.Command.shell_complete(self, ctx, incomplete),
        ]


def cut(text: str, width: int) -> str:
    """So much of ``text`` as there is room for, in whole words."""
    return shorten(text, width, placeholder=" …")


class WithPluggedJobs(LazyGroup):
    """Our own commands, and those of jobs of other packages."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        own = super().list_commands(ctx)
        return [*own, *(name for name in sorted(others()) if name not in own)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        own = super().get_command(ctx, cmd_name)
        if own is not None or cmd_name not in others():
            return own
        from desilt.cli.plugged import loaded

        return loaded(cmd_name)
