"""Marked objects tagged by the store itself: a job of S3 Batch Operations, from its manifest to its report.

Such a job replaces all tags of an object, so only objects without any go there; the others are tagged one by one.
A run waits for its job. One that is cut off leaves the job at work, and the next run waits for it first.
"""

import json
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice

from desilt.domain.run import Run, started
from desilt.errors import BadRequest, DesiltError, NotFound, StorageFailed
from desilt.logs import logger
from desilt.objects.batch_tagging import BatchJobs, refused
from desilt.objects.cloud import CloudStore
from desilt.objects.tags import ObjectTag, TagOutcome, TagResult
from desilt.records import locks, marks
from desilt.records import removals as tombstones
from desilt.records.locks import Lock
from desilt.repository.protocol import Repository
from desilt.runs import folder as folders
from desilt.runs.folder import Folder
from desilt.runs.steps import BatchWish, FollowMarks
from desilt.sweep.marked import MarkedPiece, check_lock, to_follow
from desilt.sweep.sweep import Sweep
from desilt.sweep.tag import BECOMES, TO_TAG, tagging_of

JOB = "retention"
FOLDER = "batch/"
WANTED, MADE, OVER = (f"{FOLDER}{name}.json" for name in ("wanted", "made", "over"))
WAITING = ("Paused", "Suspended")  # until somebody lets it go on
POLL_SECONDS = 10.0
PAGE = 1_000
log = logger(__name__)


@dataclass(frozen=True, slots=True)
class MadeJob:
    """A job that a run asked the store for."""

    folder: Folder
    jobs: BatchJobs
    id: str
    report: str  # where the store writes what came of it


@dataclass(frozen=True, slots=True)
class Bare:
    """Keys of objects without tags, a line each."""

    key: str
    count: int


def run(sweep: Sweep, step: FollowMarks, wish: BatchWish, left: Sequence[MarkedPiece]) -> None:
    """Let the store tag all marked objects that have no tags, and wait until it has."""
    repository = sweep.repository
    if sweep.folder.has(WANTED):
        return  # this is another try, and its job was waited for: what is left is tagged one by one
    jobs, root = BatchJobs(_bucket(repository), wish.account, wish.role), sweep.folder.root
    found = [one for one in sweep.executor(bare, [(piece, root) for piece in left]) if one.count]
    if not found:
        return
    manifest = f"{root}{FOLDER}manifest.csv"
    etag = jobs.write_manifest(manifest, _lines(repository, found))
    said = {
        "manifest": manifest,
        "etag": etag,
        "tag": step.tag,
        "report": f"{root}{FOLDER}report",
        "token": sweep.plan.run,
        "account": wish.account,
        "role": wish.role,
    }
    sweep.folder.put_json(WANTED, said)  # before there is a job: whoever comes later asks for the same, and finds it
    try:
        made = _made(repository, sweep.folder)
    except DesiltError as error:
        if not refused(error):
            raise
        log.warning("S3 takes no such job (%s): what it was to tag is tagged one by one", error)
        sweep.folder.put_json(OVER, {"state": "refused", "why": str(error)})
        return
    log.info("S3 Batch Operations job %s tags %s objects", made.id, sum(one.count for one in found))
    _wait(repository, sweep.lock, made)


def finish(repository: Repository, lock: Lock) -> None:
    """Wait for the jobs of runs that were cut off, and write down what came of them."""
    for made in unfinished(repository):
        _wait(repository, lock, made)


def bare(given: tuple[MarkedPiece, str]) -> Bare:
    """On an executor: of what is marked in these batches, the keys of objects without any tag."""
    piece, root = given
    repository = piece.open()
    found: list[str] = []
    for number in piece.numbers:
        stones, sure = to_follow(repository, piece, number, *TO_TAG)
        keys = [repository.prefix + stone.address for stone in stones]
        looked = tagging_of(repository).tagless(keys, between=sure.check) if keys else []
        found += [one.key for one in looked if one.result is TagResult.BARE]
    key = f"{root}{FOLDER}keys/{piece.run}-{piece.numbers[0]:08d}.txt"
    repository.store.put(key, ["".join(f"{one}\n" for one in found).encode()])
    return Bare(key, len(found))


