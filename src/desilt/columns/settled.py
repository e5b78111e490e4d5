"""Which objects lie where nothing new appears: in folders closed so long ago that no upload to them is left."""

from collections.abc import Mapping

import pyarrow as pa

from desilt.columns.arrays import Flags
from desilt.columns.folders import by_folder
from desilt.columns.layout import Layout


def settled(rows: pa.Table, boundaries: Mapping[str, str], layout: Layout) -> Flags:
    """Which INVENTORY rows lie past the boundary of their group."""
    return by_folder(rows, lambda folder: layout.settled(folder, boundaries))


def below(rows: pa.Table, prefix: str) -> Flags:
    """Which INVENTORY rows have addresses that begin with ``prefix``, a folder."""
    return by_folder(rows, lambda folder: folder.startswith(prefix))
