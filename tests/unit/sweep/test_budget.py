"""Deletes by the second: cut into leases, waited for, and looked at in between; without a limit, nothing of it."""

from datetime import UTC, datetime

import pytest

from desilt.clock import elapsed
from desilt.errors import FencedOff
from desilt.objects.store import Outcome, Result
from desilt.records import budget as leases
from desilt.sweep import delete as deleting
from desilt.sweep.budget import Budget
from desilt.sweep.delete import Sure, delete

NOW = datetime(2026, 1, 1, tzinfo=UTC)
KEYS = [f"k{number:04d}" for number in range(1000)]


@pytest.fixture(autouse=True)
def _still(monkeypatch):
    """The clock of the database stands: whoever is told to wait waits for all before it, to the microsecond."""
    monkeypatch.setattr("desilt.records.sqlite.system_clock", lambda: NOW)


class Slept(list):
    def __call__(self, seconds):
        self.append(seconds)


class Store:
    """Takes every key away but those that it is told to fail at, so many times."""

    moves_cheaply = True

    def __init__(self, **failures):
        self.failures, self.calls = dict(failures), []

    def delete_many(self, keys, *, between):
        between()
        self.calls.append(list(keys))
        return [self._one(key) for key in keys]

    def _one(self, key):
        if self.failures.get(key, 0):
            self.failures[key] -= 1
            return Outcome(key, Result.FAILED, "SlowDown")
        return Outcome(key, Result.REMOVED)


def given_out(repo):
    with repo.records.read() as tx:
        return tx.one("SELECT given_out, as_of FROM delete_budgets WHERE repository = ?", repo.uid)


def sure(looks=None):
    return Sure(lambda: looks.append(1) if looks is not None else None, since=elapsed() if looks is None else -1e9)


def test_without_a_limit_all_goes_at_once_and_nothing_is_written(memory_repo):
    store, slept = Store(), Slept()
    outcomes = delete(store, KEYS, trash=None, sure=sure(), budget=Budget(memory_repo, None, slept))
    assert [one.key for one in outcomes] == KEYS
    assert ([len(call) for call in store.calls], slept, given_out(memory_repo)) == ([1000], [], None)


def test_a_batch_is_cut_into_leases_of_a_second(memory_repo):
    store, slept = Store(), Slept()
    outcomes = delete(store, KEYS, trash=None, sure=sure(), budget=Budget(memory_repo, 100, slept))
    assert [one.key for one in outcomes] == KEYS
    assert [len(call) for call in store.calls] == [100] * 10
    assert slept == [1, 2, 3, 4, 5, 6, 7, 8, 9]  # the first is not waited for


@pytest.mark.parametrize(("rate", "calls"), [(1, [1] * 5), (2, [2, 2, 1]), (7, [5])])
def test_a_lease_is_never_of_more_than_a_second_allows(memory_repo, rate, calls):
    store = Store()
    delete(store, KEYS[:5], trash=None, sure=sure(), budget=Budget(memory_repo, rate, Slept()))
    assert [len(call) for call in store.calls] == calls


def test_two_tasks_share_what_there_is(memory_repo):
    first, second = Slept(), Slept()
    delete(Store(), KEYS[:50], trash=None, sure=sure(), budget=Budget(memory_repo, 10, first))
    delete(Store(), KEYS[50:60], trash=None, sure=sure(), budget=Budget(memory_repo, 10, second))
    assert (first, second) == ([1, 2, 3, 4], [5])


def test_the_lock_is_looked_at_after_every_wait(memory_repo, monkeypatch):
    monkeypatch.setattr(deleting, "SURE_SECONDS", -1.0)
    looks = []
    delete(Store(), KEYS, trash=None, sure=sure(looks), budget=Budget(memory_repo, 100, Slept()))
    assert len(looks) == 10


def test_who_lost_the_lock_while_it_waited_deletes_nothing_more(memory_repo, monkeypatch):
    store = Store()
    lost = []

    def look():
        if lost:
            raise FencedOff("run", "another")

    monkeypatch.setattr(deleting, "SURE_SECONDS", -1.0)
    budget = Budget(memory_repo, 100, lost.append)  # as soon as it waits
    with pytest.raises(FencedOff):
        delete(store, KEYS, trash=None, sure=Sure(look, since=elapsed()), budget=budget)
    assert [len(call) for call in store.calls] == [100]


