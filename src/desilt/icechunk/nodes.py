"""What arrays are called in one snapshot: ids of nodes by the paths that people write, and the other way round."""

from dataclasses import dataclass

from desilt.errors import UnknownAsset
from desilt.icechunk.buffer import root
from desilt.icechunk.container import AssetKind, blaming, fetched
from desilt.icechunk.ids import NODE_BYTES, name_of
from desilt.icechunk.layout import SNAPSHOTS
from desilt.icechunk.states import ARRAY, NODE_TYPE, NODES
from desilt.objects.store import ObjectStore
from desilt.sstable.varint import Malformed

ID, PATH = 0, 1


@dataclass(frozen=True, slots=True)
class Arrays:
    """Of one snapshot, by the name of the node's id; paths are without the slash that they begin with."""

    paths: dict[str, str]

    @property
    def nodes(self) -> dict[str, str]:
        return {path: node for node, path in self.paths.items()}

    def called(self, path: str) -> str:
        """What people call the chunk that a manifest has at ``path``; the path as it is, of a node that is unknown."""
        node, divided, rest = path.partition("/")
        return f"{self.paths.get(node, node)}{divided}{rest}".removeprefix("/")


def fetch(store: ObjectStore, snapshot: str) -> Arrays:
    """Those of the snapshot of that name."""
    asset = fetched(store, f"{SNAPSHOTS}{snapshot}", AssetKind.SNAPSHOT)
    with blaming(asset.name):
        table = root(asset.content)
        found = {
            name_of(one.struct(ID, NODE_BYTES)): one.text(PATH)
            for one in table.tables(NODES)
            if one.number(NODE_TYPE, 1) == ARRAY
        }
        if len(set(found.values())) != len(found):
            raise Malformed("two arrays have one path")
        if any(not path.startswith("/") for path in found.values()):
            raise UnknownAsset(asset.name, "an array has a path that does not begin with a slash")
        return Arrays({node: path.strip("/") for node, path in found.items()})
