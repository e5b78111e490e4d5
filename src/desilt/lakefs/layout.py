"""Where a lakeFS server puts objects: ``data/<partition>/<object>[,signature]``, its tables in ``_lakefs/``.

Sharded namespaces have two folders more, very old objects lie in the root. Whatever has another name is nobody's to
remove. An object's name has the second in which its address was handed out, and a partition's counts time downwards.
"""

import base64
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from desilt.columns.arrays import Flags, Seconds
from desilt.columns.uids import seconds_of
from desilt.domain.address import PARTITION_AGE
from desilt.domain.times import EPOCH
from desilt.sstable.ranges import FOLDER as TABLES

DATA = "data/"
GROUP = "data"  # neither repository nor branch is in an address: all is uploaded to one
XID = "[0-9a-v]{19}[0g]"
NAME = f"{XID}(?:,[0-9A-Za-z_-]{{43}}=?)?"
SHARD = "(?:![0-9a-z]{2}/[0-9a-z]/)?"
FOLDER = f"{DATA}{SHARD}{XID}/"
ROOT = "[0-9a-f]{32}"
OBJECT = f"^(?:{FOLDER}{NAME}|{ROOT})$"
TABLE = f"^{TABLES}[0-9a-f]{{64}}$"
YEAR_4000 = 64_060_588_800
WRAP = 2**32
REST = bytes(8)  # of an xid, after its seconds


@dataclass(frozen=True, slots=True)
class LakefsLayout:
    """Of every repository of a server; addresses are below its storage namespace."""

    data: str = DATA
    tables: str = TABLES

    def is_object(self, address: str) -> bool:
        return re.fullmatch(OBJECT.rstrip("$"), address) is not None

    def is_table(self, address: str) -> bool:
        return re.fullmatch(TABLE.rstrip("$"), address) is not None

    def objects(self, addresses: pa.Array) -> Flags:
        return _matching(addresses, OBJECT)

    def tables_among(self, addresses: pa.Array) -> Flags:
        return _matching(addresses, TABLE)

    def ours(self, folders: pa.DictionaryArray, found: pa.Array) -> Flags:
        there = folders.indices.to_numpy()
        in_data = _matching(folders.dictionary, f"^{FOLDER}$")[there]
        in_root = _matching(folders.dictionary, "^$")[there]
        ours: Flags = (in_data & _matching(found, f"^{NAME}$")) | (in_root & _matching(found, f"^{ROOT}$"))
        return ours

    def seconds(self, found: pa.Array) -> Seconds:
        return seconds_of(pc.replace_substring_regex(found, ",[^/]*$", ""))

    def address_seconds(self, addresses: pa.Array) -> Seconds:
        return self.seconds(pc.replace_substring_regex(addresses, "^.*/", ""))

    def named_at(self, address: str) -> datetime | None:
        second = int(self.address_seconds(pa.array([address]))[0]) if self.is_object(address) else -1
        return EPOCH + timedelta(seconds=second) if second >= 0 else None

    def group_of(self, address: str) -> str:
        return GROUP if address.startswith(DATA) else ""

    def groups(self, addresses: pa.Array) -> pa.Array:
        return pc.if_else(pc.starts_with(addresses, DATA), GROUP, "")

    def group_folder(self, group: str) -> str:
        return f"{group}/"

    def settled(self, folder: str, boundaries: Mapping[str, str]) -> bool:
        """Shards do not list by time, and never are."""
        parts = folder.split("/")  # data, partition, and nothing after the last slash
        if len(parts) != 3 or parts[0] not in boundaries or not re.fullmatch(XID, parts[1]):
            return False
        return parts[1] >= boundaries[parts[0]]

    def boundary(self, at: datetime) -> str:
        return _partition(_seconds(at - PARTITION_AGE))

    def after(self, folder_name: str) -> str:
        return _partition(partition_seconds(folder_name) - 1)


def partition_seconds(name: str) -> int:
    """The second in which a partition was opened."""
    raw = base64.b32hexdecode(name.upper() + "=" * (-len(name) % 8))
    return (YEAR_4000 - int.from_bytes(raw[:4])) % WRAP


def _partition(seconds: int) -> str:
    """What sorts before the name of every partition opened at ``seconds`` or earlier, and after all later ones."""
    raw = ((YEAR_4000 - seconds) % WRAP).to_bytes(4) + REST
    return base64.b32hexencode(raw).decode().rstrip("=").lower()


def _seconds(moment: datetime) -> int:
    return (moment - EPOCH) // timedelta(seconds=1)


def _matching(texts: pa.Array, pattern: str) -> Flags:
    flags: Flags = pc.match_substring_regex(texts, pattern).to_numpy(zero_copy_only=False).astype(np.bool_)
    return flags


LAYOUT = LakefsLayout()
