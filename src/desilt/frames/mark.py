"""The verdict on every object of a bucket: held by somebody, young by some clock, or garbage."""

from collections.abc import Mapping
from datetime import datetime

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from desilt.domain.reason import Reason
from desilt.domain.times import microseconds
from desilt.frames.buckets import HASH, present
from desilt.frames.hashing import Hashes

ORDER = list(Reason)
DIGITS = np.full(256, -1, np.int64)
DIGITS[np.frombuffer(b"0123456789abcdefghijklmnopqrstuv", np.uint8)] = np.arange(32)
UID = "[0-9a-v]{20}"
FOLDER = f"^branches/{UID}/[0-9]{{14}}_{UID}/$"
NAME = rf"^({UID}|[0-9a-f]{{16}}\.partial)$"  # the latter: what a put leaves behind that was killed
TIME_CHARACTERS = 7  # of a uid: 35 bits, the first 32 of which are seconds


def reasons(inventory: pa.Table, held: Mapping[Reason, Hashes], *, before: datetime) -> npt.NDArray[np.int64]:
    """For each row of ``inventory`` (sorted by hash) its reason, as a number in :data:`ORDER`.

    ``held`` gives the sorted hashes that each kind of holder points to. What nobody
    holds goes if every clock says that it is from before ``before``.
    """
    hashes: Hashes = inventory[HASH].to_numpy()
    found = np.full(len(hashes), ORDER.index(Reason.UNREFERENCED), np.int64)
    for reason in (Reason.RESTORED, Reason.TICKET, Reason.STAGED, Reason.COMMITTED):  # a later one overrides
        found[present(hashes, held.get(reason, np.zeros(0, np.uint64)))] = ORDER.index(reason)
    free = np.flatnonzero(found == ORDER.index(Reason.UNREFERENCED))
    rows = inventory.take(pa.array(free))
    names = rows["name"].combine_chunks()
    found[free[young(names, rows["modified_at"].combine_chunks(), before)]] = ORDER.index(Reason.YOUNG)
    found[free[foreign(rows["folder"].combine_chunks(), names)]] = ORDER.index(Reason.FOREIGN)
    return found


def foreign(folders: pa.Array, names: pa.Array) -> npt.NDArray[np.bool_]:
    """Which objects are not where, or not called as, desilt puts them: another lake inside this one, say."""
    ours = pc.and_(pc.match_substring_regex(folders.cast(pa.string()), FOLDER), pc.match_substring_regex(names, NAME))
    result: npt.NDArray[np.bool_] = ~ours.to_numpy(zero_copy_only=False)
    return result


def young(names: pa.Array, modified_at: pa.Array, before: datetime) -> npt.NDArray[np.bool_]:
    """Which objects are not from before ``before`` by the store's clock, or by the time in their name.

    An object without a time is young.
    """
    limit = microseconds(before)
    stored = pc.fill_null(modified_at.cast(pa.int64()), limit).to_numpy(zero_copy_only=False)
    named = name_seconds(names) * 1_000_000
    by_store: npt.NDArray[np.bool_] = stored >= limit
    by_name: npt.NDArray[np.bool_] = named >= limit
    return by_store | by_name


def name_seconds(names: pa.Array) -> npt.NDArray[np.int64]:
    """The second in which each object's name was made; -1 for a name that carries no time."""
    timed = pc.match_substring_regex(names, f"^{UID}$")
    seconds = np.full(len(names), -1, np.int64)
    rows = np.flatnonzero(timed.to_numpy(zero_copy_only=False))
    if len(rows):
        heads = pc.utf8_slice_codeunits(names.take(pa.array(rows)), 0, TIME_CHARACTERS)
        text = np.frombuffer("".join(heads.to_pylist()).encode(), np.uint8).reshape(-1, TIME_CHARACTERS)
        value = np.zeros(len(rows), np.int64)
        for column in range(TIME_CHARACTERS):
            value = value * 32 + DIGITS[text[:, column]]
        seconds[rows] = value >> 3
    return seconds
