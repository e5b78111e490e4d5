"""Manifests: which chunks arrays consist of, by the column.

A chunk is *native* (an object of the repository, or a part of one), *inline* (in the manifest itself), or *virtual*
(a part of a file elsewhere, which nobody here removes). A reference that is none of these, or two, is refused:
not to know what it refers to is not to know what is garbage.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from desilt.errors import DamagedAsset
from desilt.icechunk.format.buffer import FlatTable, root
from desilt.icechunk.format.container import Asset, AssetKind, blaming, fetched, refuse_beyond
from desilt.icechunk.format.ids import ID_BYTES, NODE_BYTES, name_of
from desilt.icechunk.format.locations import compressed, plain
from desilt.icechunk.format.states import ListedManifest
from desilt.icechunk.format.strides import Bytes, Flags, FlatColumn, Ints, Strides
from desilt.icechunk.layout import MANIFESTS
from desilt.objects.store import ObjectStore
from desilt.sstable.varint import Malformed

REFERENCES = pa.schema(
    [
        ("node", pa.binary(NODE_BYTES)),  # the array
        ("index", pa.list_(pa.uint32())),  # which of its chunks
        ("kind", pa.dictionary(pa.int8(), pa.string())),  # native, inline or virtual
        ("chunk", pa.binary(ID_BYTES)),  # null unless native
        ("offset", pa.uint64()),
        ("length", pa.uint64()),
        ("location", pa.string()),  # null unless virtual and asked for
    ]
)
"""One row per reference: one chunk of one array, once. Many may be parts of one object."""

NATIVE, INLINE, VIRTUAL = range(3)
KIND_NAMES = pa.array(["native", "inline", "virtual"])

ID, ARRAYS, DICTIONARY, ALGORITHM, MANIFEST_SLOTS = *range(4), 4
NODE, REFS, ARRAY_SLOTS = 0, 1, 2
INDEX, INLINED, OFFSET, LENGTH, CHUNK, LOCATION, _ETAG, _MODIFIED, COMPRESSED, REF_SLOTS = *range(9), 9
WAYS = (0, 1)  # of compressing locations: none, zstd with a dictionary


@dataclass(frozen=True, slots=True)
class ManifestFile:
    """The references of one manifest, or of some in turn, looked over: each is of one kind, and none is there twice."""

    assets: tuple[Asset, ...]
    tables: tuple[FlatTable, ...]
    refs: FlatColumn
    nodes: Bytes  # rows of eight bytes
    counts: Ints  # of references, by node
    ranks: Ints  # numbers in an index, by node
    index: Ints  # where each one's index begins
    kinds: Ints
    sizes: Ints  # of references, by manifest

    def __len__(self) -> int:
        return len(self.refs)

    @property
    def name(self) -> str:
        """Whose fault it is."""
        return self.assets[0].name if len(self.assets) == 1 else "one of several manifests"

    @property
    def native(self) -> Ints:
        rows: Ints = np.flatnonzero(self.kinds == NATIVE)
        return rows

    @property
    def compressed(self) -> bool:
        """Whether there are locations that only the dictionary of their own manifest can tell."""
        return bool(self.refs.has(COMPRESSED).any())


def fetch(store: ObjectStore, listed: ListedManifest) -> ManifestFile:
    """The manifest that a snapshot lists, with as many references as it says."""
    return counted([listed], [fetched(store, f"{MANIFESTS}{listed.id}", AssetKind.MANIFEST)])


def counted(listed: Sequence[ListedManifest], assets: Sequence[Asset]) -> ManifestFile:
    """Manifests as they are listed, with as many references as that says of each."""
    found = read_together(assets, [one.id for one in listed])
    for one, asset, size in zip(listed, assets, found.sizes.tolist(), strict=True):
        if size != one.references:
            said = f"a snapshot says that it has {one.references:,} references, and it has {size:,}"
            raise DamagedAsset(asset.name, said)
    return found


def read(asset: Asset, manifest: str) -> ManifestFile:
    """The manifest of that name; one that has another inside is damaged."""
    return read_together([asset], [manifest])


def read_together(assets: Sequence[Asset], manifests: Sequence[str]) -> ManifestFile:
    """Several at once, sooner than one by one if they are small; all are refused for the fault of one."""
    first = assets[0]
    with blaming(first.name):
        tables = tuple(_root(asset, name) for asset, name in zip(assets, manifests, strict=True))
        strides = Strides(*(asset.content for asset in assets))
        arrays, several = strides.tables(strides.begins + np.array([one.at for one in tables])).tables(ARRAYS)
        refs, counts = arrays.tables(REFS)
        refuse_beyond(first, arrays.beyond(ARRAY_SLOTS) or refs.beyond(REF_SLOTS), "a chunk")
        nodes = strides.structs(arrays.places(NODE, NODE_BYTES), NODE_BYTES)
        _check_ascending(nodes.view(">u8").astype(np.uint64), several, "an array")
        index, ranks = _indexes(refs, counts)
        sizes = np.diff(np.append(0, np.cumsum(counts))[np.append(0, np.cumsum(several))])
        return ManifestFile(tuple(assets), tables, refs, nodes, counts, ranks, index, _kinds(refs), sizes)


def _root(asset: Asset, manifest: str) -> FlatTable:
    """What a manifest begins with, and says of itself."""
    table = root(asset.content)
    if (found := name_of(table.struct(ID, ID_BYTES))) != manifest:
        raise Malformed(f"it is the manifest {found}, under another name")
    refuse_beyond(asset, table.beyond(MANIFEST_SLOTS), "a manifest")
    refuse_beyond(asset, table.number(ALGORITHM, 1, default=1) not in WAYS, "a location")
    return table


def native_ids(manifest: ManifestFile) -> pa.FixedSizeBinaryArray:
    """The objects it refers to; one that it refers to often is there as often."""
    with blaming(manifest.name):
        raw = manifest.refs.strides.structs(manifest.refs.places(CHUNK, ID_BYTES, manifest.native), ID_BYTES)
    return _fixed(raw)


def references(manifest: ManifestFile, *, locations: bool = False) -> pa.Table:
    """All of it, as :data:`REFERENCES`, in the order of arrays and indexes."""
    with blaming(manifest.name):
        refs, strides, count = manifest.refs, manifest.refs.strides, len(manifest)
        ranks = np.repeat(manifest.ranks, manifest.counts)
        numbers = strides.ints(strides.spread(manifest.index, ranks, 4), 4).astype(np.uint32)
        chunks = native_ids(manifest)
        order = np.full(count, -1)
        order[manifest.native] = np.arange(len(manifest.native))
        lengths = refs.numbers(LENGTH, 8)
        inlined = np.flatnonzero(manifest.kinds == INLINE)
        lengths[inlined] = refs.vectors(INLINED, 1, inlined)[1].astype(np.uint64)
        columns = [
            _fixed(np.repeat(manifest.nodes, manifest.counts, axis=0)),
            pa.ListArray.from_arrays(np.append(0, np.cumsum(ranks)).astype(np.int32), numbers),
            pa.DictionaryArray.from_arrays(manifest.kinds.astype(np.int8), KIND_NAMES),
            chunks.take(pa.array(order, mask=order < 0)),
            refs.numbers(OFFSET, 8),
            lengths,
            _locations(manifest) if locations else pa.nulls(count, pa.string()),
        ]
        return pa.table(columns, schema=REFERENCES)


def _kinds(refs: FlatColumn) -> Ints:
    virtual = refs.has(LOCATION) | refs.has(COMPRESSED)
    ways: list[Flags] = [refs.has(CHUNK), refs.has(INLINED), virtual]
    if (np.sum(ways, axis=0) != 1).any() or (refs.has(LOCATION) & refs.has(COMPRESSED)).any():
        raise Malformed("a chunk is neither in the repository, in the manifest nor elsewhere, or is in two places")
    kinds: Ints = np.select(ways, [NATIVE, INLINE, VIRTUAL], -1)
    return kinds


def _indexes(refs: FlatColumn, counts: Ints) -> tuple[Ints, Ints]:
    """Where each index begins, and how many numbers each array's have; in order, and none twice."""
    starts, sizes = refs.vectors(INDEX, 4)
    first = np.minimum(np.cumsum(counts) - counts, max(len(sizes) - 1, 0))
    ranks: Ints = np.where(counts > 0, sizes[first], 0) if len(sizes) else np.zeros(len(counts), np.int64)
    if (np.repeat(ranks, counts) != sizes).any():
        raise Malformed("chunks of one array have indexes of different lengths")
    bounds = np.append(0, np.cumsum(counts))
    for rank in np.unique(ranks):  # most manifests are of one array
        of_rank = np.flatnonzero(ranks == rank)
        rows = np.concatenate([np.arange(bounds[one], bounds[one + 1]) for one in of_rank])
        places = refs.strides.spread(starts[rows], sizes[rows], 4)
        _check_ascending(refs.strides.numbers(places, 4).reshape(len(rows), int(rank)), counts[of_rank], "a chunk")
    return starts, ranks


