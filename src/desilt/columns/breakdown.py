"""What goes, summed up for whoever looks at a plan: by age, and by what it was uploaded to."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from desilt.columns.layout import Layout
from desilt.domain.times import microseconds

DAY = timedelta(days=1)
AGES = {
    "under a day": DAY,
    "a day to a week": 7 * DAY,
    "a week to a month": 30 * DAY,
    "a month to three": 90 * DAY,
    "three months to a year": 365 * DAY,
    "a year and more": None,
}
"""Ages as people think of them, the youngest first, and where each ends."""
LIMITS = np.array([age // timedelta(microseconds=1) for age in AGES.values() if age is not None], np.int64)


@dataclass(frozen=True, slots=True)
class Breakdown:
    """Objects and bytes side by side."""

    age_objects: Counter[str] = field(default_factory=Counter)  # of AGES
    age_bytes: Counter[str] = field(default_factory=Counter)
    group_objects: Counter[str] = field(default_factory=Counter)  # by the uid of a branch; "" of none
    group_bytes: Counter[str] = field(default_factory=Counter)

    def __add__(self, other: "Breakdown") -> "Breakdown":
        return Breakdown(
            self.age_objects + other.age_objects,
            self.age_bytes + other.age_bytes,
            self.group_objects + other.group_objects,
            self.group_bytes + other.group_bytes,
        )


def breakdown(rows: pa.Table, layout: Layout, now: datetime) -> Breakdown:
    """Rows of a PLAN, summed up."""
    found = Breakdown()
    sizes = rows["size_bytes"].to_numpy()
    names = list(AGES)
    for place, objects, size in summed(ages(rows["modified_at"], now), sizes):
        found.age_objects[names[place]] += objects
        found.age_bytes[names[place]] += size
    groups = layout.groups(rows["address"].combine_chunks()).dictionary_encode()
    uids = groups.dictionary.to_pylist()
    for place, objects, size in summed(groups.indices.to_numpy(), sizes):
        found.group_objects[uids[place]] += objects
        found.group_bytes[uids[place]] += size
    return found


def ages(times: pa.ChunkedArray, now: datetime) -> npt.NDArray[np.int64]:
    """For each moment its place among :data:`AGES`; what has none is young."""
    since = microseconds(now) - times.cast(pa.int64()).fill_null(microseconds(now)).to_numpy()
    places: npt.NDArray[np.int64] = np.searchsorted(LIMITS, since, side="right")
    return places


def summed(places: npt.NDArray[np.integer], sizes: npt.NDArray[np.int64]) -> Iterator[tuple[int, int, int]]:
    """Each place that there is, how often, and the sizes there, added up."""
    counts = np.bincount(places)
    totals = np.zeros(len(counts), np.int64)
    np.add.at(totals, places, sizes)
    for place in np.flatnonzero(counts).tolist():
        yield place, int(counts[place]), int(totals[place])
