"""What arrays are called in one snapshot: ids of nodes by the paths that people write, and the other way round."""

from dataclasses import dataclass

from desilt.errors import UnknownAsset
from desilt.icechunk.format.buffer import FlatTable, root
from desilt.icechunk.format.container import AssetKind, blaming, fetched
from desilt.icechunk.format.ids import ID_BYTES, NODE_BYTES, name_of
from desilt.icechunk.format.states import ARRAY, MANIFESTS, NODE_DATA, NODE_TYPE, NODES, OBJECT_ID
from desilt.icechunk.layout import SNAPSHOTS
from desilt.objects.store import ObjectStore
from desilt.sstable.varint import Malformed

ID, PATH = 0, 1
INDEX = "c"  # what comes between an array and an index, as zarr has it


@dataclass(frozen=True, slots=True)
class Arrays:
    """Of one snapshot, by the name of the node's id; paths are without the slash that they begin with."""

    paths: dict[str, str]
    manifests: dict[str, list[str]]  # that have chunks of it, by node

    @property
    def nodes(self) -> dict[str, str]:
        return {path: node for node, path in self.paths.items()}

    def around(self, path: str) -> str | None:
        """The path of the array that has a chunk at ``path``; None if none has."""
        parts = path.split("/")
        ends = (at for at, part in reversed([*enumerate(parts)]) if part == INDEX)
        return next((array for at in ends if (array := "/".join(parts[:at])) in self.nodes), None)

    def called(self, path: str) -> str:
        """What people call the chunk that a manifest has at ``path``; the path as it is, of a node that is unknown."""
        node, divided, rest = path.partition("/")
        return f"{self.paths.get(node, node)}{divided}{rest}".removeprefix("/")


def fetch(store: ObjectStore, snapshot: str) -> Arrays:
    """Those of the snapshot of that name."""
    asset = fetched(store, f"{SNAPSHOTS}{snapshot}", AssetKind.SNAPSHOT)
    with blaming(asset.name):
        table = root(asset.content)
        arrays = [one for one in table.tables(NODES) if one.number(NODE_TYPE, 1) == ARRAY]
        paths = {name_of(one.struct(ID, NODE_BYTES)): one.text(PATH) for one in arrays}
        if len(set(paths.values())) != len(arrays):
            raise Malformed("two arrays have one path, or one id")
        if any(not path.startswith("/") for path in paths.values()):
            raise UnknownAsset(asset.name, "an array has a path that does not begin with a slash")
        manifests = {name_of(one.struct(ID, NODE_BYTES)): _manifests(one.table(NODE_DATA)) for one in arrays}
        return Arrays({node: path.strip("/") for node, path in paths.items()}, manifests)


def _manifests(array: FlatTable) -> list[str]:
    if not array.has(MANIFESTS):
        return []
    return sorted({name_of(one.struct(OBJECT_ID, ID_BYTES)) for one in array.tables(MANIFESTS)})
