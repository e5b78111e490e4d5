"""Where the objects of a lake lie: ``branches/<branch>/<partition>/<object>``, its tables in ``_lakefs/``.

Every name carries the time it was made, so that an object's age has a witness besides
the store's own clock. Partitions count time downwards: the newest one lists first.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from desilt.columns.arrays import Flags, Seconds
from desilt.columns.uids import UID_CHARACTERS, last_seconds_of, seconds_of
from desilt.domain import address as names
from desilt.sstable.ranges import FOLDER as TABLES

DATA = "branches/"
UID = f"[0-9a-v]{{{UID_CHARACTERS}}}"
PARTIAL = r"[0-9a-f]{16}\.partial"  # what a put leaves behind that was killed
FOLDER = f"{DATA}({UID})/([0-9]{{14}}_{UID})/"
OBJECT = f"^{FOLDER}({UID}|{PARTIAL})$"
TABLE = f"^{TABLES}([0-9a-f]{{64}}|{PARTIAL})$"
PARTITION = re.compile(FOLDER)


@dataclass(frozen=True, slots=True)
class LakeLayout:
    """Of every repository of a lake of our own."""

    data: str = DATA
    tables: str = TABLES

    def is_object(self, address: str) -> bool:
        return re.fullmatch(OBJECT, address) is not None

    def is_table(self, address: str) -> bool:
        return re.fullmatch(TABLE, address) is not None

    def objects(self, addresses: pa.Array) -> Flags:
        return _matching(addresses, OBJECT)

    def tables_among(self, addresses: pa.Array) -> Flags:
        return _matching(addresses, TABLE)

    def ours(self, folders: pa.DictionaryArray, found: pa.Array) -> Flags:
        ours: Flags = self.seconds(found) >= 0  # called by a uid
        odd = np.flatnonzero(~ours)
        ours[odd] = _matching(found.take(pa.array(odd)), f"^{PARTIAL}$")
        ours &= _matching(folders.dictionary, f"^{FOLDER}$")[folders.indices.to_numpy()]
        return ours

    def seconds(self, found: pa.Array) -> Seconds:
        return seconds_of(found)

    def address_seconds(self, addresses: pa.Array) -> Seconds:
        return last_seconds_of(addresses)

    def named_at(self, address: str) -> datetime | None:
        name = address.rpartition("/")[2]
        return names.uid_time(name) if self.is_object(address) and len(name) == UID_CHARACTERS else None

    def group_of(self, address: str) -> str:
        parts = address.split("/")
        return parts[1] if len(parts) > 2 else ""

    def groups(self, addresses: pa.Array) -> pa.Array:
        first = pc.replace_substring_regex(addresses, f"^{DATA}([^/]*)/.*$", r"\1")
        return pc.if_else(pc.starts_with(addresses, DATA), first, "")

    def group_folder(self, group: str) -> str:
        return names.branch_prefix(group)

    def settled(self, folder: str, boundaries: Mapping[str, str]) -> bool:
        parts = folder.split("/")  # data, group, partition, and nothing after the last slash
        return len(parts) == 4 and parts[1] in boundaries and parts[2] >= boundaries[parts[1]]

    def boundary(self, at: datetime) -> str:
        return names.boundary(at - names.PARTITION_AGE)

    def after(self, folder_name: str) -> str:
        return f"{int(folder_name.split('_')[0]) + 1:014d}"


def folder_parts(folder: str) -> tuple[str, str]:
    """The branch and the partition of a folder of uploads, or of an address in one."""
    _, branch, partition, *_ = folder.split("/")
    return branch, partition


def _matching(texts: pa.Array, pattern: str) -> Flags:
    flags: Flags = pc.match_substring_regex(texts, pattern).to_numpy(zero_copy_only=False).astype(np.bool_)
    return flags


LAYOUT = LakeLayout()
