"""Random histories of real Icechunk repositories: of two copies the library expires one and desilt the other.

Then the library's collector looks at both. Refs, ancestry and all files that are left are the same; in the mode of the
document more may be left, and never less.
"""

import random
import shutil
from datetime import UTC, datetime, timedelta

import pytest

pytest.importorskip("icechunk", reason="desilt[icechunk] is not installed: nothing of Icechunk is tested")

from desilt.domain.expiry import Expiry
from desilt.executors.executor import HERE
from desilt.jobs.expire import job as expiration
from desilt.jobs.runner import run
from icechunk_editing import SURE, opened
from icechunk_world import FORMATS, WHERE_BOTH, World

FOLDERS = ("snapshots", "manifests", "chunks", "transactions")
LATER = timedelta(days=1)


class Lives:
    """A random life of a repository, then two copies of it."""

    def __init__(self, place, version, seed, count):
        self.place, self.world, self.random = place, World(place / "life", version), random.Random(seed)
        self.made = [self.world.repo.lookup_branch("main")]
        for number in range(count):
            self.step(number)

    def step(self, number):
        repo, chance = self.world.repo, self.random.random()
        branches, tags = sorted(repo.list_branches()), sorted(repo.list_tags())
        pick, snapshot = self.random.choice(branches), self.random.choice(self.made)
        if chance < 0.62:
            self.made.append(self.world.commit(str(number), branch=pick, **{f"a{number % 5}": [number] * 3}))
        elif chance < 0.76:
            repo.create_branch(f"b{number}", snapshot)
        elif chance < 0.9:
            repo.create_tag(f"t{number}", snapshot)
        elif chance < 0.94:
            repo.reset_branch(pick, snapshot)
        elif chance < 0.97 and pick != "main":
            repo.delete_branch(pick)
        elif tags:
            repo.delete_tag(self.random.choice(tags))

    def cut(self):
        """The time of a snapshot: what is as old stays."""
        times = sorted(one.written_at for name in self.world.repo.list_branches() for one in
                       self.world.repo.ancestry(branch=name))  # fmt: skip
        return self.random.choice(times) if self.random.random() < 0.9 else times[-1] + timedelta(seconds=1)

    def copy(self, name):
        there = World.__new__(World)
        there.place, there.version = self.place / name, self.world.version
        there.place.mkdir()
        shutil.copytree(self.world.root, there.root)
        there.reopen()
        return there


def told(world):
    """Refs, and what each descends from."""
    world.reopen()
    branches, tags = world.heads()
    return branches, tags, {head: world.ancestry(head) for head in {*branches.values(), *tags.values()}}


def contents(world):
    """All that the library reads."""
    branches, tags = world.heads()
    return {head: world.chunks(head) for head in {*branches.values(), *tags.values()}}


def left(world):
    return {folder: world.files(folder) for folder in FOLDERS}


def compared(place, version, seed, *, delete, count):
    lives = Lives(place, version, seed, count)
    theirs, ours, document = lives.copy("theirs"), lives.copy("ours"), lives.copy("document")
    before, cut = contents(lives.world), lives.cut()
    words = {"delete_expired_branches": delete, "delete_expired_tags": delete}
    theirs.repo.expire_snapshots(cut, **words)
    for world, mode in ((ours, f"v{version}"), (document, "design")):
        wish = Expiry(cut, None, delete, delete, mode)
        repository = opened(world.place, world.root)
        run(expiration.job, repository, HERE, expiration.job.ask(wish=wish, sizes=False), SURE)
        repository.records.close()
    assert told(ours) == told(theirs)
    branches, tags, lines = told(document)
    assert branches.keys() <= told(theirs)[0].keys()
    for world in (theirs, ours, document):
        assert contents(world).items() <= before.items()
        world.repo.garbage_collect(datetime.now(UTC) + LATER)
        assert contents(world).items() <= before.items()
    assert left(ours) == left(theirs)
    if not delete:
        assert all(left(document)[folder] >= left(theirs)[folder] for folder in FOLDERS)
        assert tags == told(theirs)[1]
        assert lines
    if version == 2:
        found = [one["id"] for one in ours.repo.inspect_repo_info()["snapshots"]]
        assert found == [one["id"] for one in theirs.repo.inspect_repo_info()["snapshots"]]
        for name in told(ours)[0].values():
            since = {"from_snapshot_id": lives.made[0], "to_snapshot_id": name}
            assert repr(ours.repo.diff(**since)) == repr(theirs.repo.diff(**since))


@pytest.mark.parametrize("delete", [False, True], ids=["refs stay", "refs go"])
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("version", [1, 2])
def test_a_random_history_ends_as_the_librarys(place, version, seed, delete):
    if version not in FORMATS:
        pytest.skip(WHERE_BOTH)
    compared(place, version, seed, delete=delete, count=50)


@pytest.mark.slow
@pytest.mark.parametrize("delete", [False, True], ids=["refs stay", "refs go"])
@pytest.mark.parametrize("seed", range(100, 120))
@pytest.mark.parametrize("version", [1, 2])
def test_a_long_random_history_ends_as_the_librarys(place, version, seed, delete):
    if version not in FORMATS:
        pytest.skip(WHERE_BOTH)
    compared(place, version, seed, delete=delete, count=300)
