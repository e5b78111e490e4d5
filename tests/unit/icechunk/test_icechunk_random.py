"""Random histories: whatever people did, refs, ancestry, manifests and references are what the library says."""

import tempfile
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings

from desilt.icechunk.format import states
from desilt.icechunk.history import history
from icechunk_played import Played, steps
from icechunk_world import FORMATS, World, make_old, natives, same

NAMES = ("dev", "fix", "ü x")


@pytest.mark.parametrize("version", FORMATS)
@settings(max_examples=30)
@given(life=steps(NAMES, min_size=4, max_size=16))
def test_whatever_was_done_is_read_as_the_library_has_it(version, life):
    with tempfile.TemporaryDirectory() as place:
        played = Played(World(place, version))
        for step in life:
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
