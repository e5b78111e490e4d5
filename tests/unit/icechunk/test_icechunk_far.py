"""Where a store is far, files are fetched many at once; what is found is the same."""

import threading
import time

import pytest

from desilt.errors import DamagedAsset, MissingAsset
from desilt.icechunk import tables
from desilt.icechunk.brought import FEW
from desilt.icechunk.history import history
from desilt.objects.local import LocalStore


class Far(LocalStore):
    """A directory that takes its time, as a bucket does."""

    moves_cheaply = False

    def __init__(self, root):
        super().__init__(root)
        self.under_way, self.most, self.keys, self.lock = 0, 0, [], threading.Lock()

    def get(self, key, **rest):
        with self.lock:
            self.under_way, self.keys = self.under_way + 1, [*self.keys, key]
            self.most = max(self.most, self.under_way)
        time.sleep(0.005)
        try:
            return super().get(key, **rest)
        finally:
            with self.lock:
                self.under_way -= 1


@pytest.fixture
def tips(world):
    """Of a history that is longer than a few, each commit with a manifest of its own."""
    return [world.commit(a=[number]) for number in range(2 * FEW)]


def test_a_history_is_the_same_from_afar(world, tips):
    far = Far(world.root)
    assert history(far) == history(world.store)
    if world.version == 1:
        assert far.most > 4
        assert len(history(far).seen.commits) == len(tips) + 1
        key = f"snapshots/{tips[3]}"
        assert far.keys.count(key) == 2  # a look each: what is known by its bytes is fetched all the same


def test_a_snapshot_that_is_wanted_is_missed_and_one_that_is_not_may_be_damaged(world, tips):
    if world.version == 2:
        pytest.skip("history is in one file")
    lost = world.commit(a=[100])
    world.repo.reset_branch("main", tips[-1])
    world.store.put(f"snapshots/{lost}", [b"nothing"])
    world.store.put("snapshots/of-another-name", [b"nothing"])
    assert len(history(Far(world.root)).seen.commits) == len(tips) + 1
    data = world.file(f"snapshots/{tips[2]}")
    world.store.put(f"snapshots/{tips[2]}", [data[:-9]])
    with pytest.raises(DamagedAsset) as told:
        history(Far(world.root))
    assert told.value.name == f"snapshots/{tips[2]}"
    (world.root / f"snapshots/{tips[2]}").unlink()
    with pytest.raises(MissingAsset):
        history(Far(world.root))


def test_lists_and_manifests_come_many_at_once_each_in_its_place(world, tips):
    far, near = Far(world.root), tables.SnapshotLists(world.store)
    lists = [*tables.SnapshotLists(far).metaranges(tips)]
    assert lists == [near.metarange(one) for one in tips]
    assert far.most > 4
    wanted, far = [one for listed in lists for one in listed], Far(world.root)
    found = tables.ManifestDecoder().entries(far, "", wanted, 0)
    assert far.most > 4
    assert found.equals(tables.ManifestDecoder().entries(world.store, "", wanted, 0))
    (world.root / f"manifests/{wanted[5].id}").unlink()
    with pytest.raises(MissingAsset) as told:
        tables.ManifestDecoder().entries(far, "", wanted, 0)
    assert told.value.name == f"manifests/{wanted[5].id}"
