"""Transaction logs: what one commit changed, which diffs and rebases ask for. Nothing here refers to a chunk's object.

A log has the id of its snapshot. Which logs are still needed is said elsewhere: by the snapshots there are, and in
format 2 by what each of them took over from those that were expired.
"""

from desilt.icechunk.format.buffer import root
from desilt.icechunk.format.container import Asset, blaming
from desilt.icechunk.format.ids import ID_BYTES, name_of
from desilt.sstable.varint import Malformed


def check(asset: Asset, snapshot: str) -> None:
    """That this is the log of ``snapshot``."""
    with blaming(asset.name):
        if (found := name_of(root(asset.content).struct(0, ID_BYTES))) != snapshot:
            raise Malformed(f"it is the log of {found}, under another name")
