"""What runs have removed, as files sorted by hash: one set for each run that is over, made once from the ledger.

A set is never changed. What was restored since, or condemned again and not
removed, is still in it: whoever reads it takes that away (:func:`unsettled`).
"""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
import pyarrow as pa

from desilt.frames.buckets import hashed
from desilt.frames.schemas import HELD
from desilt.lake import ledger, tombstones
from desilt.lake.ledger import RunState
from desilt.lake.repository import Repository
from desilt.objects.store import ObjectStore
from desilt.sources.held import HeldFile, as_json, from_json, put
from desilt.sources.spread import Spread

FOLDER = "_desilt/removed/"
PAGE = 100_000


@dataclass(frozen=True, slots=True)
class Past:
    """A run whose removals are to be written down."""

    open: Callable[[], Repository]
    run: str


def removed(spread: Spread, repository: Repository, opening: Callable[[], Repository]) -> list[HeldFile]:
    """What all runs that are over, of jobs that remove committed objects, have removed at the time."""
    with repository.database.read() as tx:
        rows = ledger.every(tx, repository.uid)
    wanted = [row.id for row in rows if row.job != "gc" and row.objects and row.state is not RunState.SWEEPING]
    known = _known(repository.store, repository.prefix + FOLDER)
    new = [run for run in wanted if run not in known]
    known |= dict(zip(new, spread(write_down, [Past(opening, run) for run in new]), strict=True))
    return [file for run in wanted for file in known[run]]


def write_down(past: Past) -> Sequence[HeldFile]:
    """On an executor: one run's removals, and then a word that they are there, named by what it says."""
    repository = past.open()
    folder = f"{repository.prefix}{FOLDER}{past.run}"
    files: list[HeldFile] = []
    with repository.database.read() as tx:
        addresses = tombstones.gone_by(tx, repository.uid, past.run)
        while some := list(islice(addresses, PAGE)):
            rows = pa.table([pa.array(some, pa.string()), np.zeros(len(some), np.int32)], schema=HELD)
            files.append(put(repository.store, f"{folder}-{len(files):04d}.parquet", hashed(rows)))
    said = json.dumps([as_json(file) for file in files]).encode()
    repository.store.put(f"{folder}.{hashlib.sha256(said).hexdigest()}.json", [said])
    return files


def _known(store: ObjectStore, folder: str) -> dict[str, Sequence[HeldFile]]:
    """By run: what was written down before; what is damaged is written again."""
    found: dict[str, Sequence[HeldFile]] = {}
    for key in [key for batch in store.list(folder) for key in batch["key"].to_pylist() if key.endswith(".json")]:
        run, digest, _ = key.removeprefix(folder).split(".")
        said = store.get(key)
        if hashlib.sha256(said).hexdigest() == digest:
            found[run] = [from_json(facts) for facts in json.loads(said)]
    return found
