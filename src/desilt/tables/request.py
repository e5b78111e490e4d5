"""What somebody asks of a table: the options of a reader, checked before anything is opened."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from desilt.domain.document import nearest
from desilt.errors import BadRequest
from desilt.records.passwords import without_password
from desilt.repository.opening import SCHEME
from desilt.tables.schemas import SCHEMAS, types_of

ALL = "*"
ALWAYS = ("repository", "db", "table", "columns")
TAKES: Mapping[str, tuple[str, ...]] = {
    "entries": ("ref", "prefix"),
    "commits": (),
    "refs": (),
    "staged": ("ref", "prefix"),
    "inventory": ("run",),
    "plan": ("run",),
    "outcome": ("run",),
    "removals": ("run",),
}
"""What each table can be told, besides what all can."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A table of a repository, or a part of it."""

    repository: str
    db: str | None
    table: str
    columns: tuple[str, ...]
    ref: str | None = None
    prefix: str = ""
    run: str | None = None


def asked(options: Mapping[str, str]) -> Asked:
    """What ``options`` ask for; what is unknown, missing or of another table is refused with what to write instead."""
    told = {name.lower(): value for name, value in options.items()}
    table = told.get("table", "").lower()
    if table not in TAKES:
        given = f"there is no table {told['table']!r}" if "table" in told else "the option 'table' is missing"
        raise BadRequest(f"{given}; {_instead(table, tuple(TAKES), 'tables')}")
    known = (*ALWAYS, *TAKES[table])
    for name in told:
        if name not in known:
            raise BadRequest(f"table {table!r} has no option {name!r}; {_instead(name, known, 'options')}")
    if not told.get("repository"):
        raise BadRequest("the option 'repository' is missing; write it as for commands: s3://BUCKET/PREFIX#REPO")
    return Asked(
        _absolute(told["repository"]),
        _shown(told.get("db")),
        table,
        _columns(table, told.get("columns")),
        told.get("ref") or None,
        told.get("prefix", ""),
        told.get("run") or None,
    )


def with_schema(wanted: Asked, fields: Sequence[tuple[str, str]]) -> Asked:
    """``wanted`` with the columns (names and types) of the schema that Spark reads by."""
    known = types_of(wanted.table)
    for name, kind in fields:
        if known.get(name) != kind:
            fix = f"it is {known[name]}" if name in known else _instead(name, tuple(known), "columns")
            raise BadRequest(f"table {wanted.table!r} has no column {name!r} of type {kind}; {fix}")
    return replace(wanted, columns=tuple(name for name, _ in fields))


def _columns(table: str, given: str | None) -> tuple[str, ...]:
    known = tuple(SCHEMAS[table].names)
    if given is None:
        return known
    found = tuple(name.strip().lower() for name in given.split(","))
    for place, name in enumerate(found):
        if name not in known:
            raise BadRequest(f"table {table!r} has no column {name!r}; {_instead(name, known, 'columns')}")
        if name in found[:place]:
            raise BadRequest(f"'columns' has {name!r} twice; write it once")
    return found


def _instead(name: str, known: tuple[str, ...], what: str) -> str:
    near = nearest(name, known) if name else None
    return f"did you mean {near!r}?" if near else f"the {what} are {', '.join(known)}"


def _absolute(uri: str) -> str:
    """A directory is what it is here: whoever reads may stand elsewhere."""
    if SCHEME.match(uri):
        return uri
    where, divided, name = uri.partition("#")
    return f"{Path(where).expanduser().absolute()}{divided}{name}"


def _shown(db: str | None) -> str | None:
    """An option is shown in plans and in Spark's UI."""
    if db and without_password(db) != db:
        raise BadRequest(
            "the option 'db' has a password in it, which others could read in plans and in Spark's pages; leave it "
            "out, and let the driver and the executors find it: in PGPASSWORD, PGPASSFILE or a DESILT_DB of their own"
        )
    return db or None
