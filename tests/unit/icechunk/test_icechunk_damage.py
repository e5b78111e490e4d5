"""Damaged files end in one clear error, or hold no less than before.

Nothing in these files is a checksum, so some damage reads as something else that could be. What must not be is that
an object loses its reference unnoticed: what is named instead of it is not there, and that stops a run.
"""

from dataclasses import replace

import cramjam
import numpy as np
import pytest

from desilt.errors import DamagedAsset, UnknownAsset
from desilt.icechunk import tables
from desilt.icechunk.format import buffer, manifest, repo_info, states, transactions
from desilt.icechunk.format.container import HEADER, MAGIC, AssetKind, blaming, opened
from desilt.icechunk.format.ids import names_of

FLIPS = (0x01, 0xFF)


@pytest.fixture
def damaged(world):
    world.commit(a=np.arange(7), b=np.ones(1, "i1"))
    world.commit(a=np.arange(7) + 1)
    world.virtual("v", 3)
    world.repo.create_branch("dev", world.repo.lookup_branch("main"))
    return world


def spoilt(data):
    """Every byte of a file changed in a few ways, as it is and as if it was never compressed; and cut off."""
    content = bytes(cramjam.zstd.decompress(data[HEADER:]))
    for whole, first in ((data, 0), (data[: HEADER - 1] + b"\0" + content, HEADER)):
        for at in range(first, len(whole)):
            for flip in FLIPS:
                yield whole[:at] + bytes([whole[at] ^ flip]) + whole[at + 1 :]
        yield from (whole[:at] for at in range(0, len(whole), 5))
    for at in range(0, len(content), 4):  # offsets and counts that are as large as can be, or nothing
        for number in (0, 2**32 - 1):
            yield data[: HEADER - 1] + b"\0" + content[:at] + number.to_bytes(4, "little") + content[at + 4 :]


def outcomes(data, read):
    """What each spoilt file is read as; anything but the one kind of error fails the test."""
    refused, found = 0, []
    for one in spoilt(data):
        try:
            found.append(read(one))
        except DamagedAsset:
            refused += 1
    assert refused > len(data)  # most of them, or nothing is checked
    return found


def test_a_damaged_manifest_never_loses_an_object_unnoticed(damaged):
    stored = damaged.files("chunks")
    for listed in states.fetch(damaged.store, damaged.repo.lookup_branch("main")).manifests:
        key = f"manifests/{listed.id}"

        def read(data, key=key, name=listed.id):
            found = manifest.read(opened(data, AssetKind.MANIFEST, key), name)
            manifest.references(found, locations=True)
            return len(found), set(names_of(manifest.native_ids(found)).to_pylist())

        _, held = read(damaged.file(key))
        for count, named in outcomes(damaged.file(key), read):
            assert named >= held or named - stored or count != listed.references


@pytest.mark.parametrize("order", [(1, 0), (0, 0)], ids=["not in order", "one twice"])
def test_a_chunk_that_is_there_twice_or_not_in_its_place_is_refused(world, order):
    """One that is there twice is there instead of another."""
    tip = world.commit(a=np.arange(4))
    (listed,) = states.fetch(world.store, tip).manifests
    asset = opened(world.file(f"manifests/{listed.id}"), AssetKind.MANIFEST, "m")
    (array,) = buffer.root(asset.content).tables(manifest.ARRAYS)
    start, count = array.vector(manifest.REFS, 4)
    places = [start, start + 4]
    targets = [at + buffer.number_at(asset.content, at, 4) for at in places]
    content = bytearray(asset.content)
    for at, which in zip(places, order, strict=True):
        content[at : at + 4] = (targets[which] - at).to_bytes(4, "little")
    assert count == len(manifest.read(asset, listed.id)) == 2
    with pytest.raises(DamagedAsset, match="is there twice, or not in its place"):
        manifest.read(replace(asset, content=bytes(content)), listed.id)


def test_a_damaged_manifest_among_others_is_read_as_it_is_alone(damaged):
    """And leaves the others as they are: nothing of one is ever read from a neighbour, however it leads there."""
    tip = damaged.repo.lookup_branch("main")
    names = [one.id for one in states.fetch(damaged.store, tip).manifests]
    sound = {name: opened(damaged.file(f"manifests/{name}"), AssetKind.MANIFEST, name) for name in names}

    def rows(some):
        found = manifest.read_together(list(some.values()), list(some))
        return found.sizes.tolist(), manifest.references(found).to_pydict()

    alone = {name: rows({name: asset}) for name, asset in sound.items()}
    read, refused = 0, 0
    for name in names:
        for one in spoilt(damaged.file(f"manifests/{name}")):
            try:
                asset = opened(one, AssetKind.MANIFEST, name)
            except DamagedAsset:
                continue
            some = {**sound, name: asset}
            try:
                said = {**alone, name: rows({name: asset})}
            except (DamagedAsset, UnknownAsset):
                refused += 1
                with pytest.raises((DamagedAsset, UnknownAsset)):
                    rows(some)
            else:
                read += 1
                sizes, columns = rows(some)
                assert sizes == [count for one in names for count in said[one][0]]
                assert columns == {key: [cell for one in names for cell in said[one][1][key]] for key in columns}
    assert min(read, refused) > 100


