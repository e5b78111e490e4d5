"""Which objects lie where nothing new appears: in partitions closed so long ago that no ticket of theirs is left."""

from collections.abc import Mapping

import pyarrow as pa

from desilt.frames.folders import Flags, by_folder

PARTS = 4  # of a folder: branches, branch, partition, and nothing after the last slash


def settled(rows: pa.Table, boundaries: Mapping[str, str]) -> Flags:
    """Which INVENTORY rows lie in a partition that its branch's boundary sorts before."""

    def is_settled(folder: str) -> bool:
        parts = folder.split("/")
        return len(parts) == PARTS and parts[1] in boundaries and parts[2] >= boundaries[parts[1]]

    return by_folder(rows, is_settled)


def below(rows: pa.Table, prefix: str) -> Flags:
    """Which INVENTORY rows have addresses that begin with ``prefix``, a folder."""
    return by_folder(rows, lambda folder: folder.startswith(prefix))
