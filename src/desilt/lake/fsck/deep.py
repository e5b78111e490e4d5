"""Every object read, and its MD5 compared with what its entry was made with."""

import hashlib
import threading
from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from desilt.errors import NotFound, StorageFailed
from desilt.lake.core import Core
from desilt.lake.fsck.tables import MOST_AT_ONCE, at_once
from desilt.repository.findings import Notebook

Progress = Callable[[int, int], None]
"""Told of bytes just read, and how many there are in all."""

MD5 = "^[0-9a-fA-F]{32}$"
BATCH = 1_000


def unwatched(_amount: int, _total: int) -> None:
    """No progress shown."""


def wrong_bytes(core: Core, rows: pa.Table, notes: Notebook, progress: Progress) -> pa.Table:
    """Those of ``rows`` whose object has other bytes, each with the ``fact``."""
    comparable = rows.filter(pc.match_substring_regex(rows["checksum"], MD5))
    if len(comparable) < len(rows):
        notes.left_out.append(f"{len(rows) - len(comparable):,} objects have a checksum that is no MD5; not compared")
    total, lock = pc.sum(comparable["stored"]).as_py() or 0, threading.Lock()

    def read(pair: tuple[str, str]) -> str:
        address, checksum = pair
        digest = hashlib.md5(usedforsecurity=False)
        try:
            for chunk in core.store.stream(core.prefix + address):
                digest.update(chunk)
                with lock:
                    progress(len(chunk), total)
        except NotFound:
            return ""  # gone since it was listed; if it should not be, the next check says so
        except StorageFailed as error:
            return f"its object cannot be read: {error}"
        found = digest.hexdigest()
        return "" if found == checksum.lower() else f"its object's MD5 is {found}, not {checksum}"

    places, facts, at = [], [], 0
    for batch in comparable.select(["address", "checksum"]).to_batches(BATCH):
        pairs = zip(batch["address"].to_pylist(), batch["checksum"].to_pylist(), strict=True)
        for _, fact in at_once(read, pairs, MOST_AT_ONCE):
            if fact:
                places.append(at)
                facts.append(fact)
            at += 1
    return comparable.take(pa.array(places, pa.int64())).append_column("fact", pa.array(facts, pa.string()))
