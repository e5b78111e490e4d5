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
from pathlib import Path
from typing import Any

import click

from desilt.errors.base import BadRequest

FILE = "desilt.toml"
PROFILES = "profiles"
EVERYWHERE = ("repo", "ref", "db")  # words that are no command's own
ONCE = ("confirm", "clock_is_right", "after_restore", "give_up", "force")  # a yes is to what somebody has looked at
SAID, WRONG = "desilt.config", "desilt.config.wrong"

Settings = dict[str, Any]


def chosen(context: click.Context, _option: click.Parameter, profile: str | None) -> None:
    """Take what files say as what is meant where nobody says otherwise."""
    try:
        context.meta[SAID] = settings_of(profile)
    except BadRequest as error:  # told by the command that would go by it; whoever asks for help is helped
        context.meta[WRONG] = error


def settings_of(profile: str | None) -> Settings:
    """What files say, with what they say for one profile."""
    settings, known = Settings(), set[str]()
    for file in files():
        said = read(file)
        profiles = said.pop(PROFILES, {})
        if not isinstance(profiles, dict):
            raise BadRequest(f"{file}: {PROFILES} is no table; write [profiles.NAME]")
        known |= profiles.keys()
        settings = merged(settings, said)
        if profile in profiles:
            settings = merged(settings, profiles[profile])
    if profile is not None and profile not in known:
        there = f"there are {', '.join(sorted(known))}" if known else f"no {FILE} has any"
        raise BadRequest(f"there is no profile {profile!r}; {there}")
    return settings


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
    for name in EVERYWHERE:
        if name in said and not isinstance(said[name], str):
            raise BadRequest(f"{file}: {name} is {said[name]!r}; write a text, in quotes")
    return said


def merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> Settings:
    """``above`` where it says anything, else ``below``, table by table."""
    found = dict(below)
    for name, value in above.items():
        both = isinstance(value, Mapping) and isinstance(found.get(name), Mapping)
        found[name] = merged(found[name], value) if both else value
    return found


def everywhere(context: click.Context, name: str) -> str | None:
    """A word that is no command's own: from a variable, else from a file."""
    said = os.environ.get(f"DESILT_{name.upper()}") or context.meta.get(SAID, {}).get(name)
    return None if said is None else str(said)


def defaults(command: click.Command, context: click.Context) -> dict[str, Any]:
    """What files say of one command: words of its own, and those of all commands beside it, as far as it has them."""
    if WRONG in context.meta:
        raise context.meta[WRONG]
    known = {str(option.name): option for option in command.params if isinstance(option, click.Option)}
    said: dict[str, Any] = {}
    table: Any = context.meta.get(SAID, {})
    for name in path_of(context):
        if not isinstance(table, Mapping):
            break
        table = table.get(name, {})
        if isinstance(table, Mapping):
            said |= {word.replace("-", "_"): value for word, value in table.items() if not isinstance(value, Mapping)}
    odd = sorted(word for word in own_words(table) if word not in known and word not in aliases(known))
    if odd:
        raise BadRequest(
            f"{FILE}: `{context.command_path}` has no option {odd[0]!r}; see `{context.command_path} --help`"
        )
    by_alias = aliases(known)
    if yes := sorted(said.keys() & {*ONCE}):
        word = f"--{yes[0].replace('_', '-')}"
        raise BadRequest(f"{FILE}: {yes[0]!r} is said of what was looked at, each time; take it away, and say {word}")
    return {by_alias.get(word, word): value for word, value in said.items() if word in known or word in by_alias}


def own_words(table: Any) -> list[str]:
    """The words of the innermost table, which must be options of that very command."""
    if not isinstance(table, Mapping):
        return []
    return [word.replace("-", "_") for word, value in table.items() if not isinstance(value, Mapping)]


def aliases(known: Mapping[str, click.Option]) -> dict[str, str]:
    """Options by what people write, where programs call them otherwise: ``to`` is ``action``."""
    return {
        word.removeprefix("--").replace("-", "_"): name
        for name, option in known.items()
        for word in option.opts
        if word.startswith("--")
    }


def path_of(context: click.Context) -> list[str]:
    """The words between `desilt` and the command's end."""
    found: list[str] = []
    here: click.Context | None = context
    while here is not None and here.parent is not None:
        found.append(str(here.info_name))
        here = here.parent
    return found[::-1]
