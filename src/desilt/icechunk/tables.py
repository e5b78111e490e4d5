"""Snapshots and manifests as the engine's tables: a snapshot lists manifests, a manifest has entries on chunks.

A manifest names an array by its node's id alone, and what a node is called is in snapshot files: it may be called
otherwise in another snapshot that has the same manifest. So an entry's path is the id and the chunk's index
(``0123456789ABC/c/0/1``), which never changes, and :mod:`desilt.icechunk.format.nodes` says what people call it.
"""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from desilt.cache.ranges import CACHED
from desilt.columns.schemas import MOMENT
from desilt.errors import DamagedAsset, UnknownAsset
from desilt.icechunk.fetching import all_got, each
from desilt.icechunk.format import manifest, states
from desilt.icechunk.format.container import AssetKind, opened
from desilt.icechunk.format.ids import NAME, names_of
from desilt.icechunk.format.manifest import KIND_NAMES, NATIVE, VIRTUAL, ManifestFile
from desilt.icechunk.format.nodes import INDEX
from desilt.icechunk.format.states import ListedManifest, SnapshotFile
from desilt.icechunk.layout import CHUNKS, MANIFESTS, SNAPSHOTS
from desilt.inventory.listing import stored_at
from desilt.objects.store import ObjectStore
from desilt.sstable.values import RangeData

MOST = np.uint64(2**62)  # bytes of an object
FEW = 1_000  # chunks that are asked for one by one


@dataclass(frozen=True, slots=True)
class ManifestDecoder:
    """What manifests refer to among the chunks of the repository; inline ones are no objects of it."""

    folder: str = MANIFESTS

    def entries(self, store: ObjectStore, _prefix: str, some: Sequence[RangeData], first: int) -> pa.Table:
        """Read together where that is sooner; whose fault it is if they cannot be, is told of one read alone."""
        listed = [as_listed(one) for one in some]
        keys = [MANIFESTS + one.id for one in listed]
        assets = [opened(data, AssetKind.MANIFEST, key) for data, key in zip(all_got(store, keys), keys, strict=True)]
        if len(listed) > 1:
            with suppress(DamagedAsset, UnknownAsset):
                together = manifest.counted(listed, assets)
                if not together.compressed:
                    return entries_of(store, together, first)
        alone = [
            entries_of(store, manifest.counted([one], [asset]), first + at)
            for at, (one, asset) in enumerate(zip(listed, assets, strict=True))
        ]
        return pa.concat_tables([CACHED.empty_table(), *alone])


@dataclass(frozen=True, slots=True)
class SnapshotLists:
    """The manifests that snapshots list."""

    store: ObjectStore
    prefix: str = ""
    folder: str = SNAPSHOTS

    def metarange(self, snapshot: str) -> Sequence[RangeData]:
        return listed_by(states.fetch(self.store, snapshot))

    def metaranges(self, snapshots: Sequence[str], /) -> Iterable[Sequence[RangeData]]:
        return each(self.store, self.metarange, snapshots)


def snapshots_in(store: ObjectStore, prefix: str, folder: str) -> SnapshotLists:
    return SnapshotLists(store, prefix, folder)


def listed_by(snapshot: SnapshotFile) -> tuple[RangeData, ...]:
    """A snapshot's manifests; which paths one of them has is not known without opening it."""
    return tuple(RangeData(one.id, b"", b"", one.size, one.references) for one in snapshot.manifests)


def as_listed(one: RangeData) -> ListedManifest:
    return ListedManifest(one.id, one.estimated_size, one.count)


def entries_of(store: ObjectStore, found: ManifestFile, first: int) -> pa.Table:
    """Native references, as CACHED, with owners counted from ``first``; and virtual ones that lead here all the same.

    An object is as large as they tell, and nobody tells when it was made.
    """
    owners = np.repeat(np.arange(first, first + len(found.sizes), dtype=np.int32), found.sizes)
    rows = manifest.references(found, locations=bool((found.kinds == VIRTUAL).any()))
    rows, kinds = rows.append_column("owner", pa.array(owners)), rows["kind"].cast(pa.string())
    native, virtual = (rows.filter(pc.equal(kinds, KIND_NAMES[one])).combine_chunks() for one in (NATIVE, VIRTUAL))
    own = inside(store, column(virtual, "location"))
    addresses = pc.binary_join_element_wise(CHUNKS, names_of(column(native, "chunk")), "")
    rows = pa.concat_tables([native, virtual.filter(own.is_valid())]).combine_chunks()
    return pa.table(
        [
            pa.concat_arrays([addresses, own.drop_null()]),
            column(rows, "owner"),
            paths(rows).cast(pa.binary()),
            sizes(rows, found.name),
            pa.nulls(rows.num_rows, MOMENT),
        ],
        schema=CACHED,
    )


def inside(store: ObjectStore, locations: pa.StringArray) -> pa.StringArray:
    """The chunks of the repository that virtual references lead to; null for those that lead elsewhere.

    One place has many spellings, and an id is nobody else's: whatever ends in that of a chunk that is there means it.
    """
    names = pc.struct_field(pc.extract_regex(locations, rf"(?:^|/)(?P<id>{NAME})$"), "id")
    if not names.null_count < len(names):
        return pa.nulls(len(names), pa.string())
    wanted = pc.unique(names.drop_null())
    if len(wanted) <= FEW:
        there = [name for name in wanted.to_pylist() if stored_at(store, f"{CHUNKS}{name}") is not None]
    else:
        listed = (pc.replace_substring_regex(batch["key"], f"^{CHUNKS}", "") for batch in store.list(CHUNKS))
        there = [name for some in listed for name in some.filter(pc.is_in(some, value_set=wanted)).to_pylist()]
    ours = pc.is_in(names, value_set=pa.array(there, pa.string()))
    return pc.if_else(ours, pc.binary_join_element_wise(CHUNKS, names, ""), pa.scalar(None, pa.string()))


def paths(rows: pa.Table) -> pa.StringArray:
    """What each of some references is of, by the id of its array."""
    nodes, index = names_of(column(rows, "node")), column(rows, "index")
    ranks = pc.list_value_length(index).to_numpy(zero_copy_only=False)
    found, order = [pa.array([], pa.string())], [np.zeros(0, np.int64)]
    for rank in np.unique(ranks):
        mine = np.flatnonzero(ranks == rank)
        taken = pa.array(mine)
        numbers = pc.list_flatten(index.take(taken)).to_numpy(zero_copy_only=False).reshape(len(mine), int(rank))
        texts = [pa.array(numbers[:, at]).cast(pa.string()) for at in range(int(rank))]
        found.append(pc.binary_join_element_wise(nodes.take(taken), INDEX, *texts, "/"))
        order.append(mine)
    return pa.concat_arrays(found).take(pa.array(np.argsort(np.concatenate(order))))


def sizes(rows: pa.Table, name: str) -> pa.Array:
    offsets, lengths = (column(rows, one).to_numpy(zero_copy_only=False) for one in ("offset", "length"))
    if len(rows) and max(offsets.max(), lengths.max()) > MOST:
        raise DamagedAsset(name, "it refers to more bytes than any object has")
    return pa.array((offsets + lengths).astype(np.int64))


def column(rows: pa.Table, name: str) -> pa.Array:
    """One column as one array, of no rows too."""
    return pa.concat_arrays([pa.array([], rows.schema.field(name).type), *rows[name].chunks])
