"""What runs removed, told again to a database that has forgotten it: from the files that they left in the store.

An outcome says what a run did; where a run was cut off before it wrote one, its plan
says what it may have done. Either way the store is asked whether the object is
there: what came back since is no removal.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa

from desilt.domain.run import Run
from desilt.domain.times import IN_FLIGHT
from desilt.errors import Conflict, NotFound, Unreadable, span
from desilt.executors.executor import Watch
from desilt.lake.fsck.tables import MOST_AT_ONCE, at_once
from desilt.lake.layout import LAYOUT
from desilt.lake.repository import LakeRepository
from desilt.objects import store_clock
from desilt.objects.store import Result
from desilt.records import ledger, locks, marks
from desilt.records import removals as tombstones
from desilt.records.ledger import BatchRow, RunRow, RunState
from desilt.records.locks import Lock
from desilt.records.removals import State, Tombstone
from desilt.repository.written import rule_of
from desilt.runs import folder as folders
from desilt.runs import plan as plans
from desilt.runs import plan_files
from desilt.runs.folder import Folder
from desilt.runs.plan import Plan, run_of
from desilt.runs.steps import Action, PlanFile
from desilt.sweep.outcome import MARKED, read_outcome

NAME = re.compile(r"(\d{8})-[0-9a-f]{8}\.parquet")
UNSURE = (State.CONDEMNED, State.FAILED, State.TRASHED, State.RESTORING)
SETTLED = (State.TRASHED, State.REMOVED, State.GONE)
WENT = {Result.REMOVED.value: State.REMOVED, Result.GONE.value: State.GONE, MARKED: State.MARKED}


@dataclass(frozen=True, slots=True)
class RecoveredBatch:
    """So many objects of a plan, and what the run wrote down of them; "" where it did not come to that."""

    number: int
    file: str
    results: dict[str, str]  # by address
    rules: dict[str, str]
    sizes: dict[str, int]


def forgotten(repository: LakeRepository) -> tuple[list[Plan], list[str]]:
    """The plans of runs that began to sweep and that the ledger does not know the end of, oldest first.

    And the ids of those whose plan cannot be read.
    """
    with repository.database.read() as tx:
        known = {row.id: row.state for row in ledger.every(tx, repository.uid)}
    found: list[Plan] = []
    unreadable: list[str] = []
    for job, run_id in reversed(folders.runs_of(repository.store, repository.prefix)):
        folder = Folder(repository.store, repository.prefix, Run(run_id, job, repository.clock()))
        if known.get(run_id, RunState.SWEEPING) is RunState.SWEEPING and folder.has(plans.SWEPT):
            try:
                plan = plans.read(folder, repository.core.secret)
                for file in plan.files:
                    repository.store.head(file.key)
                found.append(plan)
            except (NotFound, Unreadable):
                unreadable.append(run_id)
    return found, unreadable


def check_still(repository: LakeRepository, runs: Sequence[Plan]) -> None:
    """Refuse to go on while one of these runs, cut off or not, may have sent deletes that are still to arrive."""
    for plan in runs:
        folder = Folder(repository.store, repository.prefix, run_of(plan))
        signs = [repository.store.head(folder.root + plans.SWEPT).modified_at]
        ended: set[str] = set()
        for listed in repository.store.list(folder.outcome):
            signs += listed["modified_at"].to_pylist()
            names = (NAME.fullmatch(key.removeprefix(folder.outcome)) for key in listed["key"].to_pylist())
            ended |= {name[1] for name in names if name}  # some by more than one try: files tell nothing by their count
        heard, now = max(signs), store_clock.store_time(repository.store)
        if len(ended) < plan.batches and now - heard < IN_FLIGHT:
            raise Conflict(
                f"run {plan.run} was at work {span(now - heard)} ago, with the database that was lost; "
                f"make sure that it is not any more, and try again in {span(IN_FLIGHT - (now - heard))}"
            )


def revise(repository: LakeRepository, lock: Lock) -> None:
    """Tombstones of objects that were on their way, or in the trash, and are where they were: lifted."""
    with repository.database.read() as tx:
        runs = tombstones.runs_in(tx, repository.uid, *UNSURE)
        stones = [one for run in sorted(runs) for one in tombstones.of_run(tx, repository.uid, run)]
        marking = set(marks.marking_runs(tx, repository.uid, State.RESTORING))
    unsure = [
        one
        for one in stones
        # one that was on its way back from a mark may carry a tag: it stays hidden until somebody restores it again
        if one.state in UNSURE and not (one.state is State.RESTORING and one.run in marking)
    ]
    looked = at_once(lambda one: is_there(repository, repository.prefix + one.address), unsure, MOST_AT_ONCE)
    back = [stone for stone, there in looked if there]
    with repository.database.write() as tx:
        locks.check(tx, lock)
        for stone in back:
            tombstones.lift(tx, repository.uid, stone.run, [stone.address], State.RESTORED, at=repository.clock())


def remember(
    repository: LakeRepository, lock: Lock, runs: Sequence[Plan], rows: Mapping[str, RunRow], watch: Watch
) -> int:
    """Write these runs and all that they removed into the ledger; how many objects that are.

    ``rows`` has what is known of some of them besides their plans. Done twice, it is done once.
    """
    count = 0
    for plan in runs:
        count += _remember_run(repository, lock, plan, rows.get(plan.run) or _row(plan), watch)
    revise(repository, lock)
    return count


def _remember_run(repository: LakeRepository, lock: Lock, plan: Plan, row: RunRow, watch: Watch) -> int:
    with repository.database.write() as tx:
        locks.check(tx, lock)
        ledger.begin(tx, repository.uid, row)
        known = {one.number for one in ledger.batches(tx, repository.uid, plan.run) if one.file}
    count, complete = 0, True
    for batch in batches(repository, plan):
        complete &= bool(batch.file)
        if batch.number not in known:
            count += _remember(repository, lock, plan, batch)
            watch.advance(len(batch.rules))
    with repository.database.write() as tx:
        locks.check(tx, lock)
        total = ledger.total(ledger.batches(tx, repository.uid, plan.run))
        state = (RunState.PARTLY if total.failed else RunState.SWEPT) if complete else RunState.ABANDONED
        ledger.end(tx, repository.uid, plan.run, state, at=repository.clock(), fence=row.fence)
    return count


def _row(plan: Plan) -> RunRow:
    """A run of which only its plan is left."""
    going = plan.removes
    return RunRow(
        *(plan.run, plan.job, plan.evidence.policy, plan.action, plan.started_at, None, RunState.SWEEPING),
        *(going.objects, going.bytes),
        refs=len(plan.refs),
        edits=plan.edits,
    )


def batches(repository: LakeRepository, plan: Plan) -> Iterator[RecoveredBatch]:
    """The batches of a plan, as they were planned, with what became of each."""
    folder = Folder(repository.store, repository.prefix, run_of(plan))
    written: dict[int, list[str]] = {}
    for listed in repository.store.list(folder.outcome):
        for key in listed["key"].to_pylist():
            if match := NAME.fullmatch(key.removeprefix(folder.outcome)):
                written.setdefault(int(match[1]), []).append(key)
    number = 0
    for file in plan.files:
        for rows in batch_rows(repository, plan, file):
            some = rows.select(["address", "size_bytes", "reason", "detail"]).to_pylist()
            results: dict[str, str] = {}
            for key in written.get(number, []):  # more than one, where a try was taken up again
                read = read_outcome(repository.store, key)
                told = dict(zip(read["address"].to_pylist(), read["result"].to_pylist(), strict=True))
                results |= {one: result for one, result in told.items() if results.get(one) not in WENT}
            name = max(written.get(number, [""])).rpartition("/")[2]
            yield RecoveredBatch(
                number,
                name,
                results,
                {row["address"]: rule_of(row["reason"], row["detail"]) for row in some},
                {row["address"]: row["size_bytes"] for row in some},
            )
            number += 1


def batch_rows(repository: LakeRepository, plan: Plan, file: PlanFile) -> Iterator[pa.Table]:
    """The rows of each batch of a plan file, as they were planned."""
    size = plan.batch * plan_files.BATCHES_TO_A_GROUP
    for first in range(0, file.rows, size):
        rows = plan_files.read(repository.store, file, first, min(first + size, file.rows))
        yield from (rows.slice(at, plan.batch) for at in range(0, rows.num_rows, plan.batch))


def _remember(repository: LakeRepository, lock: Lock, plan: Plan, batch: RecoveredBatch) -> int:
    suspects = [
        address for address in batch.rules if not batch.file or batch.results.get(address) in WENT
    ]  # where nothing was written down, all of them
    there = dict(
        at_once(
            lambda address: where(repository, plan, address, marked=batch.results.get(address) == MARKED),
            suspects,
            MOST_AT_ONCE,
        )
    )
    now, ended = repository.clock(), _ended(repository, plan, batch) if batch.file else None
    stones = [
        Tombstone(address, plan.run, batch.rules[address], now, batch.sizes[address], batch.number, state)
        for address, state in there.items()
        if state is not None
    ]
    with repository.database.write() as tx:
        locks.check(tx, lock)
        if ended is None:  # what others are known to have removed, this one need not have
            known = tombstones.recorded(tx, repository.uid, [stone.address for stone in stones])
            stones = [one for one in stones if one.address not in known or known[one.address].state not in SETTLED]
        tombstones.condemn(tx, repository.uid, stones)
        if ended is not None:
            if ledger.batch(tx, repository.uid, plan.run, batch.number) is None:
                ledger.write_ahead(tx, repository.uid, plan.run, counted(batch))
            ledger.write_result(tx, repository.uid, plan.run, counted(batch), at=ended)
    return len(stones)


def where(repository: LakeRepository, plan: Plan, address: str, *, marked: bool) -> State | None:
    """What became of an object that a run may have removed; None if it is where it was, and was not marked."""
    if is_there(repository, repository.prefix + address):
        return State.MARKED if marked else None
    in_trash = plan.action is Action.TRASH and is_there(
        repository, folders.trash_of(repository.prefix, plan.run) + address
    )
    return State.TRASHED if in_trash else State.REMOVED


def counted(batch: RecoveredBatch) -> BatchRow:
    """A batch in figures, as the run wrote them down."""
    told = [Result.REMOVED.value if one == MARKED else one for one in batch.results.values()]
    how_many = {result: sum(one == result.value for one in told) for result in Result}
    asked = sum(how_many.values())
    return BatchRow(
        batch.number,
        batch.file,
        asked,
        how_many[Result.REMOVED],
        how_many[Result.GONE],
        how_many[Result.FAILED],
        len(batch.rules) - asked,
        sum(
            batch.sizes.get(one, 0) for one, result in batch.results.items() if result in (Result.REMOVED.value, MARKED)
        ),
        int(bool(batch.rules) and next(iter(batch.rules)).startswith(LAYOUT.tables)),
    )


def _ended(repository: LakeRepository, plan: Plan, batch: RecoveredBatch) -> datetime:
    folder = Folder(repository.store, repository.prefix, run_of(plan))
    return repository.store.head(folder.outcome + batch.file).modified_at


def is_there(repository: LakeRepository, key: str) -> bool:
    """Whether the store has an object."""
    try:
        repository.store.head(key)
    except NotFound:
        return False
    return True
