"""Flows on a lake with hard delete, in every order of their steps: nothing is lost, nothing leaks, nobody is stuck.

One step is one transaction, or one call to the store. What the search is worth is shown
on lakes that lack one of the conditions that hard delete rests on.
"""

import itertools
import threading
from dataclasses import replace

import pytest

from desilt.errors import NotFound
from desilt.lake import discards, fresh, heads, refs, staging, undiscard, writes
from desilt.lake import hard_delete as lake_hard_delete
from desilt.records import removals as tombstones
from desilt.records.database import open_database
from desilt.records.removals import State
from desilt.testing.every_turn import search
from desilt.testing.explore.history import Harm
from desilt.testing.faults import After
from turns import FLOWS, STARTS, Cut, Start, World

MOST_OF_THREE = 40
MOST = 300  # histories of a pair in which one dies: its record in the journal meets everything


@pytest.fixture
def started(tmp_path_factory):
    """A function that makes a start, by its name."""
    made = []

    def start(name):
        database = open_database(f"sqlite://{tmp_path_factory.mktemp('turns')}/lake.db", create=True)
        made.append(database)
        return Start(database, STARTS[name])

    yield start
    for database in made:
        database.close()


DROPS = ("put a", "move b a", "remove b", "reset")
SOME = [
    *itertools.combinations_with_replacement(DROPS, 2),
    *itertools.product(DROPS, ("copy a e", "hold b*", "off and on")),
    *itertools.product(("reset", "restore", "time"), ("restore", "worker", "collector")),
    ("put n", "collector"), ("link n", "collector"), ("copy to dev", "reset"), ("copy to dev", "delete dev"),
    ("stage elsewhere", "remove b"), ("reset b*", "move a c"), ("hold a", "worker"), ("worker", "worker"),
]  # fmt: skip
"""Pairs of flows that have something to do with each other."""
TAKES = [("commit", one) for one in ("put a", "remove b", "reset", "copy a e, remove e", "off", "worker")]


@pytest.mark.parametrize("name", STARTS)
def test_two_flows_in_every_order_of_their_steps(started, name):
    start = started(name)
    for pair in [*SOME, *(TAKES if name == "sealed" else ())]:
        found = search(World(start, pair))
        assert not found.violations, f"{name}, {pair}:\n{found}"


@pytest.mark.slow
@pytest.mark.parametrize("name", STARTS)
def test_any_two_flows_in_every_order_of_their_steps(started, name, record_property):
    start, histories = started(name), 0
    for pair in itertools.combinations_with_replacement(FLOWS, 2):
        found = search(World(start, pair))
        assert not found.violations, f"{name}, {pair}:\n{found}"
        histories += found.histories
    record_property("histories", histories)


SHORT = ("put a", "move b a", "remove b", "reset", "copy a e, remove e")
TWO = [*itertools.combinations_with_replacement((*SHORT, "worker"), 2), *itertools.product(["commit"], SHORT)]
THIRD = (*SHORT, "commit", "hold b*", "off", "restore", "worker", "collector", "time")


@pytest.mark.slow
@pytest.mark.parametrize("name", STARTS)
def test_two_flows_step_by_step_and_a_third_between_any_of_their_steps(started, name, record_property):
    """The bounds on three: one of them is done in one piece, and so many histories of each."""
    start, histories = started(name), 0
    for pair, third in itertools.product(TWO, THIRD):
        if third not in pair:
            found = search(World(start, [*pair, third], whole={third}), most=MOST_OF_THREE)
            assert not found.violations, f"{name}, {pair}, {third}:\n{found}"
            histories += found.histories
    record_property("histories", histories)


# ---- flows that die


def crashes(start, flow):
    """The steps after which ``flow`` leaves something else than after the one before."""
    world, last = World(start, [flow]), None
    search(world)
    for number in range(world.taken):
        search(World(start, [Cut(flow, After(number))]))
        with start.database.read() as tx:
            left = {name: tx.rows(f"SELECT * FROM {name}") for name in start.tables}, dict(start.store._objects)
        if left != last and number + 1 < world.taken:
            yield Cut(flow, After(number))
        last = left


def test_a_worker_dies_at_any_of_its_steps(started):
    start = started("discarded")
    for cut, other in itertools.product(list(crashes(start, "worker")), ("restore", "worker")):
        found = search(World(start, [cut, other]), most=15)
        assert not found.violations, f"{cut}, {other}:\n{found}"


MORTAL = ("put a", "move b a", "reset", "commit", "delete dev", "hold b*", "off", "restore", "worker")
OTHERS = ("put a", "reset", "copy a e, remove e", "commit", "worker", "restore")


@pytest.mark.slow
@pytest.mark.parametrize("name", STARTS)
def test_one_of_two_flows_dies_at_any_of_its_steps(started, name, record_property):
    start, histories = started(name), 0
    for flow in MORTAL:
        for cut, other in itertools.product(list(crashes(start, flow)), OTHERS):
            found = search(World(start, [cut, other]), most=MOST)
            assert not found.violations, f"{name}, {cut}, {other}:\n{found}"
            histories += found.histories
    record_property("histories", histories)


