"""The moment of removal: one transaction that makes a batch of addresses gone for everybody.

It holds the repository alone: nobody stages and no ref moves meanwhile. What any
commit, staging area or ticket holds by now is left out. The objects themselves
are touched only afterwards.
"""

from collections.abc import Mapping
from datetime import timedelta

import pyarrow as pa

from desilt.domain.address import is_table
from desilt.errors import BranchMoved
from desilt.lake import dropped, ledger, locks, repositories, staging, tickets, tombstones
from desilt.lake.database import Transaction
from desilt.lake.ledger import BatchRow
from desilt.lake.locks import Lock
from desilt.lake.repository import Repository
from desilt.lake.tombstones import State, Tombstone
from desilt.runs.plan import Plan
from desilt.sweep.recheck import Recheck

TRIES = 100
CLOCK_MARGIN = timedelta(minutes=10)


def condemn(
    repository: Repository, lock: Lock, plan: Plan, number: int, rows: pa.Table, recheck: Recheck
) -> dict[str, str]:
    """Condemn the rows of batch ``number``; those that something holds again, and what.

    A batch that was condemned before stays as it was: tombstones are not written twice.
    """
    addresses = rows["address"].to_pylist()
    for _ in range(TRIES):
        recheck.catch_up()
        back = {
            address: "what came after the plan holds it"
            for address, held in zip(addresses, recheck.holds(rows).tolist(), strict=True)
            if held
        }
        with repository.database.write() as tx:
            generation = repositories.condemning(tx, repository.uid)
            locks.check(tx, lock)
            if ledger.batch(tx, repository.uid, plan.run, number) is not None:
                condemned = {stone.address for stone in tombstones.of_run(tx, repository.uid, plan.run, batch=number)}
                return {address: "held again" for address in addresses if address not in condemned}
            if generation == recheck.generation:
                back |= _held(tx, repository, plan, [address for address in addresses if address not in back])
                _write(tx, repository, plan, number, rows, back)
                return back
    raise BranchMoved("of this repository", "condemning a batch")


def _held(tx: Transaction, repository: Repository, plan: Plan, addresses: list[str]) -> dict[str, str]:
    """What else holds them at this moment."""
    now = repository.clock()
    back = dict.fromkeys(staging.holders(tx, addresses), "it is staged")
    waiting = tickets.holders(tx, repository.uid, addresses, since=now - CLOCK_MARGIN)
    back |= dict.fromkeys(waiting, "an upload under way holds it")
    if plan.dropped_for:
        since = min(plan.now, now) - timedelta(microseconds=plan.dropped_for)
        back |= dict.fromkeys(dropped.lately(tx, repository.uid, addresses, since=since), "it was dropped lately")
    lately = plan.started_at - CLOCK_MARGIN
    for address, stone in tombstones.recorded(tx, repository.uid, addresses).items():
        if stone.run == plan.run:
            back[address] = "the plan names it twice"
        elif stone.state is State.RESTORING or (stone.restored_at is not None and stone.restored_at >= lately):
            back[address] = "it was restored since"
        elif stone.state is State.TRASHED:
            back[address] = f"run {stone.run} moved it to the trash"
        elif stone.state in (State.REMOVED, State.GONE) and (plan.watches or stone.condemned_at >= lately):
            back[address] = f"run {stone.run} removed it"  # a stray upload may come again, a committed object not
    return back


def _write(
    tx: Transaction, repository: Repository, plan: Plan, number: int, rows: pa.Table, back: Mapping[str, str]
) -> None:
    now = repository.clock()
    stones = [
        Tombstone(row["address"], plan.run, rule_of(row["reason"], row["detail"]), now, row["size_bytes"], number)
        for row in rows.select(["address", "reason", "detail", "size_bytes"]).to_pylist()
        if row["address"] not in back
    ]
    tombstones.condemn(tx, repository.uid, stones)
    of_tables = int(bool(stones) and is_table(stones[0].address))
    ahead = BatchRow(number, "", asked=len(stones), held_again=len(back), tables=of_tables)
    ledger.write_ahead(tx, repository.uid, plan.run, ahead)


def rule_of(reason: str, detail: str) -> str:
    """What an object went by: the rules that its plan names before its paths, else the reason."""
    rules, divided, _ = detail.partition("\0")
    return rules if divided else reason
