"""What runs have removed, as files sorted by hash: a set for each run that is over, made once from the ledger.

What may be there after all, restored or condemned and not removed, is in a set as well:
whoever reads it takes that away (:func:`unsettled`).
"""

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import islice

from desilt.columns.files import HeldFile, put_addresses
from desilt.executors.executor import Executor
from desilt.jobs import registry
from desilt.jobs.removed import growth
from desilt.jobs.removed.sets import FOLDER, RemovedSet, Sets, listed, new_name, read, say, sound, words
from desilt.logs import logger
from desilt.objects.store import ObjectStore
from desilt.records import ledger
from desilt.records import removals as tombstones
from desilt.repository.gate import Safety
from desilt.repository.handle import Access
from desilt.repository.protocol import Repository

PAGE = 100_000
log = logger(__name__)


@dataclass(frozen=True, slots=True)
class Past:
    """A run whose removals are to be written down."""

    open: Callable[[], Repository]
    run: str


def removed(executor: Executor, repository: Repository) -> list[HeldFile]:
    """What all runs that are over, of jobs that remove committed objects, have removed at the time."""
    wanted = runs_over(repository)
    sets = _grown(executor, repository.store, repository.prefix, wanted.keys())
    known = sets.runs
    new = [run for run in wanted if run not in known]
    pasts = [Past(Access(repository), run) for run in new]
    made = executor(write_down, pasts, rows=sum(wanted[run] for run in new))
    return [file for one in (*sets.used, *made) for file in one.files]


def runs_over(repository: Repository) -> dict[str, int]:
    """The runs of which there is, or is to be, a set; and how many objects each was to remove.

    Where age is the only fence, any job may have removed what is committed: rules that are not ours let it go.
    """
    with repository.records.read() as tx:
        rows = ledger.over(tx, repository.uid)
    committed = {job: registry.traits(job).committed for job in {job for _, job, _ in rows}}
    by_age = repository.gate.safety is not Safety.ATOMIC
    return {run: objects for run, job, objects in rows if committed[job] or by_age}


def write_down(past: Past) -> RemovedSet:
    """On an executor: one run's removals, and then a word that they are there."""
    repository = past.open()
    folder, runs = repository.prefix + FOLDER, frozenset([past.run])
    files: list[HeldFile] = []
    with repository.records.read() as tx:
        addresses = tombstones.gone_by(tx, repository.uid, past.run)
        while some := list(islice(addresses, PAGE)):
            files.append(put_addresses(repository.store, new_name(folder, runs, len(files)), some))
    return say(repository.store, folder, runs, files)


def _grown(executor: Executor, store: ObjectStore, prefix: str, wanted: AbstractSet[str]) -> Sets:
    """The sets of the runs that are ``wanted``; where small ones are many, they grow together first."""
    folder = prefix + FOLDER
    there = listed(store, folder)
    sets = sound(store, folder, there, wanted)
    pieces = list(growth.due(store.uri, folder, there, sets))
    if not pieces:
        return sets
    rows = sum(one.rows for piece in pieces for one in piece.sources)
    log.info("%s sets of what was removed become %s", sum(len(piece.sources) for piece in pieces), len(pieces))
    distrust(store, prefix, set(filter(None, executor(growth.merge, pieces, rows=rows))))
    return sound(store, folder, listed(store, folder), wanted)


def distrust(store: ObjectStore, prefix: str, damaged: AbstractSet[str]) -> None:
    """Forget the sets of which one of ``damaged`` is a part: others tell what they told, or it is written again."""
    folder = prefix + FOLDER
    if not any(name.startswith(folder) for name in damaged):
        return
    there = listed(store, folder)
    for word in words(folder, there):
        said = read(store, word, there | damaged)  # one that is missing is as good as damaged
        if said is not None and not said.keys.isdisjoint(damaged):
            log.warning("the cache file %s is damaged, and is made again", word)
            store.put(word, [b"damaged"])
