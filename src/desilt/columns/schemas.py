"""The columns that jobs work with."""

import pyarrow as pa

MOMENT = pa.timestamp("us", tz="UTC")

INVENTORY = pa.schema(
    [
        ("folder", pa.dictionary(pa.int32(), pa.string())),  # an address up to its last slash, and with it
        ("name", pa.string()),  # and the rest
        ("size_bytes", pa.int64()),
        ("modified_at", MOMENT),
    ]
)
"""One row per object the store listed below the repository's prefix: one address, seen once."""

HELD = pa.schema([("address", pa.string()), ("owner", pa.int32())])
"""One row per entry that points to an object of the repository; ``owner`` numbers what holds it within its file."""

PLAN = pa.schema(
    [
        ("address", pa.string()),
        ("size_bytes", pa.int64()),
        ("modified_at", MOMENT),
        ("verdict", pa.string()),
        ("reason", pa.string()),
        ("detail", pa.string()),
    ]
)
"""One row per object that goes. Those that stay are counted, by reason."""

DIVIDER = "\0"
"""In the detail of a PLAN: between the rules that an object goes by and each of its paths, none of which holds it."""
