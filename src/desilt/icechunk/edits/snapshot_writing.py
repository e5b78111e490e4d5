"""A snapshot file of format 1 with another parent: twelve bytes, and all else as it was."""

from desilt.errors import Conflict, NotReadBack
from desilt.icechunk.format import states
from desilt.icechunk.format.buffer import root
from desilt.icechunk.format.container import AssetKind, opened, reclosed
from desilt.icechunk.format.ids import ID_BYTES, bytes_of
from desilt.icechunk.layout import SNAPSHOTS


def with_parent(data: bytes, snapshot: str, old: str, new: str) -> bytes:
    """The file of ``snapshot`` with the parent ``new``; :class:`Conflict` if it has another than ``old``."""
    name = f"{SNAPSHOTS}{snapshot}"
    asset = opened(data, AssetKind.SNAPSHOT, name)
    was = states.read(asset, snapshot)
    if (asset.format, was.parent) != (1, old):
        raise Conflict(f"{name} has the parent {was.parent} by now, and had {old}; plan again")
    table = root(asset.content)
    at = table.at + table.fields[states.PARENT]
    content = asset.content[:at] + bytes_of(new) + asset.content[at + ID_BYTES :]
    body = reclosed(data, content)
    again = opened(body, AssetKind.SNAPSHOT, name)
    changed = states.read(again, snapshot)
    if again.content != content or changed.parent != new or changed.manifests != was.manifests:
        raise NotReadBack(name)
    return body