# ---- what the search leaves out


@pytest.mark.parametrize(
    ("name", "pair"),
    [
        ("copied", ("put a", "put b")),
        ("sealed", ("put a", "remove a")),
        pytest.param("discarded", ("hold a", "delete dev"), marks=pytest.mark.slow),
        ("discarded", ("put a", "off")),
        ("committed", ("reset", "copy a e")),
    ],
)
def test_histories_that_are_left_out_end_as_others_do(started, name, pair):
    start = started(name)
    ends, histories = [], []
    for reduced in (False, True):
        start.verdicts.clear()
        world = World(start, pair)
        histories.append(search(world, reduced=reduced).histories)
        ends.append(set(start.verdicts))
    assert ends[0] == ends[1]
    assert histories[1] < histories[0]


# ---- lakes that lack a condition


class Rewritten:
    """A transaction in which one statement says something else."""

    def __init__(self, real, old, new):
        self._real, self._old, self._new = real, old, new

    def execute(self, sql, *values):
        return self._real.execute(sql.replace(self._old, self._new), *values)

    def rows(self, sql, *values):
        return self._real.rows(sql.replace(self._old, self._new), *values)

    def __getattr__(self, name):
        return getattr(self._real, name)


def nothing(*_, **__):
    pass


def addresses_in(tx, tokens):
    """What areas, newest first, make part of a commit."""
    shown = {}
    for token in reversed(tokens):
        shown.update(tx.rows("SELECT path, address FROM staging WHERE token = ?", token))
    return {address for address in shown.values() if address}


def no_longer(tx, repository, addresses):
    for one in addresses:
        tx.execute("DELETE FROM fresh WHERE repository = ? AND address = ?", repository, one)


def without_removal_of_rows(patch):
    patch.setattr(fresh, "take", nothing)


def removal_after_the_rule(patch):
    real = staging.take

    def take(tx, tokens, dropping):
        shown = addresses_in(tx, tokens)
        real(tx, tokens, dropping)
        discards.condemn(tx, dropping.repository, dropping.fresh, at=dropping.at)
        no_longer(tx, dropping.repository, shown)

    patch.setattr(fresh, "take", nothing)
    patch.setattr(staging, "take", take)


def removal_in_a_transaction_after(patch):
    real = heads.Committer._move

    def move(self, branch, seen, *values, taking=(), **named):
        with self._core.database.read() as tx:
            shown = addresses_in(tx, taking)
        made = real(self, branch, seen, *values, taking=taking, **named)
        with self._core.database.write() as tx:
            no_longer(tx, self._core.uid, shown if made else ())
        return made

    patch.setattr(fresh, "take", nothing)
    patch.setattr(heads.Committer, "_move", move)


def removal_in_a_transaction_before(patch):
    real = heads.Committer._move

    def move(self, branch, seen, *values, taking=(), **named):
        with self._core.database.write() as tx:
            no_longer(tx, self._core.uid, addresses_in(tx, taking))
        return real(self, branch, seen, *values, taking=taking, **named)

    patch.setattr(fresh, "take", nothing)
    patch.setattr(heads.Committer, "_move", move)


def no_look_at_sealed_areas(patch):
    real, old = discards.condemn, "FROM staging WHERE address"
    new = "FROM staging WHERE token IN (SELECT token FROM branches) AND address"
    patch.setattr(discards, "condemn", lambda tx, *values, **named: real(Rewritten(tx, old, new), *values, **named))


def no_look_for_other_references(patch):
    real, old, new = discards.condemn, "FROM staging WHERE address", "FROM staging WHERE 1 = 0 AND address"
    patch.setattr(discards, "condemn", lambda tx, *values, **named: real(Rewritten(tx, old, new), *values, **named))


def decided_at_once(patch):
    real = staging.stage

    def stage(tx, token, path, value, dropping):
        real(tx, token, path, value, dropping)
        if dropping.fresh:
            discards.condemn(tx, dropping.repository, dropping.fresh, at=dropping.at)

    patch.setattr(staging, "stage", stage)


def copies_write_rows(patch):
    real = staging.stage

    def stage(tx, token, path, value, dropping):
        if value is not None:
            fresh.add(tx, dropping.repository, staging.address_of(path, value), 1)
        real(tx, token, path, value, dropping)

    patch.setattr(staging, "stage", stage)


def uploads_write_no_rows(patch):
    patch.setattr(fresh, "add", nothing)