def test_the_fault_of_one_manifest_of_many_is_told_by_its_name(damaged):
    tip = damaged.repo.lookup_branch("main")
    listed = tables.listed_by(states.fetch(damaged.store, tip))
    whole = tables.ManifestDecoder().entries(damaged.store, "", listed, 5)
    parts = [tables.ManifestDecoder().entries(damaged.store, "", [one], 5 + at) for at, one in enumerate(listed)]
    assert whole.to_pylist() == [row for part in parts for row in part.to_pylist()]
    assert {row["owner"] for row in whole.to_pylist()} < {5, 6, 7}  # one has but virtual chunks, one inline ones
    key = f"manifests/{listed[1].id}"
    damaged.store.put(key, [damaged.file(f"manifests/{listed[0].id}")])
    with pytest.raises(DamagedAsset, match="under another name") as told:
        tables.ManifestDecoder().entries(damaged.store, "", listed, 0)
    assert told.value.name == key
    wrong = [listed[0], replace(listed[2], count=listed[2].count + 1)]
    with pytest.raises(DamagedAsset, match="a snapshot says that it has"):
        tables.ManifestDecoder().entries(damaged.store, "", wrong, 0)


def test_a_damaged_snapshot_never_loses_a_manifest_unnoticed(damaged):
    stored = damaged.files("manifests")
    tip = damaged.repo.lookup_branch("main")

    def read(data):
        return states.read(opened(data, AssetKind.SNAPSHOT, f"snapshots/{tip}"), tip)

    data = damaged.file(f"snapshots/{tip}")
    held = {one.id for one in read(data).manifests}
    assert len(held) == 3
    for found in outcomes(data, read):
        named = {one.id for one in found.manifests}
        assert named >= held or named - stored


def test_arrays_of_a_damaged_snapshot_are_read_alike_one_by_one_and_by_the_column(damaged):
    tip = damaged.repo.lookup_branch("main")

    def used(asset, way):
        try:
            with blaming("s"):
                return way(asset, buffer.root(asset.content))
        except (DamagedAsset, UnknownAsset) as error:
            return type(error)

    refused = 0
    for one in spoilt(damaged.file(f"snapshots/{tip}")):
        try:
            asset = opened(one, AssetKind.SNAPSHOT, "s")
        except DamagedAsset:
            continue
        by_column = used(asset, states.used_by_column)
        if not (refused_there := isinstance(by_column, type)):
            assert used(asset, states.used_one_by_one) == by_column
        else:
            refused += 1
            assert isinstance(used(asset, states.used_one_by_one), type) == refused_there
    assert refused > 100  # most of the places are met


def test_a_damaged_list_of_refs_names_nothing_that_it_does_not_list(damaged):
    if damaged.version == 1:
        pytest.skip("format 1 has no such file")

    def read(data):
        return repo_info.read(opened(data, AssetKind.REPO, "repo"))

    for found in outcomes(damaged.file("repo"), read):
        ids = {one.id for one in found.snapshots}
        assert {*found.branches.values(), *found.tags.values()} <= ids
        assert {one.parent for one in found.snapshots} <= {*ids, None}


def test_a_log_is_that_of_its_snapshot(damaged):
    tip = damaged.repo.lookup_branch("main")
    data = damaged.file(f"transactions/{tip}")
    transactions.check(opened(data, AssetKind.TRANSACTION, "t"), tip)
    with pytest.raises(DamagedAsset, match="under another name"):
        transactions.check(opened(data, AssetKind.TRANSACTION, "t"), damaged.ancestry(tip)[1][0])


@pytest.mark.parametrize(
    ("at", "byte", "error", "fact"),
    [
        (0, 0, DamagedAsset, "does not begin as Icechunk's files do"),
        (HEADER - 3, 0, UnknownAsset, "it has format 0"),
        (HEADER - 3, 3, UnknownAsset, "it has format 3, and 1 and 2 are known"),
        (HEADER - 2, 2, UnknownAsset, "it should be a snapshot, and is of kind 2"),
        (HEADER - 1, 2, UnknownAsset, "it is compressed in way 2"),
    ],
)
def test_what_is_not_known_is_refused_by_its_name(damaged, at, byte, error, fact):
    tip = damaged.repo.lookup_branch("main")
    data = damaged.file(f"snapshots/{tip}")
    assert data.startswith(MAGIC)
    with pytest.raises(error, match=fact):
        opened(data[:at] + bytes([byte]) + data[at + 1 :], AssetKind.SNAPSHOT, "s")


def test_a_field_that_is_not_known_is_refused(damaged):
    """A later library may say of a chunk in a new field what makes another object live."""
    tip = damaged.repo.lookup_branch("main")
    (listed, *_) = states.fetch(damaged.store, tip).manifests
    asset = opened(damaged.file(f"manifests/{listed.id}"), AssetKind.MANIFEST, "m")
    found = manifest.read(asset, listed.id)
    assert not found.refs.beyond(manifest.REF_SLOTS)
    assert found.refs.beyond(1)
    (table,) = found.tables
    assert table.beyond(1)
    assert not table.beyond(manifest.MANIFEST_SLOTS)
