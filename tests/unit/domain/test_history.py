"""Walks and merge bases on tiny graphs."""

from collections import namedtuple
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from desilt.domain.history import Commit, merge_base, new_commit, walk

START = datetime(2026, 1, 1, tzinfo=UTC)


def graph(text, times=None):
    """``a b:a c:a,b`` as commits: each names its parents after the colon."""
    commits = {}
    for number, word in enumerate(text.split()):
        name, _, above = word.partition(":")
        parents = tuple(above.split(",")) if above else ()
        generation = 1 + max((commits[parent].generation for parent in parents), default=-1)
        at = START + timedelta(hours=(times or {}).get(name, number))
        commits[name] = Commit(name, parents, "", at, "", "", {}, generation)
    return commits


@pytest.mark.parametrize(
    ("commits", "left", "right", "base"),
    [
        ("a b:a c:b", "c", "b", "b"),
        ("a b:a c:b", "c", "c", "c"),
        ("a b:a c:a", "b", "c", "a"),
        ("a b:a c:a d:b,c e:c", "d", "e", "c"),
        ("a b:a c:b d:b e:c,d f:d", "e", "f", "d"),
        ("a b:a c:b d:c e:a f:e,b", "d", "f", "b"),
        ("a b", "a", "b", None),
        ("a b:a x y:x", "b", "y", None),
    ],
)
def test_the_merge_base_is_the_youngest_commit_both_descend_from(commits, left, right, base):
    found = merge_base(graph(commits).__getitem__, left, right)
    assert (found and found.id) == base


def test_of_a_criss_cross_one_of_the_two_best_bases_is_taken():
    commits = graph("a l:a r:a l2:l,r r2:r,l")
    assert merge_base(commits.__getitem__, "l2", "r2").id in ("l", "r")


def test_times_that_lie_do_not_mislead_the_merge_base():
    commits = graph("a b:a c:b d:b", times={"a": 100, "b": 1, "c": 50, "d": 60})
    assert merge_base(commits.__getitem__, "c", "d").id == "b"


def test_whatever_is_linked_like_commits_can_be_walked():
    linked = namedtuple("Linked", "id parents created_at generation")
    traces = {name: linked(name, c.parents, c.created_at, c.generation) for name, c in graph("a b:a c:a").items()}
    assert merge_base(traces.__getitem__, "b", "c") == traces["a"]
    assert list(walk(traces.__getitem__, "b")) == [traces["b"], traces["a"]]


def test_a_commit_knows_what_it_was_made_from():
    (commit,) = graph("a").values()
    assert commit.made_from == ()
    assert replace(commit, parents=("r",)).made_from == ("r",)
    assert replace(commit, parents=("r",), was=("p", "q")).made_from == ("p", "q")
    assert replace(commit, parents=("r",), was=()).made_from == ()


def test_a_walk_gives_every_ancestor_once_and_children_first():
    commits = graph("a b:a c:a d:b,c e:d f:c", times={"a": 99})
    found = [commit.id for commit in walk(commits.__getitem__, "e", "f")]
    assert sorted(found) == list("abcdef")
    assert all(found.index(child) < found.index(parent) for child in found for parent in commits[child].parents)


def test_a_commit_is_named_by_its_content():
    def make(message="m", **changes):
        facts = {"parents": [], "metarange": "r", "created_at": START, "committer": "c", "metadata": {}} | changes
        return new_commit(message=message, **facts)

    assert make() == make()
    assert make(created_at=START + timedelta(microseconds=999_999)) == make()
    assert make(created_at=START + timedelta(seconds=1)).id != make().id
    assert [make().generation, make(parents=[make()]).generation] == [1, 2]
    assert make(parents=[replace(make(), generation=0)]).generation == 1  # a root of an older desilt
    ids = {make().id, make("n").id, make(metarange="s").id, make(parents=[make()]).id, make(metadata={"k": "v"}).id}
    assert len(ids) == 5
