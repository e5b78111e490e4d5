"""References are what the library says: of each chunk its kind, its bytes or its place."""

import numpy as np
import pytest

from desilt.errors import DamagedAsset, MissingAsset
from desilt.icechunk.format import manifest, states
from desilt.icechunk.format.ids import names_of
from icechunk_world import WHERE_BOTH, WRITES_BOTH, World, natives, same, told


def test_native_inline_and_virtual_chunks_are_told_apart(world):
    world.commit(a=np.arange(35).reshape(7, 5), empty=np.zeros(3, "i1"), scalar=np.array(3.5))
    world.commit(small=np.ones(1, "i1"))
    found = same(world, world.virtual("v", 7))
    kinds = [kind for kind, *_ in found.values()]
    assert {kind: kinds.count(kind) for kind in set(kinds)} == {"native": 4 * 3 + 1, "inline": 1, "virtual": 7}


def test_bytes_of_each_kind_add_up_to_what_the_library_counts(world):
    world.commit(a=np.arange(35).reshape(7, 5), b=np.ones(1, "i1"))
    tip = world.virtual("v", 4)
    stats = world.repo.chunk_storage_stats()
    rows = told(world.store, tip)
    by_kind = {
        kind: sum(row["length"] for row in rows if row["kind"] == kind) for kind in ("native", "virtual", "inline")
    }
    assert by_kind == {"native": stats.native_bytes, "virtual": stats.virtual_bytes, "inline": stats.inlined_bytes}


def test_many_arrays_and_many_versions(world):
    tips = [world.commit(**{f"a{at}": np.arange(at + 3) + at, "b": np.full((3, 3), at)}) for at in range(5)]
    for tip in tips:
        same(world, tip)
    everything = natives(world.store, tips)
    assert everything == world.files("chunks")
    assert natives(world.store, tips[-1:]) < everything


def test_a_repository_without_chunks_has_no_manifests(world):
    tip = world.commit("nothing")
    assert states.fetch(world.store, tip).manifests == ()
    assert told(world.store, tip) == []


@pytest.mark.skipif(not WRITES_BOTH, reason=WHERE_BOTH)
def test_locations_that_are_compressed_are_read(place):
    world = World(place, 2, compress_locations=10)
    tip = world.virtual("v", 50)
    (listed,) = states.fetch(world.store, tip).manifests
    found = manifest.fetch(world.store, listed)
    assert found.refs.has(manifest.COMPRESSED).all()
    same(world, tip)
    assert manifest.references(found)["location"].null_count == 50  # which nobody pays for who did not ask


def test_a_manifest_that_is_missing_or_another_stops_the_reading(world):
    first, second = world.commit(a=[1, 2, 3]), world.commit(a=[1, 2, 4])
    (old,), (new,) = (states.fetch(world.store, one).manifests for one in (first, second))
    (world.root / f"manifests/{old.id}").write_bytes(world.file(f"manifests/{new.id}"))
    with pytest.raises(DamagedAsset, match="under another name"):
        manifest.fetch(world.store, old)
    (world.root / f"manifests/{old.id}").unlink()
    with pytest.raises(MissingAsset):
        manifest.fetch(world.store, old)


def test_a_manifest_has_as_many_references_as_its_snapshot_says(world):
    (listed,) = states.fetch(world.store, world.commit(a=[1, 2, 3])).manifests
    with pytest.raises(DamagedAsset, match="it has 3 references, and it has 2"):
        manifest.fetch(world.store, states.ListedManifest(listed.id, listed.size, 3))


def test_a_column_of_ids_has_the_names_that_files_have(world):
    (listed,) = states.fetch(world.store, world.commit(a=np.arange(9))).manifests
    ids = manifest.native_ids(manifest.fetch(world.store, listed))
    assert set(names_of(ids).to_pylist()) == world.files("chunks")
    assert names_of(ids.slice(2, 2)).to_pylist() == names_of(ids).to_pylist()[2:4]
    assert names_of(ids.slice(0, 0)).to_pylist() == []
