"""What goes, summed up for whoever looks at a plan: by age, and by what it was uploaded to."""

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from desilt.columns.folders import Uploaded, divided, summed, totals
from desilt.columns.layout import Layout
from desilt.columns.together import together
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
            together(self.age_objects, other.age_objects),
            together(self.age_bytes, other.age_bytes),
            together(self.group_objects, other.group_objects),
            together(self.group_bytes, other.group_bytes),
        )


def breakdown(rows: pa.Table, layout: Layout, now: datetime, uploaded: Uploaded | None = None) -> Breakdown:
    """Rows of a PLAN, summed up; ``uploaded`` is what they come to by group, where that is known."""
    sizes, names = rows["size_bytes"].to_numpy(), list(AGES)
    there, objects, volume = summed(ages(rows["modified_at"], now), sizes)
    by_age = [names[place] for place in there.tolist()]
    if uploaded is None:
        uploaded = totals(divided(rows["address"].combine_chunks())[0], sizes, layout)
    return Breakdown(
        Counter(dict(zip(by_age, objects.tolist(), strict=True))),
        Counter(dict(zip(by_age, volume.tolist(), strict=True))),
        Counter(dict(zip(uploaded.groups, uploaded.objects, strict=True))),
        Counter(dict(zip(uploaded.groups, uploaded.bytes, strict=True))),
    )


def ages(times: pa.ChunkedArray, now: datetime) -> npt.NDArray[np.int64]:
    """For each moment its place among :data:`AGES`; what has none is young."""
    since = microseconds(now) - times.cast(pa.int64()).fill_null(microseconds(now)).to_numpy()
    places: npt.NDArray[np.int64] = np.searchsorted(LIMITS, since, side="right")
    return places
