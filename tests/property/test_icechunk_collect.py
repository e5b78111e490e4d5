"""Random lives of an Icechunk repository: desilt collects one copy, its own library another, and they end alike."""

import os
import random
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from desilt.clock import ManualClock
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
    rows_of,
)
from icechunk_played import Played, steps
from icechunk_world import FORMATS, World, make_old, zarr

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
@given(life=steps(NAMES, min_size=6, max_size=20), expires=st.booleans())
def test_what_goes_is_what_the_library_takes(version, life, expires):
    with tempfile.TemporaryDirectory() as place:
        played = Played(World(place, version))
        for step in life:
            played.play(*step)
        if expires:
            expire_a_half(played)
        same_as_the_library(played.world)


def expire_a_half(played):
    line = played.world.ancestry(played.branches["main"])
    played.world.repo.expire_snapshots(line[len(line) // 2][2])


ROUND = st.tuples(
    steps(NAMES, max_size=4),
    st.sampled_from(("commits", "leaves open")),  # what a session does that writes besides
    st.integers(0, 9),  # days until the next round
    st.sampled_from(("delete", "trash", "plan")),
)


@pytest.mark.parametrize("version", FORMATS)
@settings(max_examples=6)
@given(rounds=st.lists(ROUND, min_size=3, max_size=7))
def test_runs_that_begin_where_the_last_one_ended_take_what_one_does_that_looks_at_everything(version, rounds):
    """With the usual age limit, as days pass."""
    with tempfile.TemporaryDirectory() as place:
        played, clock = Played(World(place, version)), ManualClock(datetime.now(UTC))
        world, seen = played.world, set()
        for life, session, days, action in [*rounds, ((), "", 9, "delete"), ((), "", 9, "delete")]:
            for step in life:
                played.play(*step)
            if session:
                written_by_a_session(world, commits=session == "commits")
            seen = dated_now(world.root, seen, clock.now)
            with desilt_on(world.root, clock=clock) as repository:
                words = {"older_than": None, "unsafe": False}
                some, whole = (planned(repository, full=full, **words) for full in (False, True))
                assert rows_of(repository, some.run) == rows_of(repository, whole.run)
                assert some.removed == whole.removed  # of what is young, one that lists nothing knows less
                assert some.keep.get("committed") == whole.keep.get("committed")
                if action != "plan":
                    assert not collected(repository, action=action, **words).swept.failed
            left_in(world.root)
            clock.now += timedelta(days=days)
        assert {folder: names for folder, names in naive(world.root).items() if names} == {}


def written_by_a_session(world, *, commits):
    """An array, in a session that may never end."""
    session = world.repo.writable_session("main")
    group = zarr.open_group(session.store, mode="a")
    array = group.create_array("s", shape=(20,), chunks=(5,), dtype="i8", overwrite=True)
    array[...] = np.arange(20) + 1
    if commits:
        session.commit("by a session")


def dated_now(root, seen, now):
    """What is new gets the date of the day that it is meant to be; all that there is."""
    there = {path for folder in FOLDERS for path in (Path(root) / folder).glob("*")}
    for path in there - seen:
        os.utime(path, (now.timestamp(),) * 2)
    return there


@pytest.mark.slow
@pytest.mark.parametrize("version", FORMATS)
@pytest.mark.parametrize("seed", range(3))
def test_a_long_life_ends_as_the_library_has_it(version, seed):
    """A few hundred snapshots, and the library's own expiration before."""
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory() as place:
        played = Played(World(place, version))
        while played.made < 250:
            where = chance.choice(("main", *played.branches))
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
        expire_a_half(played)
        same_as_the_library(played.world)
