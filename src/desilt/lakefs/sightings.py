"""Since when objects that were uploaded in parts have been listed.

By the store and by its name such an object is as old as the beginning of its upload; it came to be there at the end,
which may be a moment ago, and a server stages it right after that. So it is young until a listing from before the
grace period had it too. What was seen is kept beside the objects; where that is lost or damaged, all is new.
"""

import hashlib
import io
from collections.abc import Callable
from datetime import datetime, timedelta

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from desilt.domain.times import CLOCK_MARGIN
from desilt.errors import NotFound
from desilt.lakefs.core import PREFIX, LakefsCore
from desilt.objects.store import ObjectStore

FILE = f"{PREFIX}_desilt/sightings"
SEEN = pa.schema([("address", pa.string()), ("seen_at", pa.timestamp("us", tz="UTC"))])
"""One row per object that was uploaded in parts, and when a listing first had it: no earlier than that."""
REMEMBERED = timedelta(days=30)  # what nobody asked for since is forgotten, and then new again
DIGEST = 64  # characters, before all else


def young(core: LakefsCore, listed: pa.Array, now: datetime, staged_once: Callable[[pa.Array], pa.Array]) -> pa.Array:
    """Of addresses that were ``listed`` just now, those that may have come to be there lately.

    ``staged_once`` tells which of some were in a commit once: their uploads have long ended.
    """
    if core.store.parts is None or not len(listed):
        return pa.array([], pa.string())
    known = _known(core.store)
    new = listed.filter(pc.invert(pc.is_in(listed, value_set=known["address"])))
    in_parts = core.store.parts.among([PREFIX + address for address in new.to_pylist()]) if len(new) else set()
    parts = pa.array(sorted(key.removeprefix(PREFIX) for key in in_parts), pa.string())
    ended = staged_once(parts) if len(parts) else parts
    late = parts.filter(pc.invert(pc.is_in(parts, value_set=ended)))
    seen = pa.concat_tables([known, pa.table([late, pa.repeat(core.clock(), len(late))], schema=SEEN)])
    mine = pc.is_in(seen["address"], value_set=listed)
    if len(late):
        _remember(core.store, seen.filter(pc.or_(mine, pc.greater(seen["seen_at"], core.clock() - REMEMBERED))))
    before = min(now, core.clock()) - core.grace - CLOCK_MARGIN
    return seen.filter(pc.and_(mine, pc.greater_equal(seen["seen_at"], before)))["address"].combine_chunks()


def listed_since(core: LakefsCore, address: str) -> datetime | None:
    """Since when listings have had an object that was uploaded in parts: from now on, if none had; None of others."""
    if core.store.parts is None or not core.store.parts.among([PREFIX + address]):
        return None
    known = _known(core.store)
    found = known.filter(pc.equal(known["address"], address))["seen_at"].to_pylist()
    return min(found, default=core.clock())


def _known(store: ObjectStore) -> pa.Table:
    try:
        data = store.get(FILE)
    except NotFound:
        return SEEN.empty_table()
    digest, body = data[:DIGEST].decode(errors="replace"), data[DIGEST:]
    if hashlib.sha256(body).hexdigest() != digest:
        return SEEN.empty_table()
    found = pq.read_table(io.BytesIO(body))
    return found if found.schema.equals(SEEN) else SEEN.empty_table()


def _remember(store: ObjectStore, seen: pa.Table) -> None:
    sink = io.BytesIO()
    pq.write_table(seen, sink)
    body = sink.getvalue()
    store.put(FILE, [hashlib.sha256(body).hexdigest().encode(), body])
