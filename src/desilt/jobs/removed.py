"""What runs have removed, as files sorted by hash: one set for each run that is over, made once from the ledger.

A set is never changed. What may be there after all, restored or condemned and not
removed, is in it as well: whoever reads it takes that away (:func:`unsettled`).
"""

import hashlib
import json
import secrets
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from itertools import islice

from desilt.columns.files import HeldFile, as_json, from_json, put_addresses
from desilt.domain.run import is_run_id
from desilt.executors.executor import Executor
from desilt.jobs import registry
from desilt.logs import logger
from desilt.objects.store import ObjectStore
from desilt.records import ledger
from desilt.records import removals as tombstones
from desilt.records.ledger import RunState
from desilt.repository.handle import Access
from desilt.repository.protocol import Repository

FOLDER = "_desilt/removed/"
PAGE = 100_000
log = logger(__name__)


@dataclass(frozen=True, slots=True)
class Past:
    """A run whose removals are to be written down."""

    open: Callable[[], Repository]
    run: str


def removed(executor: Executor, repository: Repository) -> list[HeldFile]:
    """What all runs that are over, of jobs that remove committed objects, have removed at the time."""
    with repository.records.read() as tx:
        rows = ledger.every(tx, repository.uid)
    over = [row for row in rows if row.objects and row.state is not RunState.SWEEPING]
    wanted = [row.id for row in over if registry.traits(row.job).committed]
    known = _known(repository.store, repository.prefix + FOLDER)
    new = [run for run in wanted if run not in known]
    pasts = [Past(Access(repository), run) for run in new]
    objects = sum(row.objects for row in over if row.id in new)
    known |= dict(zip(new, executor(write_down, pasts, rows=objects), strict=True))
    return [file for run in wanted for file in known[run]]


def write_down(past: Past) -> Sequence[HeldFile]:
    """On an executor: one run's removals, and then a word that they are there, named by what it says."""
    repository = past.open()
    folder = f"{repository.prefix}{FOLDER}{past.run}"
    files: list[HeldFile] = []
    with repository.records.read() as tx:
        addresses = tombstones.gone_by(tx, repository.uid, past.run)
        while some := list(islice(addresses, PAGE)):
            # a name of its own for each attempt: what another one wrote stays what it was
            name = f"{folder}-{len(files):04d}-{secrets.token_hex(4)}.parquet"
            files.append(put_addresses(repository.store, name, some))
    said = json.dumps([as_json(file) for file in files]).encode()
    repository.store.put(f"{folder}.{hashlib.sha256(said).hexdigest()}.json", [said])
    return files


def _known(store: ObjectStore, folder: str) -> dict[str, Sequence[HeldFile]]:
    """By run: what was written down before; what is damaged is written again."""
    found: dict[str, Sequence[HeldFile]] = {}
    for key in [key for batch in store.list(folder) for key in batch["key"].to_pylist() if key.endswith(".json")]:
        run, _, digest = key.removeprefix(folder).removesuffix(".json").partition(".")
        said = store.get(key)
        if is_run_id(run) and hashlib.sha256(said).hexdigest() == digest:
            found[run] = [from_json(facts) for facts in json.loads(said)]
    return found


def distrust(store: ObjectStore, prefix: str, damaged: Collection[str]) -> None:
    """Forget the sets of which one of ``damaged`` is a part: they are written down again."""
    folder = prefix + FOLDER
    for key in [key for batch in store.list(folder) for key in batch["key"].to_pylist() if key.endswith(".json")]:
        said = store.get(key)
        if any(name.startswith(folder) and name.encode() in said for name in damaged):
            log.warning("the cache file %s is damaged, and is made again", key)
            store.put(key, [b"damaged"])
