"""Random histories: whatever people did, refs, ancestry, manifests and references are what the library says."""

import tempfile
from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from desilt.icechunk import states
from desilt.icechunk.history import history
from icechunk_world import FORMATS, World, make_old, natives, same

NAMES = ("dev", "fix", "ü x")
ARRAYS = ("a", "b", "c")
branch = st.sampled_from(("main", *NAMES))
STEPS = st.one_of(
    st.tuples(st.just("commit"), branch, st.sampled_from(ARRAYS), st.lists(st.integers(1, 4), max_size=3)),
    st.tuples(st.just("branch"), st.sampled_from(NAMES), branch),
    st.tuples(st.just("drop"), st.sampled_from(NAMES)),
    st.tuples(st.just("tag"), st.integers(0, 9), branch),
    st.tuples(st.just("untag"), st.integers(0, 9)),
    st.tuples(st.just("reset"), branch, st.integers(0, 5)),
    st.tuples(st.just("remove"), branch, st.sampled_from(ARRAYS)),
    st.tuples(st.just("virtual"), branch, st.integers(1, 3)),
)


class Played:
    """A repository, and what it should have: the library loses odd names of format 1 from its lists."""

    def __init__(self, world):
        self.world, self.branches, self.tags, self.deleted, self.made = world, {}, {}, set(), 0
        self.branches["main"] = world.repo.lookup_branch("main")

    def play(self, step, *words):
        getattr(self, step)(*words)

    def commit(self, name, array, shape):
        if name in self.branches:
            self.made += 1
            values = np.arange(int(np.prod(shape)), dtype="i4").reshape(shape) + self.made
            self.branches[name] = self.world.commit(f"{self.made}", branch=name, **{array: values})

    def virtual(self, name, count):
        if name in self.branches:
            self.branches[name] = self.world.virtual("v", count, branch=name)

    def remove(self, name, array):
        if name in self.branches:
            self.branches[name] = self.world.remove(array, branch=name) or self.branches[name]

    def branch(self, name, source):
        if name not in self.branches and source in self.branches:
            self.world.repo.create_branch(name, self.branches[source])
            self.branches[name] = self.branches[source]

    def drop(self, name):
        if self.branches.pop(name, None):
            self.world.repo.delete_branch(name)

    def tag(self, number, source):
        name = f"v{number}"
        if name not in self.tags and name not in self.deleted and source in self.branches:
            self.world.repo.create_tag(name, self.branches[source])
            self.tags[name] = self.branches[source]

    def untag(self, number):
        if self.tags.pop(f"v{number}", None):
            self.world.repo.delete_tag(f"v{number}")
            self.deleted.add(f"v{number}")

    def reset(self, name, back):
        if name in self.branches:
            line = self.world.ancestry(self.branches[name])
            self.branches[name] = line[min(back, len(line) - 1)][0]
            self.world.repo.reset_branch(name, self.branches[name])


@pytest.mark.parametrize("version", FORMATS)
@settings(max_examples=30)
@given(steps=st.lists(STEPS, min_size=4, max_size=16))
def test_whatever_was_done_is_read_as_the_library_has_it(version, steps):
    with tempfile.TemporaryDirectory() as place:
        played = Played(World(place, version))
        for step in steps:
            played.play(*step)
        check(played)


def check(played):
    world, found = played.world, history(played.world.store)
    assert {one.name: one.head for one in found.seen.branches} == played.branches
    assert {one.name: one.target for one in found.seen.tags} == played.tags
    assert found.deleted_tags == played.deleted
    lines = {head: world.ancestry(head) for head in {*played.branches.values(), *played.tags.values()}}
    reached = {name for line in lines.values() for name, *_ in line}
    assert found.seen.below(found.seen.tips) == reached
    for line in lines.values():
        for name, parent, at, message, _ in line:
            commit = found.seen.commits[name]
            assert (commit.parents, commit.created_at, commit.message) == ((parent,) if parent else (), at, message)
            assert commit.generation == 1 + max(
                (found.seen.commits[one].generation for one in commit.parents), default=0
            )
    for name in reached:
        listed = states.fetch(world.store, name).manifests
        assert [(one.id, one.size, one.references) for one in listed] == world.manifests(name)
    for head in lines:
        same(world, head)
    if set(world.repo.list_branches()) == played.branches.keys():  # or its collector stumbles over what it listed
        held = natives(world.store, reached)
        make_old(world.root)
        world.repo.garbage_collect(datetime.now(UTC))
        assert (world.files("snapshots"), world.files("chunks")) == (reached, held)
