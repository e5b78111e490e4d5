"""What a person does not want to type each time: a file `desilt.toml`, profiles in it, and variables `DESILT_…`.

The nearest word counts: what is typed, then a variable, then the file beside the work, then the user's own.

    repo = "./lake#mine"          # REPO, where none is given
    ref = "main"                  # a ref or a branch, where none is given

    [gc]                          # options of its commands
    max_share = "20%"
    [gc.run]
    to = "trash"

    [profiles.prod]               # the same again, for `--profile prod`
    repo = "s3://bucket/lake#mine"
"""

import os
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from desilt.domain.run import SAID_ONCE
from desilt.errors.base import BadRequest

FILE = "desilt.toml"
PROFILES = "profiles"
EVERYWHERE = ("repo", "ref", "db")  # words that are no command's own
ONCE = (*SAID_ONCE, "give_up", "force")  # a yes is to what somebody has looked at
SAID, TYPED, PROFILE, WRONG = (f"desilt.config.{word}" for word in ("said", "typed", "profile", "wrong"))

Settings = dict[str, Any]


def chosen(context: click.Context, option: click.Parameter, profile: str | None) -> None:
    """Take what files say as what is meant where nobody says otherwise."""
    try:
        context.meta[SAID], of_profile = settings_of(profile)
    except BadRequest as error:  # told by the command that would go by it; whoever asks for help is helped
        context.meta[WRONG] = error
        return
    if context.get_parameter_source(str(option.name)) is ParameterSource.COMMANDLINE:
        context.meta[TYPED], context.meta[PROFILE] = of_profile, profile


def settings_of(profile: str | None) -> tuple[Settings, Settings]:
    """What files say, with what they say for one profile; and that alone."""
    settings, of_profile, known = Settings(), Settings(), set[str]()
    for file in files():
        said = read(file)
        profiles = said.pop(PROFILES, {})
        if not isinstance(profiles, dict) or not all(isinstance(one, dict) for one in profiles.values()):
            raise BadRequest(f"{file}: {PROFILES} is no table of tables; write [profiles.NAME]")
        for one in (said, *profiles.values()):
            check_texts(file, one)
        known |= profiles.keys()
        settings = merged(settings, said)
        of_profile = merged(of_profile, profiles.get(profile, {}))
    if profile is not None and profile not in known:
        there = f"there are {', '.join(sorted(known))}" if known else f"no {FILE} has any"
        raise BadRequest(f"there is no profile {profile!r}; {there}")
    return merged(settings, of_profile), of_profile


def files() -> Iterator[Path]:
    """Those there are, the nearest last; or the one that DESILT_CONFIG names."""
    if named := os.environ.get("DESILT_CONFIG"):
        if not Path(named).is_file():
            raise BadRequest(f"DESILT_CONFIG is {named!r}, and there is no such file; mend it, or take it away")
        yield Path(named)
        return
    own = os.environ.get("XDG_CONFIG_HOME", "")
    home = Path(own) if Path(own).is_absolute() else Path.home() / ".config"
    for file in (home / "desilt" / FILE, Path.cwd() / FILE):
        if file.is_file():
            yield file


def read(file: Path) -> Settings:
    """What a file says."""
    import tomllib  # of use to those who have such a file

    try:
        said = tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadRequest(f"{file} is not TOML: {error}; mend it") from None
    except OSError as error:
        raise BadRequest(f"{file} cannot be read: {error.strerror}; mend its mode, or take it away") from None
    return said


def check_texts(file: Path, said: Mapping[str, Any]) -> None:
    for name in EVERYWHERE:
        if name in said and not isinstance(said[name], str):
            raise BadRequest(f"{file}: {name} is {said[name]!r}; write a text, in quotes")


def merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> Settings:
    """``above`` where it says anything, else ``below``, table by table."""
    found = dict(below)
    for name, value in above.items():
        both = isinstance(value, Mapping) and isinstance(found.get(name), Mapping)
        found[name] = merged(found[name], value) if both else value
    return found


def everywhere(context: click.Context, name: str) -> str | None:
    """A word that is no command's own: from a profile that was typed, a variable, or a file."""
    said = typed(context, name) or os.environ.get(f"DESILT_{name.upper()}") or context.meta.get(SAID, {}).get(name)
    return None if said is None else str(said)


def typed(context: click.Context, name: str) -> str | None:
    """What the profile says that was chosen on the command line."""
    said = context.meta.get(TYPED, {}).get(name)
    return None if said is None else str(said)


def profile_typed(context: click.Context) -> str | None:
    """The profile that was chosen on the command line."""
    found: str | None = context.meta.get(PROFILE)
    return found


def defaults(command: click.Command, context: click.Context) -> dict[str, Any]:
    """What files say of one command: words of its own, and those of all commands beside it, as far as it has them.

    A word that nobody would heed is refused: a limit that is misspelled must not be one that is missing.
    """
    if WRONG in context.meta:
        raise context.meta[WRONG]
    table: Any = context.meta.get(SAID, {})
    said = {"db": table["db"]} if "db" in table else {}
    for above, below in pairwise(contexts(context)):
        if isinstance(above.command, click.Group):
            check_names(above, above.command, table)
        table = table.get(below.info_name, {})
        if not isinstance(table, Mapping):
            raise BadRequest(f"{FILE}: {below.info_name!r} is {table!r}; write a table, [{below.info_name}]")
        said |= words_of(table)
    known = options_of(command)
    if odd := sorted(words_of(table).keys() - known.keys()):
        where = context.command_path
        raise BadRequest(f"{FILE}: `{where}` has no option {odd[0]!r}; see `{where} --help`")
    if yes := sorted(said.keys() & {*ONCE}):
        word = f"--{yes[0].replace('_', '-')}"
        raise BadRequest(f"{FILE}: {yes[0]!r} is said of what was looked at, each time; take it away, and say {word}")
    return {known[word]: value for word, value in said.items() if word in known}


def check_names(context: click.Context, group: click.Group, table: Mapping[str, Any]) -> None:
    """Tables are called as commands are, and what is said of all commands of a group is an option of some."""
    names = group.list_commands(context)
    where = f"`{context.command_path}`"
    for name, value in table.items():
        if isinstance(value, Mapping) and name not in names:
            raise BadRequest(f"{FILE}: {where} has no command {name!r}; see {where[:-1]} --help`")
    if odd := sorted(words_of(table).keys() - (below(context, group) if context.parent else {*EVERYWHERE})):
        raise BadRequest(f"{FILE}: nothing of {where} has {odd[0]!r}; see {where[:-1]} --help`")


def below(context: click.Context, group: click.Group) -> set[str]:
    """The options of all commands of a group."""
    found: set[str] = set()
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            found |= below(context, command)
        elif command is not None:
            found |= options_of(command).keys()
    return found


def words_of(table: Mapping[str, Any]) -> dict[str, Any]:
    """What a table says by itself."""
    return {word.replace("-", "_"): value for word, value in table.items() if not isinstance(value, Mapping)}


def options_of(command: click.Command) -> dict[str, str]:
    """Options by what people write, and as programs call them: ``to`` is ``action``."""
    known = {str(option.name): option for option in command.params if isinstance(option, click.Option)}
    written = {
        word.removeprefix("--").replace("-", "_"): name
        for name, option in known.items()
        for word in option.opts
        if word.startswith("--")
    }
    return {name: name for name in known} | written


def contexts(context: click.Context) -> list[click.Context]:
    """From `desilt` to the command."""
    found = [context]
    while found[-1].parent is not None:
        found.append(found[-1].parent)
    return found[::-1]
