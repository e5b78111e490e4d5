"""The ledger: runs, their batches, what became of every object, and where the next run begins."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from desilt.errors import DesiltError
from desilt.records import ledger, pages, watermarks
from desilt.records import removals as tombstones
from desilt.records.ledger import BatchRow, RunRow, RunState
from desilt.records.removals import State, Tombstone

AT = datetime(2026, 2, 3, 4, 5, 6, 789, tzinfo=UTC)
HOUR = timedelta(hours=1)
ROW = RunRow("2-b", "gc", "old", "trash", AT, None, RunState.SWEEPING, 3, 30)


@pytest.fixture
def uid(repo):
    return repo.uid


@pytest.fixture
def write(lake):
    """``write(function, ...)`` in a transaction of its own."""

    def do(function, *values, **named):
        with lake.database.write() as tx:
            return function(tx, *values, **named)

    return do


@pytest.fixture
def read(lake):
    def do(function, *values, **named):
        with lake.database.read() as tx:
            found = function(tx, *values, **named)
            return list(found) if hasattr(found, "__next__") or isinstance(found, map) else found

    return do


# ---- runs


def test_a_run_is_on_record_as_it_was_told(write, read, uid):
    assert read(ledger.find, uid, ROW.id) is None
    write(ledger.begin, uid, ROW)
    assert read(ledger.find, uid, ROW.id) == ROW
    write(ledger.end, uid, ROW.id, RunState.PARTLY, at=AT + HOUR, fence=1)
    assert read(ledger.find, uid, ROW.id) == replace(ROW, state=RunState.PARTLY, ended_at=AT + HOUR, ended_fence=1)


def test_runs_that_are_over_and_the_last_of_each_job(write, read, uid):
    rows = [
        replace(ROW, id="1-a", state=RunState.SWEEPING),
        replace(ROW, id="2-b", state=RunState.SWEPT),
        replace(ROW, id="3-c", job="collect", state=RunState.PARTLY),
        replace(ROW, id="4-d", job="collect", state=RunState.ABANDONED, objects=7),
        replace(ROW, id="5-e", job="expire", state=RunState.SWEPT, objects=0),
    ]
    for row in rows:
        write(ledger.begin, uid, row)
    assert read(ledger.over, uid) == [("2-b", "gc", 3), ("3-c", "collect", 3), ("4-d", "collect", 7)]
    assert read(ledger.newest, uid) == {"1-a", "3-c", "5-e"}
    assert read(ledger.over, "another") == []
    assert read(ledger.newest, "another") == set()


def test_runs_that_have_something_in_a_state_all_or_some(write, read, uid):
    stones = [Tombstone(f"x{at}", f"{at}-x", "r", AT, 1, 0, state) for at, state in enumerate(State)]
    write(tombstones.condemn, uid, stones)
    wanted = (State.TRASHED, State.CONDEMNED)
    every = read(tombstones.runs_in, uid, *wanted)
    assert every == {one.run for one in stones if one.state in wanted}
    assert read(tombstones.runs_in, uid, *wanted, of=[one.run for one in stones]) == every
    assert read(tombstones.runs_in, uid, *wanted, of=[min(every), "another"]) == {min(every)}
    assert read(tombstones.runs_in, uid, *wanted, of=[]) == set()


def test_begun_twice_is_begun_once(write, read, uid):
    write(ledger.begin, uid, ROW)
    write(ledger.end, uid, ROW.id, RunState.SWEPT, at=AT + HOUR, fence=1)
    write(ledger.begin, uid, replace(ROW, objects=99))
    assert read(ledger.find, uid, ROW.id) == replace(ROW, state=RunState.SWEPT, ended_at=AT + HOUR, ended_fence=1)


def test_runs_are_told_newest_first_and_by_job(write, read, uid, lake):
    for run_id, job in (("3-c", "gc"), ("1-a", "lifecycle"), ("2-b", "gc")):
        write(ledger.begin, uid, replace(ROW, id=run_id, job=job))
    write(ledger.begin, lake.create_repository("other").uid, replace(ROW, id="0-x"))
    assert [row.id for row in read(ledger.every, uid)] == ["1-a", "2-b", "3-c"]  # ids count downwards
    assert [row.id for row in read(ledger.every, uid, job="gc")] == ["2-b", "3-c"]


def test_ending_one_run_leaves_the_others_alone(write, read, uid, lake):
    other = lake.create_repository("other").uid
    for where, run_id in ((uid, "1-a"), (uid, "2-b"), (other, "1-a")):
        write(ledger.begin, where, replace(ROW, id=run_id))
    write(ledger.end, uid, "1-a", RunState.SWEPT, at=AT, fence=1)
    assert [row.state for row in read(ledger.every, uid)] == [RunState.SWEPT, RunState.SWEEPING]
    assert read(ledger.find, other, "1-a").state is RunState.SWEEPING


def test_a_run_that_is_at_work_is_found_however_many_are_over(write, read, uid, lake):
    write(ledger.begin, lake.create_repository("other").uid, replace(ROW, id="0-x"))
    for run_id, state in (("1-a", RunState.SWEEPING), ("2-b", RunState.SWEPT), ("3-c", RunState.SWEEPING)):
        write(ledger.begin, uid, replace(ROW, id=run_id, state=state, job="gc" if run_id == "3-c" else "collect"))
    for number, state in enumerate((RunState.SWEPT, RunState.PARTLY, RunState.ABANDONED)):
        write(ledger.begin, uid, replace(ROW, id=f"4-{number}", state=state))
    assert [row.id for row in read(ledger.sweeping, uid)] == ["1-a", "3-c"]
    assert [row.id for row in read(ledger.sweeping, uid, job="gc")] == ["3-c"]
    assert read(ledger.sweeping, uid, job="expire") == []


# ---- batches


def test_a_batch_is_written_ahead_once(write, read, uid):
    write(ledger.write_ahead, uid, "run", BatchRow(0, "", asked=3, held_again=1))
    assert read(ledger.batch, uid, "run", 0) == BatchRow(0, "", asked=3, held_again=1)
    with pytest.raises(DesiltError):
        write(ledger.write_ahead, uid, "run", BatchRow(0, "", asked=9))
    assert read(ledger.batch, uid, "run", 0).asked == 3
    assert read(ledger.batch, uid, "run", 1) is None
    assert read(ledger.batch, uid, "another", 0) is None


def test_a_result_is_written_once_and_keeps_what_was_asked(write, read, uid):
    write(ledger.write_ahead, uid, "run", BatchRow(4, "", asked=6, held_again=1))
    done = BatchRow(4, "a.parquet", 99, 3, 2, 1, 99, 30)
    assert write(ledger.write_result, uid, "run", done, at=AT)
    assert read(ledger.batch, uid, "run", 4) == BatchRow(4, "a.parquet", 6, 3, 2, 1, 1, 30)
    assert not write(ledger.write_result, uid, "run", replace(done, file="b.parquet", removed=0), at=AT)
    assert read(ledger.batch, uid, "run", 4).file == "a.parquet"


def test_there_is_no_result_of_what_was_not_written_ahead(write, read, uid):
    assert not write(ledger.write_result, uid, "run", BatchRow(0, "a.parquet", 1, 1), at=AT)
    assert read(ledger.batches, uid, "run") == []


def test_batches_come_in_order_and_add_up(write, read, uid):
    for number in (10, 2, 0):
        write(ledger.write_ahead, uid, "run", BatchRow(number, "", asked=number + 1, held_again=2))
        write(ledger.write_result, uid, "run", BatchRow(number, "file", 0, number, 0, 1, 0, 10 * number), at=AT)
    rows = read(ledger.batches, uid, "run")
    assert [row.number for row in rows] == [0, 2, 10]
    assert ledger.total(rows) == BatchRow(-1, "", 15, 12, 0, 3, 6, 120)
    assert ledger.total([]) == BatchRow(-1, "")


# ---- what went lately


def removed(write, uid, run_id, at, objects, size):
    write(ledger.begin, uid, replace(ROW, id=run_id, started_at=AT - timedelta(days=9)))
    write(ledger.write_ahead, uid, run_id, BatchRow(0, "", asked=objects))
    write(ledger.write_result, uid, run_id, BatchRow(0, "file", objects, objects, removed_bytes=size), at=at)


def test_what_was_removed_since_is_summed_up_over_runs(write, read, uid, lake):
    assert read(ledger.removed_since, uid, AT) == (0, 0)
    removed(write, uid, "4-d", AT - timedelta(microseconds=1), 1, 1)
    removed(write, uid, "3-c", AT, 10, 100)
    removed(write, uid, "2-b", AT + HOUR, 20, 200)
    removed(write, lake.create_repository("other").uid, "1-a", AT + HOUR, 40, 400)
    assert read(ledger.removed_since, uid, AT) == (30, 300)
    assert read(ledger.removed_since, uid, AT - HOUR) == (31, 301)
    assert read(ledger.removed_since, uid, AT + 2 * HOUR) == (0, 0)


def test_only_what_really_went_counts(write, read, uid):
    write(ledger.begin, uid, ROW)
    write(ledger.write_ahead, uid, ROW.id, BatchRow(0, "", asked=6, held_again=4))
    assert read(ledger.removed_since, uid, AT) == (0, 0)  # it is being tried
    write(ledger.write_result, uid, ROW.id, BatchRow(0, "file", 6, 1, 2, 3, 4, 5), at=AT)
    assert read(ledger.removed_since, uid, AT) == (1, 5)


# ---- watermarks


def test_a_watermark_is_found_by_its_job_written_over_and_forgotten(write, read, uid, lake):
    other = lake.create_repository("other").uid
    assert read(watermarks.find, uid, "gc") is None
    write(watermarks.write, uid, "gc", "run-1", {"settled": {"ä": "0"}, "pending": []})
    write(watermarks.write, uid, "lifecycle", "run-2", {})
    write(watermarks.write, other, "gc", "run-3", {"other": 1})
    assert read(watermarks.find, uid, "gc") == ("run-1", {"settled": {"ä": "0"}, "pending": []})
    write(watermarks.write, uid, "gc", "run-4", {"new": True})
    assert read(watermarks.find, uid, "gc") == ("run-4", {"new": True})
    write(watermarks.forget, uid, "gc")
    forgotten = read(watermarks.find, uid, "gc")
    assert forgotten[1] == {}
    write(watermarks.forget, uid, "gc")
    assert read(watermarks.find, uid, "gc")[0] != forgotten[0]  # no plan made between can be taken for one made now
    assert read(watermarks.find, uid, "lifecycle") == ("run-2", {})
    assert read(watermarks.find, other, "gc") == ("run-3", {"other": 1})


# ---- tombstones as a ledger


def stones(run, batch, *addresses, state=State.CONDEMNED):
    return [Tombstone(address, run, "rule", AT, 7, batch, state) for address in addresses]


@pytest.fixture
def condemned(write, uid, lake):
    """Two batches of one run, one of another, and the same addresses elsewhere."""
    write(tombstones.condemn, uid, stones("run-1", 0, "b", "a") + stones("run-1", 1, "c") + stones("run-2", 0, "d"))
    other = lake.create_repository("other").uid
    write(tombstones.condemn, other, stones("run-1", 0, "a", "z"))
    return other


def states(read, where, *addresses):
    return {address: stone.state for address, stone in read(tombstones.recorded, where, addresses).items()}


def test_the_tombstones_of_a_run_are_told_whole_or_by_batch(read, uid, condemned):
    assert read(tombstones.of_run, uid, "run-1") == stones("run-1", 0, "a", "b") + stones("run-1", 1, "c")
    assert read(tombstones.of_run, uid, "run-1", batch=1) == stones("run-1", 1, "c")
    assert read(tombstones.of_run, uid, "run-1", batch=2) == []
    assert [stone.address for stone in read(tombstones.of_run, condemned, "run-1")] == ["a", "z"]


ASKED = [
    (tombstones.of_run, ("run-1",), {}),
    (tombstones.of_run, ("run-1",), {"batch": 1}),
    (tombstones.gone_by, ("run-1",), {}),
    (tombstones.batches_in, ("run-1", State.TRASHED), {}),
    (tombstones.runs_in, (State.TRASHED,), {"of": ["run-1"]}),
    (tombstones.last_restored, ("run-1",), {}),
    (tombstones.settle, ("run-1", 1, State.REMOVED), {}),
]


@pytest.mark.usefixtures("condemned")
@pytest.mark.parametrize(("ask", "values", "named"), ASKED, ids=[f"{one[0].__name__}-{len(one[2])}" for one in ASKED])
def test_what_is_asked_about_a_run_goes_through_no_tombstones_of_others(lake, uid, ask, values, named):
    """SQLite knows how many there are of nothing, and might take them in order of addresses: all of them."""
    if not lake.database.url.startswith("sqlite:"):
        pytest.skip("it counts what there is, and chooses by that")
    with lake.database.write() as tx:
        spied = Spy(tx)
        found = ask(spied, uid, *values, **named)
        list(found) if hasattr(found, "__next__") or isinstance(found, map) else None
        ways = [tx.rows(f"EXPLAIN QUERY PLAN {sql}", *given) for sql, given in spied.asked]
    assert ways
    for way in ways:
        assert "tombstones USING INDEX tombstones_by_run (repository=? AND run=?" in way[0][3], way


@pytest.mark.usefixtures("condemned")
def test_what_survives_of_a_run_is_looked_for_among_what_is_not_settled(lake, uid):
    """It is asked before each batch: going through all that the run has removed would cost more with every one."""
    if not lake.database.url.startswith("sqlite:"):
        pytest.skip("it counts what there is, and chooses by that")
    with lake.database.read() as tx:
        spied = Spy(tx)
        tombstones.survives(spied, uid, "run-1", "a", but=7)
        ((sql, given),) = spied.asked
        (way,) = tx.rows(f"EXPLAIN QUERY PLAN {sql}", *given)
    assert "tombstones USING INDEX tombstones_unsettled (repository=?)" in way[3]


class Spy:
    """A transaction that remembers what it was asked."""

    def __init__(self, tx):
        self._tx, self.asked = tx, []

    def __getattr__(self, name):
        def ask(sql, *values):
            self.asked.append((sql, values))
            return getattr(self._tx, name)(sql, *values)

        return ask


def test_settling_a_batch_settles_no_other(write, read, uid, condemned):
    write(tombstones.settle, uid, "run-1", 0, State.TRASHED)
    kept = State.CONDEMNED
    assert states(read, uid, *"abcd") == {"a": State.TRASHED, "b": State.TRASHED, "c": kept, "d": kept}
    assert states(read, condemned, "a", "z") == {"a": kept, "z": kept}


def test_exceptions_are_told_by_address(write, read, uid, condemned):
    write(tombstones.turn, uid, "run-1", ["a", "nosuch"], State.FAILED)
    assert states(read, uid, "a", "b", "nosuch") == {"a": State.FAILED, "b": State.CONDEMNED}
    assert states(read, condemned, "a") == {"a": State.CONDEMNED}
    (stone,) = read(tombstones.recorded, uid, ["a"]).values()
    assert stone.condemned_at == AT
    write(tombstones.lift, uid, "run-1", ["a"], State.RESTORED, at=AT + HOUR)
    (stone,) = read(tombstones.recorded, uid, ["a"]).values()
    assert stone == Tombstone("a", "run-1", "rule", AT, 7, 0, State.RESTORED, AT + HOUR)


@pytest.mark.usefixtures("condemned")
def test_only_what_this_run_has_in_the_trash_is_purged(write, read, uid):
    write(tombstones.settle, uid, "run-1", 0, State.TRASHED)
    write(tombstones.settle, uid, "run-2", 0, State.TRASHED)
    write(tombstones.lift, uid, "run-1", ["b"], State.RESTORED, at=AT)
    write(tombstones.purged, uid, "run-1", ["a", "b", "c", "d", "nosuch"])
    assert states(read, uid, *"abcd") == {
        "a": State.REMOVED,
        "b": State.RESTORED,
        "c": State.REMOVED,  # its run was cut off, and is over
        "d": State.TRASHED,
    }


@pytest.mark.usefixtures("condemned")
def test_batches_are_found_by_what_became_of_their_objects(write, read, uid):
    moved = State.TRASHED, State.CONDEMNED
    assert read(tombstones.batches_in, uid, "run-1", *moved) == [0, 1]
    write(tombstones.turn, uid, "run-1", ["a"], State.FAILED)
    write(tombstones.settle, uid, "run-1", 0, State.REMOVED)
    assert read(tombstones.batches_in, uid, "run-1", *moved) == [1]
    write(tombstones.lift, uid, "run-1", ["b"], State.TRASHED, at=AT)
    assert read(tombstones.batches_in, uid, "run-1", *moved) == [0, 1]
    assert read(tombstones.batches_in, uid, "run-1", State.TRASHED) == [0]
    assert read(tombstones.batches_in, uid, "nosuch", *moved) == []


@pytest.mark.usefixtures("condemned")
def test_what_is_restored_stays_on_record_and_is_no_tombstone(write, read, uid):
    write(tombstones.lift, uid, "run-1", ["a"], State.RESTORED, at=AT + HOUR)
    assert read(tombstones.find, uid, "a") is None
    assert set(read(tombstones.found_in, uid, ["a", "b"])) == {"b"}
    assert set(read(tombstones.recorded, uid, ["a", "b"])) == {"a", "b"}
    assert "a" not in read(tombstones.every, uid).to_pylist()
    assert read(tombstones.refuse_gone, uid, "a", "path") is None


def test_what_was_restored_is_found_by_when(write, read, uid, condemned):
    write(tombstones.lift, uid, "run-1", ["a"], State.RESTORED, at=AT + HOUR)
    write(tombstones.lift, uid, "run-1", ["b"], State.RESTORED, at=AT + 2 * HOUR)
    write(tombstones.lift, condemned, "run-1", ["z"], State.RESTORED, at=AT + 2 * HOUR)
    assert sorted(read(tombstones.restored_since, uid, AT)) == ["a", "b"]
    assert sorted(read(tombstones.restored_since, uid, AT + HOUR)) == ["a", "b"]
    assert read(tombstones.restored_since, uid, AT + HOUR + timedelta(microseconds=1)) == ["b"]
    assert read(tombstones.restored_since, uid, AT + 3 * HOUR) == []


@pytest.mark.usefixtures("condemned")
def test_an_address_passes_to_the_run_that_condemns_it_now(write, read, uid):
    write(tombstones.settle, uid, "run-1", 0, State.TRASHED)
    write(tombstones.condemn, uid, stones("run-3", 5, "a"))
    assert read(tombstones.of_run, uid, "run-3") == stones("run-3", 5, "a")
    assert [stone.address for stone in read(tombstones.of_run, uid, "run-1")] == ["b", "c"]


def test_thousands_are_looked_up_at_once(write, read, uid):
    many = [f"{number:05d}" for number in range(2501)]
    write(tombstones.condemn, uid, stones("run-1", 0, *many))
    assert set(read(tombstones.recorded, uid, [*many, "nosuch"])) == set(many)


@pytest.mark.usefixtures("condemned")
def test_a_state_that_a_later_desilt_knows_is_told_and_is_nobody_elses(write, read, uid):
    with_state = "UPDATE tombstones SET state = 'melted' WHERE repository = ? AND address = 'a'"
    write(lambda tx, repository: tx.execute(with_state, repository), uid)
    assert states(read, uid, "a") == {"a": "melted"}
    assert read(tombstones.find, uid, "a").state not in tombstones.SETTLED
    assert "a" in read(tombstones.unsettled, uid)
    write(tombstones.purged, uid, "run-1", ["a"])
    assert states(read, uid, "a") == {"a": "melted"}


# ---- in parts


def test_all_tombstones_are_in_pages_each_in_one(write, read, uid):
    stones = [
        Tombstone(f"a/{run}/{number}", run, "rule", AT, number, number // 3)
        for run in ("1-a", "2-b", "3-c")
        for number in range(20)
    ]
    write(tombstones.condemn, uid, stones)
    write(tombstones.condemn, "another", [replace(stones[0], run="9-z")])
    for most in (1, 3, 7, 1000):
        cut = read(pages.pages, uid, most=most)
        found = [row for page in cut for some in read(pages.read, uid, page) for row in some]
        assert sorted(row[0] for row in found) == sorted(one.address for one in stones)
        assert sum(page.rows for page in cut) == len(stones)
        assert all(page.rows <= max(most, 3) for page in cut)  # a batch is not cut
        assert len(cut) >= 3  # runs are not put together
