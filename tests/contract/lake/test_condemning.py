"""The transaction that condemns, check by check: among others that nobody holds, each holder keeps its own out."""

from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest

from desilt.columns.schemas import DIVIDER, MOMENT, PLAN
from desilt.domain.ticket import Ticket
from desilt.domain.times import microseconds
from desilt.errors import FencedOff
from desilt.executors.executor import HERE
from desilt.lake import tickets
from desilt.records import condemning, ledger, locks, removals
from desilt.records.holds import HoldKind
from desilt.records.ledger import RunRow, RunState
from desilt.records.removals import State, Tombstone
from desilt.repository.gate import Batch, Reliance
from desilt.repository.snapshot import Revision

pytestmark = pytest.mark.usefixtures("unsound")  # its tombstones are of objects that never were

OLD = datetime(2025, 1, 1, tzinfo=UTC)
RUN, EARLIER = "run-now", "run-before"
KEPT, FREE = "branches/b/p/kept", ["branches/b/p/free 1", 'branches/b/p/free "2"', "branches/b/p/frei-ß"]
RULES = {"a rule": FREE[:1], "unreferenced": FREE[1:]}


def begun(repo, run, state=RunState.SWEEPING):
    with repo.database.write() as tx:
        ledger.begin(tx, repo.uid, RunRow(run, "gc", "{}", "delete", OLD, None, state, 1, 1))


def rows_of(*addresses):
    details = [f"a rule{DIVIDER}a path" if one == FREE[0] else "nobody holds it" for one in addresses]
    said = [["remove"] * len(addresses), ["unreferenced"] * len(addresses), details]
    sizes = [len(one) for one in addresses]
    return pa.table([list(addresses), sizes, pa.array([OLD] * len(addresses), MOMENT), *said], schema=PLAN)


def revision(repo) -> Revision:
    return repo.source(HERE).snapshot(repo.clock()).revision


def condemn(repo, *addresses, since=None, lock=None):
    """Judged at a revision; what is held again."""
    now = repo.clock()
    trusted = Reliance(now, now, dropped_for=timedelta(days=1))
    batch = Batch(RUN, 0, rows_of(*addresses), since or revision(repo))
    held = repo.gate.held(RUN, batch.since, trusted)
    if lock is not None:
        return repo.gate.condemn(batch, held, trusted, lock)
    with locks.held(repo.database, repo.uid, run=RUN) as mine:
        return repo.gate.condemn(batch, held, trusted, mine)


def stones(repo, *addresses):
    with repo.database.read() as tx:
        return removals.recorded(tx, repo.uid, addresses)


def recorded(state, *, run=EARLIER, at=OLD, restored_at=None, runs=RunState.SWEPT):
    def hold(repo):
        begun(repo, run, runs)
        with repo.database.write() as tx:
            removals.condemn(tx, repo.uid, [Tombstone(KEPT, run, "x", at, state=state, batch=7)])
            if restored_at:
                removals.lift(tx, repo.uid, run, [KEPT], state, at=restored_at)

    return hold


def staged(repo):
    with repo.database.write() as tx:
        (token,) = (row[0] for row in tx.rows("SELECT token FROM branches"))
        tx.execute("INSERT INTO staging (token, path, value, address) VALUES (?, ?, ?, ?)", token, b"p", b"", KEPT)


def upload(repo):
    with repo.database.write() as tx:
        tickets.hold(tx, Ticket(repo.uid, "b", "p", KEPT, microseconds(repo.clock() + timedelta(hours=1))))


def dropped(repo):
    with repo.database.write() as tx:
        tx.execute(
            "INSERT INTO dropped (repository, address, branch, path, dropped_at) VALUES (?, ?, 'b', ?, ?)",
            *(repo.uid, KEPT, b"p", microseconds(repo.clock())),
        )


def ordered(repo):
    repo.store.put(repo.prefix + KEPT, [b"x"])
    repo.orders.add(HoldKind.ADDRESS, KEPT, reason="evidence", until=None)


