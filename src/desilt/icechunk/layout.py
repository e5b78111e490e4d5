"""Where an Icechunk repository has what: a folder for each kind of file, and names that tell nothing but an id.

    repo                                     refs, snapshots and configuration (format 2)
    overwritten/<file>.<time left>.<id>      what that or the configuration was before each change
    config.yaml, refs/<kind>.<name>/ref.json the same as files (format 1)
    snapshots/ manifests/ transactions/ chunks/      <id>

Whatever has another name is nobody's to remove. Ids are random: no name says when it was made, and none is known
to be settled.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from desilt.columns.arrays import Flags, Seconds
from desilt.icechunk.format.ids import NAME

CHUNKS = "chunks/"
SNAPSHOTS = "snapshots/"
MANIFESTS = "manifests/"
TRANSACTIONS = "transactions/"
REFS = "refs/"
OVERWRITTEN = "overwritten/"
REPO = "repo"
CONFIG = "config.yaml"

FOREIGN = "foreign"
KINDS = {
    "chunk": f"{CHUNKS}{NAME}",
    "manifest": f"{MANIFESTS}{NAME}",
    "transaction": f"{TRANSACTIONS}{NAME}",
    "snapshot": f"{SNAPSHOTS}{NAME}",
    "ref": rf"{REFS}(?:branch|tag)\.[^/]+/ref\.json",
    "tombstone": rf"{REFS}tag\.[^/]+/ref\.json\.deleted",
    "backup": rf"{OVERWRITTEN}(?:repo|config\.yaml)\.[0-9]+\.{NAME}",
    "repo": REPO,
    "config": r"config\.yaml",
}
OBJECT = f"^{KINDS['chunk']}$"
TABLE = f"^(?:(?:{SNAPSHOTS}|{MANIFESTS}|{TRANSACTIONS}){NAME}|{KINDS['backup']})$"


@dataclass(frozen=True, slots=True)
class IcechunkLayout:
    """Of every repository; addresses are below its prefix."""

    data: str = CHUNKS
    tables: str = MANIFESTS

    def is_object(self, address: str) -> bool:
        return re.fullmatch(OBJECT.rstrip("$"), address) is not None

    def is_table(self, address: str) -> bool:
        return re.fullmatch(TABLE.rstrip("$"), address) is not None

    def objects(self, addresses: pa.Array) -> Flags:
        return _matching(addresses, OBJECT)

    def tables_among(self, addresses: pa.Array) -> Flags:
        return _matching(addresses, TABLE)

    def ours(self, folders: pa.DictionaryArray, found: pa.Array) -> Flags:
        in_chunks = _matching(folders.dictionary, f"^{CHUNKS}$")[folders.indices.to_numpy()]
        ours: Flags = in_chunks & _matching(found, f"^{NAME}$")
        return ours

    def seconds(self, found: pa.Array) -> Seconds:
        return np.full(len(found), -1, np.int64)

    def address_seconds(self, addresses: pa.Array) -> Seconds:
        return self.seconds(addresses)

    def named_at(self, address: str) -> datetime | None:  # noqa: ARG002
        return None

    def group_of(self, address: str) -> str:
        return CHUNKS.rstrip("/") if address.startswith(CHUNKS) else ""

    def groups(self, addresses: pa.Array) -> pa.Array:
        return pc.if_else(pc.starts_with(addresses, CHUNKS), CHUNKS.rstrip("/"), "")

    def group_folder(self, group: str) -> str:
        return f"{group}/"

    def settled(self, folder: str, boundaries: Mapping[str, str]) -> bool:  # noqa: ARG002
        return False

    def boundary(self, at: datetime) -> str:  # noqa: ARG002
        return ""

    def after(self, folder_name: str) -> str:
        return folder_name


LAYOUT = IcechunkLayout()


def kind_of(key: str) -> str:
    """What lies at ``key``: a kind by its name, or :data:`FOREIGN`."""
    return next((kind for kind, pattern in KINDS.items() if re.fullmatch(pattern, key)), FOREIGN)


def kinds(keys: pa.Array) -> pa.StringArray:
    """The same of many keys."""
    found = pa.array([FOREIGN], pa.string()).take(pa.array(np.zeros(len(keys), np.int64)))
    for kind, pattern in KINDS.items():
        found = pc.if_else(pa.array(_matching(keys, f"^(?:{pattern})$")), kind, found)
    return found


def _matching(texts: pa.Array, pattern: str) -> Flags:
    """``$`` is the end here, and never a line break before it: keys with one are foreign."""
    flags: Flags = pc.match_substring_regex(texts, pattern).to_numpy(zero_copy_only=False).astype(np.bool_)
    return flags
