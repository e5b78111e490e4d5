"""The verdict on every object of a bucket: held by somebody, young by some clock, or garbage."""

from collections.abc import Mapping
from datetime import datetime

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from desilt.columns.arrays import Flags, Numbers
from desilt.columns.buckets import HASH, present
from desilt.columns.hashing import Hashes
from desilt.columns.layout import Layout
from desilt.domain.reason import Reason
from desilt.domain.times import microseconds

ORDER = list(Reason)
NOBODYS = np.int8(ORDER.index(Reason.UNREFERENCED))
HOLDERS = (
    Reason.COMMITTED,
    Reason.STAGED,
    Reason.TICKET,
    Reason.HELD,
    Reason.RESTORED,
    Reason.MARKED,
    Reason.DISCARDED,
    Reason.YOUNG,  # by what no clock tells
)  # the first one is told


def reasons(
    inventory: pa.Table,
    held: Mapping[Reason, Hashes],
    *,
    layout: Layout,
    before: datetime,
    copied_at: datetime | None = None,
) -> npt.NDArray[np.int8]:
    """For each row of ``inventory`` its reason, as a number in :data:`ORDER`.

    ``held`` gives the sorted hashes that each kind of holder points to. What nobody
    holds goes if every clock says that it is from before ``before``; and from before
    ``copied_at``, where a database was restored from a copy of then.
    """
    hashes: Hashes = inventory[HASH].to_numpy()
    found = np.full(len(hashes), NOBODYS, np.int8)
    free: slice | Numbers = slice(None)  # at first all of them, which are not copied
    for reason in HOLDERS:
        if len(held.get(reason, ())):
            theirs = present(hashes[free], held[reason])
            found[free] = np.where(theirs, np.int8(ORDER.index(reason)), NOBODYS)
            free = np.flatnonzero(found == NOBODYS)
    free = np.flatnonzero(found == NOBODYS)
    nobodys = pa.array(found == NOBODYS)
    dropped = present(hashes[free], held.get(Reason.DROPPED, np.zeros(0, np.uint64)))
    found[free[dropped]] = ORDER.index(Reason.DROPPED)  # told of what is not young
    rows = inventory.select(["folder", "name", "modified_at"]).filter(nobodys)
    names, times = rows["name"].combine_chunks(), rows["modified_at"].combine_chunks()
    if copied_at is not None:
        found[free[young(names, times, copied_at, layout)]] = ORDER.index(Reason.SINCE_COPY)
    found[free[young(names, times, before, layout)]] = ORDER.index(Reason.YOUNG)
    found[free[~layout.ours(rows["folder"].combine_chunks(), names)]] = ORDER.index(Reason.FOREIGN)
    return found


def young(names: pa.Array, modified_at: pa.Array, before: datetime, layout: Layout) -> Flags:
    """Which objects are not from before ``before`` by the store's clock, or by the time in their name.

    An object without a time is young.
    """
    limit = microseconds(before)
    stored = pc.fill_null(modified_at.cast(pa.int64()), limit).to_numpy(zero_copy_only=False)
    by_store: Flags = stored >= limit
    by_name: Flags = layout.seconds(names) * 1_000_000 >= limit
    return by_store | by_name