NOW = datetime(2026, 1, 1, tzinfo=UTC)  # where the clock begins
HOLDERS = {
    "staged": (staged, "it is staged"),
    "an upload": (upload, "an upload under way holds it"),
    "dropped": (dropped, "it was dropped lately"),
    "an order": (ordered, "what came after the plan holds it"),
    "this run": (recorded(State.CONDEMNED, run=RUN, runs=RunState.SWEEPING), "the plan names it twice"),
    "coming back": (recorded(State.RESTORING, restored_at=OLD), "it was restored since"),
    "back": (recorded(State.RESTORED, restored_at=NOW), "it was restored since"),
    "marked": (recorded(State.MARKED), f"run {EARLIER} has marked it for the store to remove"),
    "tagged": (recorded(State.TAGGED), f"run {EARLIER} has marked it for the store to remove"),
    "discarded": (recorded(State.DISCARDED), "hard delete removes it"),
    "claimed": (recorded(State.CLAIMED), "hard delete removes it"),
    "in the trash": (recorded(State.TRASHED), f"run {EARLIER} moved it to the trash"),
    "removed": (recorded(State.REMOVED, at=NOW), f"run {EARLIER} removed it"),
    "gone": (recorded(State.GONE, at=NOW), f"run {EARLIER} removed it"),
    "condemned": (recorded(State.CONDEMNED, runs=RunState.SWEEPING), f"run {EARLIER} is about to remove it"),
}


@pytest.mark.parametrize(("hold", "why"), HOLDERS.values(), ids=HOLDERS)
def test_what_is_held_stays_as_it_is_and_the_others_are_condemned(repo, hold, why):
    since = revision(repo)
    hold(repo)
    begun(repo, RUN)
    before = stones(repo, KEPT)
    assert condemn(repo, FREE[0], KEPT, *FREE[1:], since=since) == {KEPT: why}
    assert stones(repo, KEPT) == before
    found = stones(repo, *FREE)
    assert found.keys() == set(FREE)
    for rule, some in RULES.items():
        for address in some:
            stone = found[address]
            assert (stone.run, stone.rule, stone.batch, stone.state) == (RUN, rule, 0, State.CONDEMNED)
            assert stone.size == len(address)
            assert abs(stone.condemned_at - repo.clock()) < timedelta(minutes=5)
    with repo.database.read() as tx:
        ahead = ledger.batch(tx, repo.uid, RUN, 0)
    assert (ahead.file, ahead.asked, ahead.held_again, ahead.tables) == ("", len(FREE), 1, 0)


def test_what_an_earlier_run_is_done_with_passes_to_this_one(repo):
    recorded(State.FAILED)(repo)
    begun(repo, RUN)
    assert condemn(repo, KEPT) == {}
    stone = stones(repo, KEPT)[KEPT]
    assert (stone.run, stone.batch, stone.state, stone.restored_at) == (RUN, 0, State.CONDEMNED, None)


def test_refs_that_moved_after_the_look_are_looked_at_first(repo, monkeypatch):
    begun(repo, RUN)
    since, kind = revision(repo), type(repo.gate.held(RUN, revision(repo), Reliance(OLD, OLD)))
    looked, real = [], kind.catch_up

    def catch_up(self):
        real(self)
        if not looked:
            ordered(repo)  # right after the first look
        looked.append(self.generation)

    monkeypatch.setattr(kind, "catch_up", catch_up)
    assert condemn(repo, KEPT, *FREE, since=since).keys() == {KEPT}
    assert len(looked) == 2
    assert stones(repo, KEPT) == {}


def test_whoever_lost_the_lock_writes_nothing(repo):
    begun(repo, RUN)
    with locks.held(repo.database, repo.uid, run=RUN) as lock:
        pass
    with pytest.raises(FencedOff):
        condemn(repo, *FREE, lock=lock)
    assert stones(repo, *FREE) == {}


def test_a_batch_that_is_on_record_stays_as_it_was(repo):
    begun(repo, RUN)
    assert condemn(repo, *FREE[:2]) == {}
    before = stones(repo, *FREE)
    assert condemn(repo, *FREE) == {FREE[2]: "held again"}
    assert stones(repo, *FREE) == before


def test_a_ticket_or_a_drop_in_another_repository_holds_nothing_here(lake, repo):
    other = lake.create_repository("other")
    upload(other)
    dropped(other)
    begun(repo, RUN)
    assert condemn(repo, KEPT, *FREE) == {}


def test_tombstones_of_a_batch_are_as_many_as_they_name(repo):
    many = {f"branches/b/p/{number:05d}": number for number in range(2_500)}
    with repo.database.write() as tx:
        condemning.condemn(tx, repo.uid, RUN, 3, {"a": many}, at=OLD)
    with repo.database.read() as tx:
        found = {one.address: one.size for one in removals.of_run(tx, repo.uid, RUN, batch=3)}
    assert found == many
