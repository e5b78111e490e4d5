"""The tables that Spark is shown, column by column, and how Spark spells their types."""

import pyarrow as pa

from desilt.columns.schemas import MOMENT

TEXTS = pa.list_(pa.string())
PAIRS = pa.map_(pa.string(), pa.string())

ENTRIES = pa.schema(
    [
        ("ref", pa.string()),  # as it was asked for, or the name of a branch
        ("commit_id", pa.string()),
        ("path", pa.string()),  # a byte that is no UTF-8 is told as \xff
        ("address", pa.string()),  # below the repository's prefix; of what lies elsewhere, a whole URI
        ("size_bytes", pa.int64()),
        ("created_at", MOMENT),
        ("checksum", pa.string()),
        ("content_type", pa.string()),
        ("metadata", PAIRS),
    ]
)
"""One row per path of a ref's commit; those too whose objects a run has removed, as the commit has them."""

COMMITS = pa.schema(
    [
        ("commit_id", pa.string()),
        ("parents", TEXTS),  # today
        ("made_from", TEXTS),  # others, where its history was edited
        ("created_at", MOMENT),
        ("committer", pa.string()),
        ("message", pa.string()),
        ("metadata", PAIRS),
    ]
)
"""One row per commit, whether a ref reaches it or not."""

REFS = pa.schema(
    [
        ("kind", pa.string()),  # branch or tag
        ("name", pa.string()),
        ("commit_id", pa.string()),
        ("created_at", MOMENT),
        ("is_default", pa.bool_()),
    ]
)
"""One row per branch and tag."""

STAGED = pa.schema(
    [
        ("branch", pa.string()),
        ("path", pa.string()),
        ("address", pa.string()),
        ("size_bytes", pa.int64()),
        ("created_at", MOMENT),
        ("checksum", pa.string()),
        ("content_type", pa.string()),
        ("metadata", PAIRS),
        ("removes", pa.bool_()),  # the path goes with the next commit; all between is null
    ]
)
"""One row per path that the next commit of a branch would change."""

INVENTORY = pa.schema(
    [
        ("address", pa.string()),
        ("branch", pa.string()),  # that it was uploaded to
        ("size_bytes", pa.int64()),
        ("modified_at", MOMENT),
    ]
)
"""One row per object that the store lists, or listed for a run."""

PLAN = pa.schema(
    [
        ("run", pa.string()),
        ("job", pa.string()),
        ("address", pa.string()),
        ("path", pa.string()),  # the first, where any is known: of what was committed
        ("paths", TEXTS),
        ("branch", pa.string()),  # that it was uploaded to; of ranges and metaranges, ""
        ("size_bytes", pa.int64()),
        ("modified_at", MOMENT),
        ("reason", pa.string()),
        ("rule", pa.string()),  # what it goes by, where rules have names; else the reason
    ]
)
"""One row per object that a run would remove."""

OUTCOME = pa.schema(
    [
        ("run", pa.string()),
        ("job", pa.string()),
        ("batch", pa.int64()),
        ("address", pa.string()),
        ("branch", pa.string()),
        ("size_bytes", pa.int64()),
        ("modified_at", MOMENT),
        ("result", pa.string()),
        ("detail", pa.string()),
    ]
)
"""One row per object that a run was to remove, once it is known what became of it."""

REMOVALS = pa.schema(
    [
        ("address", pa.string()),
        ("branch", pa.string()),
        ("run", pa.string()),
        ("job", pa.string()),  # null while no run has taken it
        ("rule", pa.string()),
        ("state", pa.string()),
        ("condemned_at", MOMENT),
        ("size_bytes", pa.int64()),
        ("batch", pa.int64()),
        ("restored_at", MOMENT),
    ]
)
"""One row per address that was ever condemned, and what became of its object; what was restored is among them."""

SCHEMAS = {
    "entries": ENTRIES,
    "commits": COMMITS,
    "refs": REFS,
    "staged": STAGED,
    "inventory": INVENTORY,
    "plan": PLAN,
    "outcome": OUTCOME,
    "removals": REMOVALS,
}
SQL = {
    pa.string(): "string",
    pa.int64(): "bigint",
    pa.bool_(): "boolean",
    MOMENT: "timestamp",
    TEXTS: "array<string>",
    PAIRS: "map<string,string>",
}


def types_of(table: str) -> dict[str, str]:
    """The columns of a table, in order, with what Spark calls their types."""
    return {field.name: SQL[field.type] for field in SCHEMAS[table]}
