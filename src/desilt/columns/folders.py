"""INVENTORY rows by the folders they lie in: a folder is looked at once, however many objects it has."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from desilt.columns.layout import Layout

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Total:
    """What there is of a folder."""

    folder: str
    group: str  # what it was uploaded to; "" where there is none
    objects: int
    bytes: int


def by_folder(rows: pa.Table, question: Callable[[str], bool]) -> Flags:
    """The answer for every row."""
    if not rows.num_rows:
        return np.zeros(0, np.bool_)
    folders = rows["folder"].combine_chunks()
    answers = np.array([question(folder) for folder in folders.dictionary.to_pylist()], np.bool_)
    flags: Flags = answers[folders.indices.to_numpy()]
    return flags


def totals(rows: pa.Table, layout: Layout) -> Iterator[Total]:
    """What there is of each folder."""
    if not rows.num_rows:
        return
    folders = rows["folder"].combine_chunks()
    places = folders.indices.to_numpy()
    objects = np.bincount(places, minlength=len(folders.dictionary))
    sizes = np.zeros(len(objects), np.int64)
    np.add.at(sizes, places, rows["size_bytes"].to_numpy())
    for folder, count, size in zip(folders.dictionary.to_pylist(), objects.tolist(), sizes.tolist(), strict=True):
        if count:
            yield Total(folder, layout.group_of(folder), count, size)