def unfinished(repository: Repository) -> Iterator[MadeJob]:
    """Jobs that runs asked for, and whose end nobody has read."""
    for job, run_id in folders.runs_of(repository.store, repository.prefix, job=JOB):
        folder = Folder(repository.store, repository.prefix, Run(run_id, job, started(run_id)))
        if folder.has(WANTED) and not folder.has(OVER):
            try:
                yield _made(repository, folder)
            except DesiltError as error:
                way_out = "mend that first: one that tags what is restored would lose it"
                raise StorageFailed(
                    f"a job of run {run_id} may be at work, and S3 does not say: {error}; {way_out}"
                ) from error


def cancel(repository: Repository) -> int:
    """Stop all jobs at work, so that they tag nothing more; how many there were."""
    count = 0
    for made in unfinished(repository):
        with suppress(NotFound):  # S3 forgets a job, long after its end
            made.jobs.cancel(made.id)
            while not made.jobs.status(made.id).over:  # until then, it goes on tagging
                time.sleep(POLL_SECONDS)
            log.warning("S3 Batch Operations job %s was cancelled", made.id)
        made.folder.put_json(OVER, {"state": "cancelled"})
        count += 1
    return count


def _wait(repository: Repository, lock: Lock, made: MadeJob) -> None:
    """Until the job is over; then what came of it is in the ledger. What it tells nothing of is tagged one by one."""
    try:
        while not (status := made.jobs.status(made.id)).over:
            if status.state in WAITING:
                log.warning("job %s is %s (%s), and is left to the next run", made.id, status.state, status.why)
                return
            log.info("job %s is %s: %s of %s", made.id, status.state, status.succeeded + status.failed, status.total)
            time.sleep(POLL_SECONDS)
            check_lock(repository, lock)
    except NotFound as error:
        log.warning("S3 has forgotten job %s: %s", made.id, error)
    else:
        try:
            _settle(repository, lock, made.jobs.results(made.report, made.id))
        except NotFound:
            log.warning("job %s is %s and has left no report: %s", made.id, status.state, status.why)
    made.folder.put_json(OVER, {"state": "over"})


def _settle(repository: Repository, lock: Lock, outcomes: Iterable[TagOutcome]) -> None:
    """What the store's report says, in the ledger; what failed is tagged one by one next."""
    outcomes = iter(outcomes)
    while some := list(islice(outcomes, PAGE)):
        results = {one.key.removeprefix(repository.prefix): one.result for one in some}
        with repository.records.write() as tx:
            locks.check(tx, lock)
            for address, stone in tombstones.recorded(tx, repository.uid, list(results)).items():
                state = BECOMES[results[address]]
                marks.remark(tx, repository.uid, stone.run, [address], state, only=TO_TAG)


def _lines(repository: Repository, found: Iterable[Bare]) -> Iterator[str]:
    for one in found:
        yield from repository.store.get(one.key).decode().splitlines()


def _made(repository: Repository, folder: Folder) -> MadeJob:
    """The job that a run wanted: as it was noted; else made now, or found, by its token."""
    said = json.loads(folder.get_text(WANTED))
    jobs = BatchJobs(_bucket(repository), said["account"], said["role"])
    if not folder.has(MADE):
        tag = ObjectTag.parse(said["tag"])
        job = jobs.create(said["manifest"], said["etag"], tag, said["report"], said["token"])
        folder.put_json(MADE, {"job": job})
    return MadeJob(folder, jobs, json.loads(folder.get_text(MADE))["job"], said["report"])


def _bucket(repository: Repository) -> CloudStore:
    if not isinstance(repository.store, CloudStore):
        raise BadRequest(f"{repository.store.uri} has no S3 Batch Operations; leave --batch out")
    return repository.store
