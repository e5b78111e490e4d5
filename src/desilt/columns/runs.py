"""Rows in the order of what they are about: neighbours that are about the same thing, an object say, are a *run*.

What is asked of each thing is asked of its run, in one pass over all rows: no row is
looked up, and no table of things is kept beside them.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from desilt.columns.arrays import Flags, Numbers


@dataclass(frozen=True, slots=True)
class Runs:
    """So many rows in so many runs, none of them empty."""

    starts: Numbers
    rows: int

    @property
    def lengths(self) -> Numbers:
        return np.diff(self.starts, append=self.rows)

    def any(self, flags: Flags) -> Flags:
        """For each run whether a row of it is flagged."""
        found: Flags = np.logical_or.reduceat(flags, self.starts)
        return found

    def most(self, numbers: npt.NDArray[np.integer]) -> npt.NDArray[np.integer]:
        """The largest number of each run."""
        return np.maximum.reduceat(numbers, self.starts)

    def rows_of(self, flags: Flags) -> Flags:
        """For each row whether its run is flagged."""
        return np.repeat(flags, self.lengths)

    def first(self, flags: Flags) -> Numbers:
        """The first flagged row of each run; of a run without any, its first row."""
        found = self.starts.copy()
        rows = np.flatnonzero(flags)[::-1]  # of several, the one that is written last stays
        found[np.repeat(np.arange(len(found)), self.lengths)[rows]] = rows
        return found

    def within(self, rows: Flags) -> "Runs":
        """Of so many of the rows, in their order; runs of which none is left are left out."""
        left = np.add.reduceat(rows, self.starts, dtype=np.int64)
        ends = np.cumsum(left[left > 0])
        return Runs(np.concatenate([[0], ends[:-1]]) if len(ends) else ends, int(left.sum()))


def runs(sorted_values: npt.NDArray[np.generic]) -> Runs:
    """Equal neighbours."""
    return Runs(np.flatnonzero(changed(sorted_values)), len(sorted_values))


def changed(values: npt.NDArray[np.generic]) -> Flags:
    """Which values differ from the one before; the first does."""
    found = np.ones(len(values), np.bool_)
    np.not_equal(values[1:], values[:-1], out=found[1:])
    return found


def changed_texts(texts: pa.Array) -> Flags:
    """The same of texts; one that is missing is like no other."""
    found = np.ones(len(texts), np.bool_)
    if len(texts):
        found[1:] = pc.fill_null(pc.not_equal(texts[1:], texts[:-1]), True).to_numpy(zero_copy_only=False)
    return found


def distinct(hashes: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Each once, in order; ``numpy.unique`` without places builds a table of them, which takes ten times as long."""
    found = np.sort(hashes, kind="stable")  # of sorted runs, which it merges
    return found[changed(found)]


def distinct_texts(texts: pa.Array, of: Runs) -> pa.ListArray:
    """For each run its distinct texts, in their order."""
    new = changed_texts(texts)
    new[of.starts] = True
    if of.rows > len(of.starts):
        texts, of = (texts, of) if new.all() else (texts.filter(pa.array(new)), of.within(new))
    if of.rows > len(of.starts):  # several in a run, which may come again after others
        run = np.repeat(np.arange(len(of.starts)), of.lengths)
        several = np.flatnonzero(of.rows_of(of.lengths > 1))
        some = pa.table({"run": run[several], "text": texts.take(pa.array(several))})
        several = several[pc.sort_indices(some, [("run", "ascending"), ("text", "ascending")]).to_numpy()]
        again = ~(changed_texts(texts.take(pa.array(several))) | changed(run[several]))
        rows = np.concatenate([np.flatnonzero(of.rows_of(of.lengths == 1)), several[~again]])
        rows = rows[np.argsort(run[rows], kind="stable")]
        texts, of = texts.take(pa.array(rows)), runs(run[rows])
    return pa.ListArray.from_arrays(pa.array(np.append(of.starts, of.rows), pa.int32()), texts)
