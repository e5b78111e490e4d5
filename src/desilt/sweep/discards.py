"""What hard delete has condemned, removed by a worker: claimed, deleted, settled.

What is claimed is written down beside the objects before any of them goes: a database
that is restored from a copy can be told by that.
"""

import secrets
import time
from collections.abc import Sequence

import pyarrow as pa

from desilt.clock import elapsed
from desilt.errors import OutsidePrefix
from desilt.logs import logger
from desilt.objects.store import Outcome, Result
from desilt.records.ledger import BatchRow, RunRow
from desilt.records.removals import State
from desilt.repository.hard_delete import Claim, HardDelete
from desilt.repository.protocol import Repository
from desilt.runs.folder import Folder
from desilt.sweep.budget import Budget
from desilt.sweep.delete import Sure, delete
from desilt.sweep.outcome import OUTCOME, write_outcome

log = logger(__name__)
PACED_SECONDS = 5  # of the whole budget, that a worker claims at most: a hundred who share it end theirs in time
CLAIMED = "claimed"
"""The result of an object that was about to be removed."""


def remove(
    repository: Repository,
    hard_delete: HardDelete,
    run: RunRow,
    number: int,
    folder: Folder,
    per_second: int | None = None,
) -> BatchRow | None:
    """Claim some of what is due, and remove it; what came of it, or None if there was nothing to claim."""
    began = elapsed()
    at_once = repository.store.delete_batch
    most = at_once if per_second is None else min(at_once, per_second * PACED_SECONDS)
    claim = hard_delete.claim(run, number, most=most)
    if claim is None:
        return None
    if strange := [one.address for one in claim.stones if not repository.layout.is_object(one.address)]:
        raise OutsidePrefix(claim.run, strange[0])
    going = [Outcome(repository.prefix + one.address, Result.FAILED) for one in claim.stones]
    write_outcome(repository.store, f"{folder.claimed}{number:08d}.parquet", told(claim, going, CLAIMED))
    sure = Sure(lambda: hard_delete.sure(claim), since=began)
    budget = Budget(repository, per_second, time.sleep)
    outcomes = delete(repository.store, [one.key for one in going], trash=None, sure=sure, budget=budget)
    outcomes = [_ours(one, stone.state) for one, stone in zip(outcomes, claim.stones, strict=True)]
    file = f"{number:08d}-{secrets.token_hex(4)}.parquet"
    write_outcome(repository.store, folder.outcome + file, told(claim, outcomes))
    done = hard_delete.settle(claim, file, outcomes)
    log.debug("batch %s: %s removed, %s gone, %s failed", number, done.removed, done.gone, done.failed)
    return done


def _ours(outcome: Outcome, before: str) -> Outcome:
    """What a worker had claimed that was cut off, and is gone by now, it removed."""
    went = outcome.result is Result.GONE and before == State.CLAIMED
    return Outcome(outcome.key, Result.REMOVED) if went else outcome


def told(claim: Claim, outcomes: Sequence[Outcome], instead: str | None = None) -> pa.Table:
    """A claim, with what became of each object, as OUTCOME; what dropped it is the detail of one that went."""
    return pa.table(
        [
            [stone.address for stone in claim.stones],
            [stone.size for stone in claim.stones],
            [stone.condemned_at for stone in claim.stones],
            [instead or one.result.value for one in outcomes],
            [one.detail or stone.rule for one, stone in zip(outcomes, claim.stones, strict=True)],
        ],
        schema=OUTCOME,
    )
