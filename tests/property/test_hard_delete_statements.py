"""Flows on a lake with hard delete in PostgreSQL, interleaved statement by statement: nothing is lost, nothing leaks.

Between whole transactions, two that each look for the other's row never miss it;
between statements they can.
"""

import itertools
import random
import time

import pytest

from desilt.lake import heads, repositories, staging
from desilt.records.database import open_database
from desilt.records.postgres import PostgreSQLTransaction
from desilt.testing.every_turn import Violation, same_chances
from desilt.testing.explore.history import Harm
from desilt.testing.faults import Turns
from turns import STARTS, Start, World

PATIENCE = 0.02  # seconds, until one that is silent is taken to wait for a lock


@pytest.fixture
def started(fresh_postgres_url):
    made = []

    def start(name):
        database = open_database(fresh_postgres_url())
        made.append(database)
        return Start(database, STARTS[name])

    yield start
    for database in made:
        database.close()


def live(start, flows, choose, *, rows=True):
    """One history; what is wrong with it, or None."""
    world = World(start, flows, fine=True, rows=rows)
    turns = Turns(choose, patience=PATIENCE, limit=60)
    with same_chances():
        try:
            turns.run(world.flows(turns.pause))
            world.judge()
        except Violation as wrong:
            return wrong
    return None


def at_random(chances):
    """Whoever is at work goes on for a while."""
    last = [None]

    def choose(waiting):
        if last[0] not in waiting or chances.random() < 0.3:
            last[0] = chances.choice(waiting)
        return last[0]

    return choose


def by_turns(first, *counts):
    """``first`` takes so many steps, then the other so many, and so on; then whoever can."""
    left = list(counts)

    def choose(waiting):
        while left:
            who = first if len(left) % 2 == len(counts) % 2 else next((one for one in waiting if one != first), None)
            if left[0] and who in waiting:
                left[0] -= 1
                return who
            left.pop(0)
        return waiting[0]

    return choose


DROPS = ("put a", "put b", "link n", "move b a", "remove b", "reset", "stage elsewhere")
PAIRS = [
    *itertools.combinations_with_replacement(DROPS, 2),
    *itertools.product(
        DROPS, ("commit", "off", "hold b*", "restore", "worker", "collector", "delete dev", "copy to dev")
    ),
]


def sampled(started, name, *, seconds, most):
    start, chances, histories = started(name), random.Random(f"{name} {most}"), 0
    until = time.monotonic() + seconds
    while histories < most and time.monotonic() < until:
        flows = chances.choice(PAIRS)
        seed = chances.random()
        wrong = live(start, flows, at_random(random.Random(seed)))
        assert wrong is None, f"{name}, {flows}, {seed}: {wrong}"
        histories += 1
    return histories


@pytest.mark.parametrize("name", ["copied", "sealed"])
def test_some_histories_of_two_flows_statement_by_statement(started, name):
    assert sampled(started, name, seconds=4, most=100)


@pytest.mark.slow
@pytest.mark.parametrize("name", STARTS)
def test_many_histories_of_two_flows_statement_by_statement(started, name, record_property):
    record_property("histories", sampled(started, name, seconds=300, most=3000))


# ---- two puts over two copies of one object: the last two references to it


def steps_of(start, flow):
    """How many steps it takes alone."""
    counted = itertools.count()
    live(start, [flow], lambda waiting: (next(counted), waiting[0])[1])
    return next(counted)


def orders(start, *, most=None):
    """Every order of statements in which one of the two is interrupted once, by so much of the other."""
    length = steps_of(start, "put a")
    every = [
        (who, at, much) for who in ("put a", "put b") for at in range(3, length + 1) for much in range(3, length + 1)
    ]
    return every if most is None else random.Random(0).sample(every, most)


def two_puts(start, some):
    for who, at, much in some:
        wrong = live(start, ["put a", "put b"], by_turns(who, at, much))
        if wrong is not None:
            return f"{who} after {at} steps, then {much} of the other: {wrong}"
    return None


def test_two_puts_over_two_copies_of_one_object_leave_nothing(started):
    start = started("copied")
    assert two_puts(start, orders(start, most=25)) is None


@pytest.mark.slow
def test_two_puts_over_two_copies_of_one_object_leave_nothing_in_any_order(started, record_property):
    start = started("copied")
    every = orders(start)
    record_property("histories", len(every))
    assert two_puts(start, every) is None


# ---- lakes that lack a condition


def no_locks_on_rows(patch):
    patch.setattr(PostgreSQLTransaction, "lock_rows", lambda *_: None)


def the_staged_row_comes_last(patch):
    """What is dropped is noted before the staged row is one's own."""

    def stage(tx, token, path, value, dropping):
        here, address = "token = ? AND path = ?", staging.address_of(path, value)
        dropping.note(tx, here, token, path)
        tx.execute(
            "INSERT INTO staging (token, path, value, address) VALUES (?, ?, ?, ?) "
            "ON CONFLICT (token, path) DO UPDATE SET value = excluded.value, address = excluded.address",
            *(token, path, value, address),
        )

    patch.setattr(staging, "stage", stage)


def seals_without_a_lock(patch):
    """Whoever restores has looked where writes go, and nobody waits for him."""

    class Repositories:
        writing = staticmethod(lambda *_: None)

        def __getattr__(self, name):
            return getattr(repositories, name)

    patch.setattr(heads, "repositories", Repositories())


@pytest.mark.parametrize(
    ("lacking", "flow", "other"), [(no_locks_on_rows, "put a", "put b"), (the_staged_row_comes_last, "put n", "put n")]
)
def test_a_lake_that_lacks_a_lock_is_found_out(started, monkeypatch, lacking, flow, other):
    lacking(monkeypatch)
    start = started("copied")
    length = steps_of(start, flow)
    some = [(at, much) for at in range(3, length) for much in (length - 1, length)]  # all but its commit, or all
    wrong = (live(start, [flow, other], by_turns(flow, at, much), rows=False) for at, much in some)
    assert next(one for one in wrong if one).harm is Harm.LEAK


def test_a_seal_that_waits_for_nobody_who_restores_is_found_out(started, monkeypatch):
    seals_without_a_lock(monkeypatch)
    start = started("discarded")
    length = steps_of(start, "restore")
    orders = itertools.product(range(length // 2, length), (12, 16, 20, 2**10))
    wrong = (live(start, ["restore", "commit"], by_turns("restore", *one), rows=False) for one in orders)
    assert next(one for one in wrong if one).harm is Harm.LEAK
