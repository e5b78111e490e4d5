"""Many values of a flatbuffer at once: columns of positions in, columns of values out.

Every position is looked at before it is read: inside of the contents, and where a number of its width may lie.
What is read never adds up to more than the contents, however often damaged bytes name one place.

The contents of several files may lie one behind the other, and be read at once. Each then is a world of its own: what
leads out of a file is refused, though there be another one, and so is what one alone has no room for.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from desilt.sstable.varint import Malformed

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.uint64]
Flags = npt.NDArray[np.bool_]

WORD = 8  # bytes
SLOTS = 16  # more fields than any table has
FEW = 8
WIDTHS = {2: np.uint16, 4: np.uint32, 8: np.uint64}


class Strides:
    """The contents of some files, each beginning where a number of any width may."""

    def __init__(self, *files: bytes) -> None:
        self.bytes: Bytes = np.frombuffer(b"".join(one + bytes(-len(one) % WORD) for one in files), np.uint8)
        self._views = {width: self.bytes.view(kind) for width, kind in WIDTHS.items()}
        sizes = np.array([len(one) for one in files], np.int64)
        words = -(-sizes // WORD)
        self.begins: Ints = (np.cumsum(words) - words) * WORD
        self._ends: Ints = self.begins + sizes
        self._last = int(self._ends.max(initial=0))
        self._whose = np.repeat(np.arange(len(files)), words) if len(files) > 1 else None  # by word

    def numbers(self, at: Ints, width: int) -> Numbers:
        """Unsigned, of two, four or eight bytes."""
        self.check(at, width)
        if (at & (width - 1)).any():
            raise Malformed("a number lies where none can")
        found: Numbers = self._views[width][at >> (width.bit_length() - 1)].astype(np.uint64)
        return found

    def ints(self, at: Ints, width: int) -> Ints:
        """The same, of two or four bytes."""
        return self.numbers(at, width).astype(np.int64)

    def structs(self, at: Ints, width: int) -> Bytes:
        """So many bytes from each of ``at``: rows of a matrix."""
        self.check(at, width)
        self._check_total(at, np.ones(len(at), np.int64), width)
        rows: Bytes = np.lib.stride_tricks.sliding_window_view(self.bytes, width)[at] if len(at) else _no_rows(width)
        return rows

    def targets(self, at: Ints) -> Ints:
        """Where the offsets at ``at`` lead."""
        way = self.ints(at, 4)
        there = at + way
        if (way < 4).any():
            raise Malformed("an offset leads nowhere")
        self.check(there, 4)
        self._check_stays(at, there)
        return there

    def vectors(self, at: Ints, width: int) -> tuple[Ints, Ints]:
        """Of vectors that begin at ``at``: where their elements do, and how many there are."""
        counts = self.ints(at, 4)
        if (at + 4 + counts * width > self._end(at)).any():
            raise Malformed("a vector runs past the end")
        return at + 4, counts

    def spread(self, starts: Ints, counts: Ints, width: int) -> Ints:
        """Where each element of each vector is, one vector after the other."""
        self._check_total(starts, counts, width)
        before = np.cumsum(counts) - counts
        places: Ints = np.repeat(starts - before * width, counts) + np.arange(int(counts.sum())) * width
        return places

    def tables(self, at: Ints) -> "FlatColumn":
        """The tables that begin at ``at``."""
        vtables, which = _distinct(at - self._signed(at))
        lengths, sizes = self.ints(vtables, 2), self.ints(vtables + 2, 2)
        self._check_stays(at, vtables[which])
        if (lengths < 4).any() or (lengths % 2).any() or (vtables + lengths > self._end(vtables)).any():
            raise Malformed("a vtable is longer than there is room")
        if (sizes < 4).any() or (at + sizes[which] > self._end(at)).any():
            raise Malformed("a table is longer than there is room")
        fields = np.zeros((len(vtables), SLOTS), np.int64)
        for slot in range(SLOTS):
            there = lengths >= 6 + 2 * slot
            fields[there, slot] = self.ints(vtables[there] + 4 + 2 * slot, 2)
        return FlatColumn(self, at, which, fields, sizes, int(lengths.max(initial=4)) // 2 - 2)

    def check(self, at: Ints, width: int) -> None:
        """That so many bytes from each of ``at`` lie inside of one file."""
        if not len(at):
            return
        if int(at.min()) < 0 or int(at.max()) + width > self._last:
            raise Malformed("an offset leads out of the contents")
        if self._whose is not None and (at + width > self._end(at)).any():
            raise Malformed("an offset leads out of the contents")

    def _end(self, at: Ints) -> Ints | int:
        """Of the files that ``at`` are in, which must be seen to be inside."""
        return self._last if self._whose is None else self._ends[self._whose[at // WORD]]

    def _check_stays(self, at: Ints, there: Ints) -> None:
        """That each of ``there`` is in the file that leads there; both are inside of one."""
        if self._whose is not None and (self._whose[at // WORD] != self._whose[there // WORD]).any():
            raise Malformed("an offset leads out of the contents")

    def _check_total(self, at: Ints, counts: Ints, width: int) -> None:
        """That no file has more in ``counts`` than there is room, each from one of ``at``, which is inside of it."""
        if self._whose is None:
            full = int(counts.sum()) * width > self._last
        else:
            some = np.flatnonzero(counts)  # a list of nothing may be at the very end
            totals = np.zeros(len(self._ends), np.int64)
            np.add.at(totals, self._whose[at[some] // WORD], counts[some])
            full = bool((totals * width > self._ends - self.begins).any())
        if full:
            raise Malformed("it has more in its lists than there is room")

    def _signed(self, at: Ints) -> Ints:
        return self.numbers(at, 4).astype(np.uint32).view(np.int32).astype(np.int64)


@dataclass(frozen=True, slots=True)
class FlatColumn:
    """Tables of one kind; many of them share a vtable."""

    strides: Strides
    at: Ints
    which: Ints  # of the vtables, for each table
    fields: Ints  # by vtable and slot: where from the beginning of the table, 0 where absent
    sizes: Ints  # by vtable
    slots: int  # as many as the longest vtable has

    def __len__(self) -> int:
        return len(self.at)

    def has(self, slot: int) -> Flags:
        there: Flags = (self.fields[:, slot] != 0)[self.which]
        return there

    def beyond(self, slots: int) -> bool:
        """Whether any has a field past the first ``slots``."""
        return self.slots > SLOTS or bool(self.fields[:, slots:].any())

    def places(self, slot: int, width: int, rows: Ints | None = None) -> Ints:
        """Where a field of ``width`` bytes is; it must be in each of ``rows``, or in all."""
        which = self.which if rows is None else self.which[rows]
        offsets = self.fields[which, slot]
        if (offsets < 4).any() or (offsets + width > self.sizes[which]).any():
            raise Malformed(f"field {slot} is missing, or lies outside of its table")
        places: Ints = (self.at if rows is None else self.at[rows]) + offsets
        return places

    def numbers(self, slot: int, width: int) -> Numbers:
        """Numbers that are 0 where the field is absent."""
        there = np.flatnonzero(self.has(slot))
        found = np.zeros(len(self), np.uint64)
        found[there] = self.strides.numbers(self.places(slot, width, there), width)
        return found

    def vectors(self, slot: int, width: int, rows: Ints | None = None) -> tuple[Ints, Ints]:
        return self.strides.vectors(self.strides.targets(self.places(slot, 4, rows)), width)

    def tables(self, slot: int) -> tuple["FlatColumn", Ints]:
        """The tables in a field that is a vector of them, and how many each has."""
        starts, counts = self.vectors(slot, 4)
        return self.strides.tables(self.strides.targets(self.strides.spread(starts, counts, 4))), counts


def _distinct(values: Ints) -> tuple[Ints, Ints]:
    """Each value once, and which of them each is; quickest where there are few, as with vtables."""
    found: list[int] = []
    which = np.full(len(values), -1, np.int64)
    while len(found) < FEW:
        left = which < 0
        if not left.any():
            return np.array(found, np.int64), which
        found.append(int(values[left.argmax()]))
        which[values == found[-1]] = len(found) - 1
    several, places = np.unique(values, return_inverse=True)
    return several, places


def _no_rows(width: int) -> Bytes:
    return np.zeros((0, width), np.uint8)
