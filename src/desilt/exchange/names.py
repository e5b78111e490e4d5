"""Where an object of one side lies on the other.

A name says when its address was handed out, and goes on saying so: partition and object keep their times and
their order. What is named by no rule of its owner's gets a name of its own, as old as names get. The same address has
the same name each time, so that a copy that was cut off can go on.
"""

import base64
import hashlib
from collections.abc import Callable
from datetime import timedelta

from desilt.domain import address as lake_names
from desilt.domain.times import EPOCH, SECOND
from desilt.lake.layout import LAYOUT as LAKE
from desilt.lakefs.layout import DATA, WRAP, YEAR_4000, partition_seconds
from desilt.lakefs.layout import LAYOUT as SERVER

Named = Callable[[str], str]
TAIL = 8  # bytes of a name after its seconds


def on_server(address: str) -> str:
    """Where a server keeps what a lake has at ``address``: ``data/<partition>/<object>``."""
    if not LAKE.is_object(address):
        return f"{DATA}{_partition(0, _hash(address)[:1])}/{_odd(address)}"
    _, branch, partition, name = address.split("/")
    opened = (lake_names.partition_time(partition) - EPOCH) // SECOND
    return f"{DATA}{_partition(opened, f'{branch}/{partition}'.encode())}/{name}"


def in_lake(branch: str) -> Named:
    """Where a lake keeps what a server has: all of it below the branch with uid ``branch``."""
    below = lake_names.branch_prefix(branch)

    def named(address: str) -> str:
        name = address.rpartition("/")[2].partition(",")[0]  # without the signature of a link
        if not SERVER.is_object(address) or not address.startswith(DATA):
            folder = lake_names.partition(EPOCH, lake_names.uid(EPOCH, _hash(_hash(address)[:1])))
            return f"{below}{folder}/{_odd(address)}"
        partition = address.split("/")[-2]
        opened = EPOCH + timedelta(seconds=partition_seconds(partition))
        return f"{below}{lake_names.partition(opened, partition)}/{name}"

    return named


def _partition(opened: int, said: bytes) -> str:
    """A server's name for a partition opened at that second: later ones sort first."""
    raw = ((YEAR_4000 - opened) % WRAP).to_bytes(4) + _hash(said)[:TAIL]
    return base64.b32hexencode(raw).decode().rstrip("=").lower()


def _odd(address: str) -> str:
    return lake_names.uid(EPOCH, _hash(address))


def _hash(said: str | bytes) -> bytes:
    return hashlib.sha256(said.encode() if isinstance(said, str) else said).digest()
