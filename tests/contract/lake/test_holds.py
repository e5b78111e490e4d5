"""Holds as the lake carries them out: a commit that one kept is released with it."""

import pytest

from desilt.errors import NotFound
from desilt.lake import commits
from desilt.records import holds
from desilt.records.holds import Hold, HoldKind
from words import add_hold, committed, lift_hold


def released(repo, since):
    with repo.database.read() as tx:
        return commits.released_since(tx, repo.uid, since)


def test_a_commit_is_released_when_its_hold_is_lifted_and_not_before(repo):
    start = repo.clock()
    commit, other = committed(repo, "main", a="1"), committed(repo, "main", b="2")
    for name, held in (("one", commit), ("two", other)):
        add_hold(repo, Hold(name, HoldKind.REF, held.id, "audit", repo.clock(), None))
    assert released(repo, start) == set()
    lift_hold(repo, "one")
    assert released(repo, start) == {commit.id}


@pytest.mark.parametrize("kind", [HoldKind.PREFIX, HoldKind.ADDRESS])
def test_a_hold_on_anything_else_releases_no_commit(repo, kind):
    start = repo.clock()
    commit = committed(repo, "main", a="1")
    add_hold(repo, Hold("odd", kind, commit.id, "audit", repo.clock(), None))
    lift_hold(repo, "odd")
    assert released(repo, start) == set()


def test_lifting_what_is_not_there_changes_nothing(repo):
    start, commit = repo.clock(), committed(repo, "main", a="1")
    hold = Hold("one", HoldKind.REF, commit.id, "audit", repo.clock(), None)
    add_hold(repo, hold)
    before = repo.generation()
    with pytest.raises(NotFound, match="desilt hold ls"):
        lift_hold(repo, "two")
    assert (repo.generation(), released(repo, start)) == (before, set())
    with repo.database.read() as tx:
        assert [one.id for one in holds.every(tx, repo.uid)] == ["one"]
