"""The rows of one bucket, from all files of the range cache, in the order of their hashes.

What points to one object is a run of neighbours, whatever files it comes from. Numbers
are read of all rows; texts of those files alone in which somebody asks for one.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from desilt.columns.arrays import Numbers
from desilt.columns.buckets import HASH, Bucket
from desilt.columns.files import NOBODY, Files, HeldFile
from desilt.columns.hashing import Hashes
from desilt.columns.runs import runs

NUMBERS = [HASH, "owner", "size_bytes"]


class Merged:
    """Entries whose owners have a label; those of files that come first come first among their like."""

    def __init__(
        self, files: Files, held: Sequence[HeldFile], labels: Sequence[npt.NDArray[np.integer]], bucket: Bucket
    ) -> None:
        """``labels`` are for each file those of its owners; below 0, nobody asks for it."""
        self._files, self._held, self._bucket = files, held, bucket
        self._texts: dict[tuple[int, str], pa.ChunkedArray] = {}
        tables = [files.rows(one, bucket, NUMBERS) for one in held]
        self._ends = np.cumsum([0, *(table.num_rows for table in tables)])
        hashes, sizes = _joined(tables, HASH, np.uint64), _joined(tables, "size_bytes", np.int64)
        self._owners = _joined(tables, "owner", np.int32)
        of = np.empty(len(hashes), np.int64)
        for mine, start, end in zip(labels, self._ends[:-1], self._ends[1:], strict=True):
            of[start:end] = mine[self._owners[start:end]]
        order = np.argsort(hashes, kind="stable")  # of sorted runs, which it merges
        order = order if (of > NOBODY).all() else order[of[order] > NOBODY]
        self._places: Numbers = order  # of each row among those of all files
        self.hashes: Hashes = hashes[order]
        self.sizes: Numbers = sizes[order]
        self.labels: Numbers = of[order]
        self.runs = runs(self.hashes)
        self.known: Hashes = self.hashes[self.runs.starts]

    def texts(self, rows: Numbers, columns: Sequence[str]) -> pa.Table:
        """Other columns of some rows (one at least), in the order that they are asked for."""
        wanted, places = self.read(rows, columns), self._places[rows]
        if len(wanted) < len(self._held):  # places among those of the files that are read
            passed = np.diff(self._ends)
            passed[wanted] = 0
            places = places - np.cumsum(passed)[np.searchsorted(self._ends, places, side="right") - 1]
        found = [
            pa.chunked_array([chunk for number in wanted for chunk in self._texts[number, name].chunks])
            for name in columns
        ]
        return pa.table(found, names=list(columns)).take(pa.array(places)).combine_chunks()

    def read(self, rows: Numbers, columns: Sequence[str]) -> list[int]:
        """The files that some rows are in, which have been read by then: columns that are wanted in turn, together."""
        asked = np.zeros(self._ends[-1], np.bool_)
        asked[self._places[rows]] = True
        wanted = [number for number, end in enumerate(self._ends[1:]) if asked[self._ends[number] : end].any()]
        for number in wanted:
            new = [name for name in columns if (number, name) not in self._texts]
            if new:
                table = self._files.rows(self._held[number], self._bucket, new)
                self._texts |= {(number, name): table[name] for name in new}
        return wanted

    def owners(self, rows: Numbers) -> set[tuple[int, int]]:
        """Whose some rows are: the number of a file, and of an owner in it."""
        places = self._places[rows]
        files = np.searchsorted(self._ends, places, side="right") - 1
        return set(zip(files.tolist(), self._owners[places].tolist(), strict=True))


def _joined(tables: Sequence[pa.Table], name: str, kind: npt.DTypeLike) -> npt.NDArray[Any]:
    return np.concatenate([np.zeros(0, kind), *(chunk.to_numpy() for table in tables for chunk in table[name].chunks)])
