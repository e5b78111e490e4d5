"""Addresses by the folders they lie in: a folder is looked at once, however many objects it has."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from desilt.columns.arrays import Flags, Numbers
from desilt.columns.hashing import layout
from desilt.columns.layout import Layout

SLASH = ord("/")


def divided(addresses: pa.Array) -> tuple[pa.DictionaryArray, pa.Array]:
    """Addresses up to their last slash, and with it; and the rest."""
    return _alike(addresses) or (
        pc.replace_substring_regex(addresses, "[^/]*$", "").dictionary_encode(),
        pc.replace_substring_regex(addresses, "^.*/", ""),
    )


def _alike(addresses: pa.Array) -> tuple[pa.DictionaryArray, pa.Array] | None:
    """The same where all names are as long as the first one, as they are in a lake: then nobody looks for slashes."""
    if not len(addresses) or addresses.null_count:
        return None
    length = len(addresses[0].as_py().encode().rpartition(b"/")[2])
    raw = addresses.cast(pa.binary())
    data, offsets = layout(raw)
    if not length or np.diff(offsets).min() <= length or not (data[offsets[1:] - length - 1] == SLASH).all():
        return None
    names = pc.binary_slice(raw, -length)
    if (layout(names)[0] == SLASH).any():
        return None
    return pc.binary_slice(raw, 0, -length).cast(pa.string()).dictionary_encode(), names.cast(pa.string())


def by_folder(rows: pa.Table, question: Callable[[str], bool]) -> Flags:
    """The answer for every row."""
    if not rows.num_rows:
        return np.zeros(0, np.bool_)
    folders = rows["folder"].combine_chunks()
    answers = np.array([question(folder) for folder in folders.dictionary.to_pylist()], np.bool_)
    flags: Flags = answers[folders.indices.to_numpy()]
    return flags


@dataclass(frozen=True, slots=True)
class Uploaded:
    """What was uploaded to each of some groups ("" is none)."""

    groups: list[str]
    objects: list[int]
    bytes: list[int]


def totals(folders: pa.DictionaryArray, sizes: npt.NDArray[np.int64], of: Layout) -> Uploaded:
    """The groups of folders that something lies in, and what."""
    groups = of.groups(folders.dictionary).dictionary_encode()
    places = groups.indices.to_numpy()[folders.indices.to_numpy()]
    there, objects, volume = summed(places, sizes)
    return Uploaded(groups.dictionary.take(pa.array(there)).to_pylist(), objects.tolist(), volume.tolist())


def summed(places: npt.NDArray[np.integer], sizes: npt.NDArray[np.int64]) -> tuple[Numbers, Numbers, Numbers]:
    """Each place that there is, how often, and the sizes there, added up."""
    counts = np.bincount(places)
    volume = np.zeros(len(counts), np.int64)
    np.add.at(volume, places, sizes)
    there = np.flatnonzero(counts)
    return there, counts[there], volume[there]