def test_what_is_refused_is_tried_again_after_pauses_that_grow_and_differ(memory_repo, monkeypatch):
    monkeypatch.setattr(deleting, "PAUSES", (1.0, 10.0, 100.0))
    pauses = []
    for _ in range(5):
        store, slept = Store(k0001=3), Slept()
        outcomes = delete(store, KEYS[:3], trash=None, sure=sure(), budget=Budget(memory_repo, None, slept))
        assert {one.result for one in outcomes} == {Result.REMOVED}
        assert store.calls == [KEYS[:3], ["k0001"], ["k0001"], ["k0001"]]
        assert [0.5 <= slept[0] <= 1.5, 5 <= slept[1] <= 15, 50 <= slept[2] <= 150] == [True] * 3
        pauses += slept
    assert len(set(pauses)) == 15


def test_a_refusal_holds_everybody_back_who_shares_the_budget(memory_repo, monkeypatch):
    monkeypatch.setattr(deleting, "PAUSES", (1000.0,))
    monkeypatch.setattr(deleting, "SPREAD", (1.0, 1.0))
    mine, others = Slept(), Slept()
    delete(Store(k0000=1), KEYS[:1], trash=None, sure=sure(), budget=Budget(memory_repo, 100, mine))
    delete(Store(), KEYS[1:2], trash=None, sure=sure(), budget=Budget(memory_repo, 100, others))
    assert (mine, others) == ([1000.0, 1000.0], [1000.01])  # its own second try, then they


def test_a_store_that_is_silent_is_not_asked_for_the_rest(memory_repo, monkeypatch):
    """Each lease would take as long as all of them would without a limit."""
    monkeypatch.setattr(deleting, "PAUSES", ())
    monkeypatch.setattr(deleting, "SILENT_SECONDS", -1.0)
    store = Store(**dict.fromkeys(KEYS, 9))
    outcomes = delete(store, KEYS, trash=None, sure=sure(), budget=Budget(memory_repo, 100, Slept()))
    assert [len(call) for call in store.calls] == [100]
    assert [one.key for one in outcomes] == KEYS
    assert {one.result for one in outcomes} == {Result.FAILED}


def test_one_that_answers_slowly_is_asked_for_all(memory_repo, monkeypatch):
    monkeypatch.setattr(deleting, "PAUSES", ())
    monkeypatch.setattr(deleting, "SILENT_SECONDS", -1.0)
    store = Store(**dict.fromkeys(KEYS[:99], 9))  # all of a lease but one
    outcomes = delete(store, KEYS, trash=None, sure=sure(), budget=Budget(memory_repo, 100, Slept()))
    assert sum(len(call) for call in store.calls) == 1000
    assert sum(one.result is Result.FAILED for one in outcomes) == 99


def test_a_dead_task_wastes_its_lease_and_no_more(memory_repo):
    with memory_repo.records.write() as tx:
        leases.lease(tx, memory_repo.uid, 1.0)  # and is never heard of again
    slept = Slept()
    delete(Store(), KEYS[:100], trash=None, sure=sure(), budget=Budget(memory_repo, 100, slept))
    assert slept == [1.0]


@pytest.mark.parametrize("silent_for", [1, 9])
def test_what_was_never_asked_for_and_is_gone_is_not_counted_as_removed(memory_repo, monkeypatch, silent_for):
    """The store was silent, so most was put off; somebody else took it meanwhile."""
    monkeypatch.setattr(deleting, "SILENT_SECONDS", -1.0)
    monkeypatch.setattr(deleting, "PAUSES", (0.0,))
    store, gone = memory_repo.store, []

    class Silent:
        moves_cheaply = False
        head = staticmethod(store.head)

        def delete_many(self, keys, *, between):
            between()
            if len(gone) < silent_for:
                gone.append(store.delete_many(KEYS[:20]))
                return [Outcome(key, Result.FAILED, "no answer") for key in keys]
            return store.delete_many(keys)

    for key in KEYS[:20]:
        store.put(key, [b"x"])
    found = delete(
        Silent(),
        KEYS[:20],
        trash=None,
        sure=Sure(lambda: None, since=elapsed()),
        budget=Budget(memory_repo, 10, Slept()),
    )
    assert [one.result for one in found] == [Result.REMOVED] * 10 + [Result.GONE] * 10
