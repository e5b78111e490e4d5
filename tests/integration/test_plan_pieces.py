"""A plan file that is not what was planned: none of a piece's rows is condemned; mended, the run goes on."""

from datetime import UTC, datetime, timedelta

import pytest

from desilt.errors import BatchOver, DamagedRun
from desilt.executors.executor import HERE, Here
from desilt.jobs.gc import job as uncommitted
from desilt.jobs.runner import plan, sweep
from desilt.objects.memory import MemoryStore
from desilt.records import ledger
from desilt.records import removals as tombstones
from desilt.runs import folder as folders
from desilt.runs import plan as plans
from desilt.runs import plan_files
from desilt.runs.folder import Folder
from desilt.sweep import batches, delete
from desilt.sweep.limits import Limits
from desilt.testing import oracle
from words import committed, days, write

START = datetime(2026, 1, 1, tzinfo=UTC)
SURE = Limits(max_share=1.0, confirm=True)
GROUP, COUNT = plan_files.BATCHES_TO_A_GROUP, 70  # a batch is one object: four pieces


@pytest.fixture
def repo(memory_repo, monkeypatch):
    monkeypatch.setattr(MemoryStore, "delete_batch", 1)
    committed(memory_repo, "main", kept="x")
    write(memory_repo, "main", **{f"lost{number}": "x" for number in range(COUNT)})
    memory_repo.reset("main")
    days(memory_repo, 5)
    return memory_repo


def planned(repo, count=COUNT):
    """The plan of a new run, and its only file."""
    run_id = plan(uncommitted.job, repo, HERE).run
    found = plans.read(Folder(repo.store, repo.prefix, folders.find(repo.store, repo.prefix, run_id)), repo.secret)
    (file,) = found.files
    assert (file.rows, found.batches, len(file.sections)) == (count, count, 5)
    return found, file


def condemned(repo, run):
    with repo.database.read() as tx:
        stones = [stone.address for stone in tombstones.of_run(tx, repo.uid, run)]
        assert len(stones) == len(ledger.batches(tx, repo.uid, run))
    return stones


def flip(data, at):
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


DAMAGES = {  # to a file and its sections' ends: how it looks, and how many pieces are still what was planned
    "altered in the first piece": lambda data, ends: (flip(data, ends[0] // 2), 0),
    "altered in the third piece": lambda data, ends: (flip(data, ends[1] + 9), 2),
    "altered in the last piece": lambda data, ends: (flip(data, ends[3] - 1), 3),
    "altered in the footer": lambda data, ends: (flip(data, ends[3] + 9), 0),
    "cut short": lambda data, ends: (data[: ends[2]], 0),
    "longer": lambda data, _: (data + b"\0", 0),
    "row groups in another order": lambda data, ends: (data[ends[0] : ends[1]] + data[: ends[0]] + data[ends[1] :], 0),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_piece_is_condemned_as_it_was_planned_or_not_at_all(repo, damage):
    made, file = planned(repo)
    sound, before = repo.store.get(file.key), set(oracle.stored(repo))
    rows = plan_files.read(repo.store, file)["address"].to_pylist()
    damaged, pieces = damage(sound, [section.end for section in file.sections])
    repo.store.put(file.key, [damaged])
    with pytest.raises(DamagedRun, match="is not what was planned"):
        sweep(repo, HERE, made.run, SURE)
    assert sorted(condemned(repo, made.run)) == sorted(rows[: pieces * GROUP])
    assert before - set(oracle.stored(repo)) == set(rows[: pieces * GROUP])
    repo.store.put(file.key, [sound])
    swept = sweep(repo, HERE, made.run, SURE).swept
    assert (swept.asked, swept.removed) == (COUNT, COUNT)
    assert before - set(oracle.stored(repo)) == set(rows)


def test_the_file_of_another_run_is_refused(repo):
    _, theirs = planned(repo)
    repo.put("main", "lost later", b"x")
    repo.reset("main")
    repo.set_clock(repo.clock() + timedelta(days=5))
    made, file = planned(repo, COUNT + 1)
    repo.store.put(file.key, [repo.store.get(theirs.key)])
    with pytest.raises(DamagedRun, match="is not what was planned"):
        sweep(repo, HERE, made.run, SURE)
    assert condemned(repo, made.run) == []


def test_the_same_rows_in_another_order_are_refused(repo):
    made, file = planned(repo)
    rows = plan_files.read(repo.store, file)
    plan_files.write_one(repo.store, file.key, rows.take(list(reversed(range(COUNT)))), file.group)
    with pytest.raises(DamagedRun, match="is not what was planned"):
        sweep(repo, HERE, made.run, SURE)
    assert condemned(repo, made.run) == []


def test_all_pieces_together_read_a_plan_file_about_once(repo, monkeypatch):
    made, file = planned(repo)
    fetched, get = [], MemoryStore.get

    def counting(self, key, **words):
        body = get(self, key, **words)
        if key == file.key:
            fetched.append(len(body))
        return body

    monkeypatch.setattr(MemoryStore, "get", counting)
    footer = file.sections[-1].end - file.sections[-2].end
    with monkeypatch.context() as patch:
        patch.setattr("desilt.jobs.execution.publish", lambda *_: None)  # which tells of every row, once
        sweep(repo, HERE, made.run, SURE)
    assert sum(fetched) == file.sections[-2].end + 4 * footer
    assert len(fetched) == 8


def test_what_another_try_of_a_piece_has_ended_is_not_asked_for_again_and_the_piece_goes_on(repo, monkeypatch):
    """Spark gives a slow piece out twice: here the second try overtakes the first in each of its batches."""
    planned(repo)
    real, asked = MemoryStore.delete_many, []

    class Noting(Here):
        def __call__(self, work, items, **more):
            pieces.extend(items if work is batches.sweep_piece else ())
            return super().__call__(work, items, **more)

    def slow(store, keys, *, between):
        if not asked:
            asked.append(keys)
            assert batches.sweep_piece(pieces[0]) == GROUP
        between()
        return real(store, keys, between=between)

    pieces = []
    monkeypatch.setattr(MemoryStore, "delete_many", slow)
    monkeypatch.setattr(delete, "SURE_SECONDS", -1.0)  # each looks at the lock, and at its batch, before it asks
    report = sweep(repo, Noting(), "last", SURE)
    assert (report.swept.asked, report.swept.removed, report.swept.failed) == (COUNT, COUNT, 0)
    assert len(condemned(repo, report.run)) == COUNT


@pytest.mark.parametrize("where", ["sweep_batch", "delete"], ids=["nothing is condemned", "it is condemned"])
def test_a_batch_that_nobody_has_ended_is_not_passed_over(repo, monkeypatch, where):
    planned(repo)

    def lost(*_, **__):
        raise BatchOver("another", 1)

    monkeypatch.setattr(batches, where, lost)
    with pytest.raises(BatchOver):
        sweep(repo, HERE, "last", SURE)
