"""Random lives of an Icechunk repository: desilt collects one copy, its own library another, and they end alike."""

import random
import tempfile

import pytest
from hypothesis import given, settings

from icechunk_collecting import (
    FOLDERS,
    collected,
    collected_by_library,
    copied,
    desilt_on,
    files,
    left_in,
    naive,
    plan_of,
    planned,
)
from icechunk_played import Played, steps
from icechunk_world import FORMATS, World, make_old

NAMES = ("dev", "fix", "old")


def same_as_the_library(world, *, action="delete"):
    """What went is what the library takes and plain sets say; all that refs show is as it was."""
    make_old(world.root)
    theirs, before, going = copied(world.root, "theirs"), left_in(world.root), naive(world.root)
    there = files(world.root)
    collected_by_library(theirs)
    with desilt_on(world.root) as repository:
        told = planned(repository, action=action)
        report = collected(repository, action=action)
        plan = plan_of(repository, report.run)
        assert told.remove == report.remove
        assert plan.removes.objects == sum(len(names) for names in going.values())
        assert report.swept.removed == plan.removes.objects
        assert report.swept.bytes == plan.removes.bytes
        assert not planned(repository, action=action).removed.objects
    left = files(world.root)
    assert left == {folder: there[folder] - going[folder] for folder in FOLDERS}
    assert left == files(theirs)
    assert left_in(world.root) == before == left_in(theirs)


@pytest.mark.parametrize("version", FORMATS)
@settings(max_examples=8)
@given(life=steps(NAMES, min_size=6, max_size=20))
def test_what_goes_is_what_the_library_takes(version, life):
    with tempfile.TemporaryDirectory() as place:
        played = Played(World(place, version))
        for step in life:
            played.play(*step)
        same_as_the_library(played.world)


@pytest.mark.slow
@pytest.mark.parametrize("version", FORMATS)
@pytest.mark.parametrize("seed", range(3))
def test_a_long_life_ends_as_the_library_has_it(version, seed):
    """A few hundred snapshots, and the library's own expiration before."""
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory() as place:
        played = Played(World(place, version))
        for _ in range(300):
            where = chance.choice(("main", *NAMES))
            played.play(
                "commit", where, chance.choice("abc"), [chance.randint(1, 4) for _ in range(chance.randint(0, 2))]
            )
            if chance.random() < 0.3:
                played.play(
                    *chance.choice(
                        [
                            ("branch", chance.choice(NAMES), where),
                            ("drop", chance.choice(NAMES)),
                            ("tag", chance.randint(0, 99), where),
                            ("untag", chance.randint(0, 99)),
                            ("reset", where, chance.randint(0, 9)),
                            ("remove", where, chance.choice("abc")),
                            ("virtual", where, 3),
                        ]
                    )
                )
        line = played.world.ancestry(played.branches["main"])
        played.world.repo.expire_snapshots(line[len(line) // 2][2])
        same_as_the_library(played.world)
