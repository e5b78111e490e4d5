"""What people write down, described for their editors: a JSON Schema (2020-12) for each kind of document.

A schema says the same as the parser of its kind, as far as a schema can; its ``$comment`` says how far that is.
"""

from importlib import resources

from desilt.errors import BadRequest

KINDS = ("lifecycle", "upkeep", "retention")


def schema(kind: str) -> str:
    """The schema of one of :data:`KINDS`, as JSON."""
    if kind not in KINDS:
        raise BadRequest(f"there is no schema {kind!r}; there are {', '.join(KINDS)}")
    return resources.files("desilt.schemas").joinpath(f"{kind}.schema.json").read_text(encoding="utf-8")
