"""Which objects lie where nothing new appears: in partitions closed so long ago that no ticket of theirs is left."""

from collections.abc import Callable, Iterator, Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Flags = npt.NDArray[np.bool_]
PARTS = 4  # of a folder: branches, branch, partition, and nothing after the last slash


def settled(rows: pa.Table, boundaries: Mapping[str, str]) -> Flags:
    """Which INVENTORY rows lie in a partition that its branch's boundary sorts before."""

    def is_settled(folder: str) -> bool:
        parts = folder.split("/")
        return len(parts) == PARTS and parts[1] in boundaries and parts[2] >= boundaries[parts[1]]

    return _by_folder(rows, is_settled)


def below(rows: pa.Table, prefix: str) -> Flags:
    """Which INVENTORY rows have addresses that begin with ``prefix``, a folder."""
    return _by_folder(rows, lambda folder: folder.startswith(prefix))


def branches_of(rows: pa.Table, chosen: Flags) -> Iterator[tuple[str, npt.NDArray[np.int64]]]:
    """Of each branch, the places of its ``chosen`` rows."""
    folders = rows["folder"].combine_chunks()
    indices = folders.indices.to_numpy(zero_copy_only=False)
    names = [folder.split("/")[1] if "/" in folder else "" for folder in folders.dictionary.to_pylist()]
    places = np.flatnonzero(chosen)
    uids, inverse = np.unique(np.array(names or [""]), return_inverse=True)
    of_rows = inverse[indices[places]] if len(places) else np.zeros(0, np.int64)
    for number in np.unique(of_rows).tolist():
        yield str(uids[number]), places[of_rows == number]


def _by_folder(rows: pa.Table, question: Callable[[str], bool]) -> Flags:
    """The answer for every row, asked once for each folder."""
    if not rows.num_rows:
        return np.zeros(0, np.bool_)
    folders = rows["folder"].combine_chunks()
    answers = np.array([question(folder) for folder in folders.dictionary.to_pylist()], np.bool_)
    flags: Flags = answers[folders.indices.to_numpy(zero_copy_only=False)]
    return flags