def no_compare_of_sealed_areas(patch):
    real, mine = heads.Committer._move, threading.local()

    class Refs:
        @staticmethod
        def branch(*values, **named):
            found = refs.branch(*values, **named)
            taking = getattr(mine, "taking", ())
            return replace(found, sealed=taking) if taking else found

        def __getattr__(self, name):
            return getattr(refs, name)

    def move(self, *values, taking=(), **named):
        mine.taking = taking
        try:
            return real(self, *values, taking=taking, **named)
        finally:
            mine.taking = ()

    patch.setattr(heads, "refs", Refs())
    patch.setattr(heads.Committer, "_move", move)


def no_look_at_tombstones(patch):
    patch.setattr(tombstones, "refuse_gone", nothing)


def no_second_look_at_staged(patch):
    """What a copy saw staged before its transaction is what it goes by."""

    def amend(self, branch, keys, stage):
        with self._core.database.read() as tx:
            seen = refs.branch(tx, self._core.uid, branch)
            values = [staging.find(tx, seen.tokens, key)[1] for key in keys]
        if None in values:
            raise NotFound("object", "staged")
        with self._core.database.write() as tx:
            return stage(tx, refs.branch(tx, self._core.uid, branch), values)

    patch.setattr(writes.Writer, "_amend", amend)


def no_holds_in_the_rule(patch):
    real, held, deciding = discards.condemn, discards.held_among, []

    def condemn(*values, **named):
        deciding.append(True)
        real(*values, **named)
        deciding.pop()

    patch.setattr(discards, "condemn", condemn)
    patch.setattr(discards, "held_among", lambda *values: set() if deciding else held(*values))


def no_holds_in_claims(patch):
    class Nobody:
        every = staticmethod(lambda *_: [])

    patch.setattr(lake_hard_delete, "holds", Nobody)


def claimed_ones_are_restored(patch):
    class Free:
        def __getattr__(self, name):
            return getattr(tombstones, name)

        def found_in(self, *values):
            found = tombstones.found_in(*values)
            return {one: replace(stone, state=State.DISCARDED) for one, stone in found.items()}

    patch.setattr(undiscard, "tombstones", Free())


LACKING = [
    ([without_removal_of_rows], "committed", ["reset"], Harm.LOSS),
    ([removal_after_the_rule], "sealed", ["commit"], Harm.LOSS),
    ([removal_in_a_transaction_after], "copied", ["commit", "copy a e, remove e"], Harm.LOSS),
    ([removal_in_a_transaction_before], "copied", ["commit", "reset"], Harm.LEAK),
    ([no_look_at_sealed_areas], "sealed", ["remove b"], Harm.LOSS),
    ([no_look_for_other_references], "copied", ["remove b"], Harm.LOSS),
    ([decided_at_once], "committed", ["move b a"], Harm.LOSS),
    ([copies_write_rows], "committed", ["reset"], Harm.LOSS),
    ([uploads_write_no_rows], "copied", ["put n", "reset"], Harm.LEAK),
    ([no_compare_of_sealed_areas], "copied", ["commit", "reset"], Harm.LOSS),
    ([no_look_at_tombstones], "copied", ["put n", "collector"], Harm.LOSS),
    ([no_look_at_tombstones], "copied", ["copy a e", "reset"], None),  # each of the two hides the other
    ([no_second_look_at_staged], "copied", ["copy a e", "reset"], None),
    ([no_look_at_tombstones, no_second_look_at_staged], "copied", ["copy a e", "reset"], Harm.LOSS),
    ([no_holds_in_the_rule], "copied", ["hold a", "reset", "worker"], None),
    ([no_holds_in_claims], "copied", ["hold a", "reset", "worker"], Harm.LOSS),
    ([claimed_ones_are_restored], "discarded", ["restore", "worker"], Harm.LOSS),
]


@pytest.mark.parametrize(
    ("lacking", "name", "flows", "harm"), LACKING, ids=[" ".join(one.__name__ for one in row[0]) for row in LACKING]
)
def test_a_lake_that_lacks_a_condition_is_found_out(started, monkeypatch, lacking, name, flows, harm):
    """By what is lost or left, not by its rows."""
    for one in lacking:
        one(monkeypatch)
    found = search(World(started(name), flows, rows=False), stop=False, most=50)
    assert set(found.violations) == ({harm} if harm else set()), str(found)
    print(found)  # noqa: T201


@pytest.mark.parametrize(
    ("lacking", "name", "flows"),
    [
        ([no_look_for_other_references], "copied", ["put a", "put b"]),
        ([decided_at_once], "committed", ["move b a", "put a"]),
        ([uploads_write_no_rows], "copied", ["put n", "put n"]),
        ([no_look_at_tombstones, no_second_look_at_staged], "copied", ["copy a e", "reset"]),
    ],
)
def test_what_is_wrong_is_found_in_the_histories_that_are_not_left_out(started, monkeypatch, lacking, name, flows):
    for one in lacking:
        one(monkeypatch)
    start = started(name)
    every, some = (search(World(start, flows, rows=False), reduced=reduced, stop=False) for reduced in (False, True))
    assert set(every.violations) == set(some.violations) != set()
    assert some.histories < every.histories
