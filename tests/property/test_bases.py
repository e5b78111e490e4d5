"""Whatever was edited and collected: merges begin where the histories met as they were made, or not at all."""

from datetime import UTC, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from desilt.clock import ManualClock
from desilt.domain.history import Commit, merge_base
from desilt.lake import Lake, bases, commits, refs, schema
from desilt.lake.refs import Tag
from desilt.objects.memory import MemoryStore
from desilt.records.database import open_database
from words import collect, reparent

START = datetime(2026, 1, 1, tzinfo=UTC)


def closure(parents, *tips):
    found, todo = set(), list(tips)
    while todo:
        if (name := todo.pop()) not in found:
            found.add(name)
            todo += parents[name]
    return found


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_the_base_of_a_merge_is_the_one_of_history_as_it_was_made(tmp_path_factory, data):
    database = open_database(f"sqlite://{tmp_path_factory.mktemp('bases')}/lake.db", create=True)
    schema.create(database, storage="")
    clock = ManualClock(START + timedelta(days=1))
    repo = Lake(database, MemoryStore(clock=clock), clock=clock).create_repository("demo")
    first = repo.resolve("main").commit
    made = {first.id: first}

    def draw(some, **how):
        return data.draw(st.lists(st.sampled_from(sorted(some)), unique=True, **how))

    with database.write() as tx:
        for number in range(1, data.draw(st.integers(2, 12))):
            above = draw(made, min_size=1, max_size=2)
            generation = 1 + max(made[name].generation for name in above)
            at = clock() + timedelta(minutes=data.draw(st.integers(1, 3)) + generation)
            commit = Commit(f"{number:064x}", tuple(above), "", at, "", "", {}, generation)
            commits.insert(tx, repo.uid, commit)
            made[commit.id] = commit
        pointed = draw(made)
        for name in pointed:
            refs.create_tag(tx, repo.uid, Tag(f"t{name[-3:]}", name, clock()))
    truth = {name: commit.parents for name, commit in made.items()}
    today = dict(truth)
    for name in draw(made.keys() - {first.id}):
        today[name] = tuple(draw(closure(truth, *truth[name]), min_size=1, max_size=2))
        reparent(repo, made[name], *(made[parent] for parent in today[name]))
    reached = closure(today, first.id, *pointed)
    collectable = made.keys() - reached
    gone = set(draw(collectable)) if collectable else set()
    gone -= {up for name in made.keys() - gone for up in closure(today, name)}
    collect(repo, *(made[name] for name in gone))
    left, right = (data.draw(st.sampled_from(sorted(made.keys() - gone))) for _ in range(2))
    wanted = merge_base(made.__getitem__, left, right)
    with database.read() as tx:
        found = bases.met(tx, repo.core, left, right)
    database.close()
    assert found is not None
    assert wanted is not None
    assert found.id == wanted.id
    assert (found.commit is None) == (wanted.id in gone)
    both = closure(today, left) & closure(today, right)
    assert found.abandoned == (wanted.id not in reached and wanted.id not in both)