def _check_ascending(rows: "np.ndarray[tuple[int, ...], np.dtype[np.uint64]]", counts: Ints, what: str) -> None:
    """Within each run of ``counts`` rows, every row is greater than the one before it."""
    if len(rows) < 2:
        return
    before, after = rows[:-1], rows[1:]
    greater, equal = np.zeros(len(after), np.bool_), np.ones(len(after), np.bool_)
    for column in range(rows.shape[1]):
        greater |= equal & (after[:, column] > before[:, column])
        equal &= after[:, column] == before[:, column]
    first = np.cumsum(counts)[:-1] - 1
    greater[first[(first >= 0) & (first < len(greater))]] = True  # where another array begins
    if not greater.all():
        raise Malformed(f"{what} is there twice, or not in its place")


def _locations(manifest: ManifestFile) -> pa.StringArray:
    """Of virtual chunks, null of others."""
    refs, found = manifest.refs, pa.nulls(len(manifest), pa.string())
    rows = np.flatnonzero(refs.has(LOCATION))
    if len(rows):
        found = _placed(plain(refs.strides, *refs.vectors(LOCATION, 1, rows)), rows, len(manifest))
    rows = np.flatnonzero(refs.has(COMPRESSED))
    if len(rows):
        (table,) = manifest.tables  # each has a dictionary of its own
        dictionary = table.content(DICTIONARY)
        texts = compressed(refs.strides, *refs.vectors(COMPRESSED, 1, rows), dictionary)
        found = pc.coalesce(found, _placed(texts, rows, len(manifest)))
    return found


def _placed(texts: pa.StringArray, rows: Ints, count: int) -> pa.StringArray:
    order = np.full(count, -1)
    order[rows] = np.arange(len(rows))
    return texts.take(pa.array(order, mask=order < 0))


def _fixed(rows: Bytes) -> pa.FixedSizeBinaryArray:
    data = pa.py_buffer(np.ascontiguousarray(rows))
    return pa.FixedSizeBinaryArray.from_buffers(pa.binary(rows.shape[1]), len(rows), [None, data])
