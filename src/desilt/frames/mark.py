"""The verdict on every object of a bucket: held by somebody, young by some clock, or garbage."""

from collections.abc import Mapping
from datetime import datetime

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from numpy.lib.stride_tricks import sliding_window_view

from desilt.domain.reason import Reason
from desilt.domain.times import microseconds
from desilt.frames.buckets import HASH, present
from desilt.frames.hashing import Hashes, layout

ORDER = list(Reason)
HOLDERS = (Reason.COMMITTED, Reason.STAGED, Reason.TICKET, Reason.HELD, Reason.RESTORED)  # the first one is told
DIGITS = np.full(256, -1, np.int8)
DIGITS[np.frombuffer(b"0123456789abcdefghijklmnopqrstuv", np.uint8)] = np.arange(32)
UID = "[0-9a-v]{20}"
FOLDER = f"^branches/{UID}/[0-9]{{14}}_{UID}/$"
PARTIAL = r"^[0-9a-f]{16}\.partial$"  # what a put leaves behind that was killed
UID_CHARACTERS = 20
TIME_CHARACTERS = 7  # of a uid: 35 bits, the first 32 of which are seconds


def reasons(
    inventory: pa.Table, held: Mapping[Reason, Hashes], *, before: datetime, copied_at: datetime | None = None
) -> npt.NDArray[np.int8]:
    """For each row of ``inventory`` its reason, as a number in :data:`ORDER`.

    ``held`` gives the sorted hashes that each kind of holder points to. What nobody
    holds goes if every clock says that it is from before ``before``; and from before
    ``copied_at``, where a database was restored from a copy of then.
    """
    hashes: Hashes = inventory[HASH].to_numpy()
    found = np.full(len(hashes), ORDER.index(Reason.UNREFERENCED), np.int8)
    free = np.arange(len(hashes))
    for reason in HOLDERS:
        theirs = present(hashes[free], held.get(reason, np.zeros(0, np.uint64)))
        found[free[theirs]] = ORDER.index(reason)
        free = free[~theirs]
    dropped = present(hashes[free], held.get(Reason.DROPPED, np.zeros(0, np.uint64)))
    found[free[dropped]] = ORDER.index(Reason.DROPPED)  # told of what is not young
    rows = inventory.take(pa.array(free))
    names, times = rows["name"].combine_chunks(), rows["modified_at"].combine_chunks()
    if copied_at is not None:
        found[free[young(names, times, copied_at)]] = ORDER.index(Reason.SINCE_COPY)
    found[free[young(names, times, before)]] = ORDER.index(Reason.YOUNG)
    found[free[foreign(rows["folder"].combine_chunks(), names)]] = ORDER.index(Reason.FOREIGN)
    return found


def foreign(folders: pa.DictionaryArray, names: pa.Array) -> npt.NDArray[np.bool_]:
    """Which objects are not where, or not called as, desilt puts them: another lake inside this one, say."""
    placed = pc.match_substring_regex(folders.dictionary, FOLDER).to_numpy(zero_copy_only=False)
    ours: npt.NDArray[np.bool_] = name_seconds(names) >= 0  # called by a uid
    odd = np.flatnonzero(~ours)
    ours[odd] = pc.match_substring_regex(names.take(pa.array(odd)), PARTIAL).to_numpy(zero_copy_only=False)
    ours &= placed[folders.indices.to_numpy()]
    return ~ours


def young(names: pa.Array, modified_at: pa.Array, before: datetime) -> npt.NDArray[np.bool_]:
    """Which objects are not from before ``before`` by the store's clock, or by the time in their name.

    An object without a time is young.
    """
    limit = microseconds(before)
    stored = pc.fill_null(modified_at.cast(pa.int64()), limit).to_numpy(zero_copy_only=False)
    by_store: npt.NDArray[np.bool_] = stored >= limit
    by_name: npt.NDArray[np.bool_] = name_seconds(names) * 1_000_000 >= limit
    return by_store | by_name


def name_seconds(names: pa.Array) -> npt.NDArray[np.int64]:
    """The second in which each object's name was made; -1 for a name that is no uid and carries no time."""
    seconds = np.full(len(names), -1, np.int64)
    data, offsets = layout(names)
    rows = np.flatnonzero(np.diff(offsets) == UID_CHARACTERS)
    if len(rows):
        digits = DIGITS[sliding_window_view(data, UID_CHARACTERS)[offsets[rows]]]
        uids = (digits >= 0).all(axis=1)
        value = np.zeros(np.count_nonzero(uids), np.int64)
        for column in range(TIME_CHARACTERS):
            value = value * 32 + digits[uids, column]
        seconds[rows[uids]] = value >> 3
    return seconds
