"""What a bucket that keeps versions makes of a run: asked once for its report, and added up where versions went."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from operator import add

from desilt.executors.executor import Executor
from desilt.objects import open_store
from desilt.objects.versions import Versioning
from desilt.records import ledger
from desilt.repository.protocol import Repository
from desilt.runs.folder import Folder
from desilt.runs.plan import Plan, run_of
from desilt.runs.report import Amount, BucketVersions, Swept
from desilt.runs.steps import Action
from desilt.sweep.versions import PurgedVersions, read_noted

BATCHES_TO_A_PIECE = 500


@dataclass(frozen=True, slots=True)
class Noted:
    """The outcomes of some batches."""

    store: str
    keys: tuple[str, ...]


def planned(repository: Repository, plan: Plan) -> BucketVersions | None:
    """Whether anything of what goes stays behind; None where that is no question."""
    if repository.store.versions is None or not plan.removes.objects or plan.action is Action.MARK:
        return None
    return BucketVersions(repository.store.versions.versioning())


def left_by(repository: Repository, executor: Executor, plan: Plan, swept: Swept | None) -> BucketVersions | None:
    """What a run left behind, and what went with its objects.

    Nothing is listed to find out: whatever is removed without its versions is an old version now, unless the bucket
    keeps none.
    """
    told = planned(repository, plan)
    if told is None or swept is None:
        return told
    if plan.action is Action.PURGE_VERSIONS:
        total = reduce(add, executor(added_up, list(_pieces(repository, plan)), rows=swept.asked), PurgedVersions())
        return BucketVersions(told.bucket, total.left, total.versions, total.markers)
    return BucketVersions(
        told.bucket, Amount(swept.removed, swept.bytes) if told.bucket == Versioning.ENABLED else None
    )


def _pieces(repository: Repository, plan: Plan) -> Iterator[Noted]:
    folder = Folder(repository.store, repository.prefix, run_of(plan))
    with repository.records.read() as tx:
        keys = [folder.outcome + row.file for row in ledger.batches(tx, repository.uid, plan.run) if row.file]
    for at in range(0, len(keys), BATCHES_TO_A_PIECE):
        yield Noted(repository.store.uri, tuple(keys[at : at + BATCHES_TO_A_PIECE]))


def added_up(some: Noted) -> PurgedVersions:
    """On an executor: what went with the objects of these batches."""
    store = open_store(some.store)
    return reduce(add, (read_noted(store, key) for key in some.keys), PurgedVersions())
