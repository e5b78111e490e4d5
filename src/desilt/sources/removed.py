"""What runs have removed, as files sorted by hash: one for each run that is over, made once from the ledger."""

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
from desilt.lake.tombstones import State
from desilt.sources.held import HeldFile, put
from desilt.sources.spread import Spread

FOLDER = "_desilt/removed/"
PAGE = 100_000
GONE = (State.REMOVED, State.GONE, State.TRASHED)


@dataclass(frozen=True, slots=True)
class Past:
    """A run whose removals are to be written down."""

    open: Callable[[], Repository]
    run: str
    target: str


def removed(spread: Spread, repository: Repository, opening: Callable[[], Repository], folder: str) -> list[HeldFile]:
    """What all runs of jobs that remove committed objects have removed; what came back since is among it."""
    with repository.database.read() as tx:
        rows = ledger.every(tx, repository.uid)
    wanted = [row for row in rows if row.job != "gc" and row.objects and row.state is not RunState.SWEEPING]
    asked = [Past(opening, row.id, f"{repository.prefix}{folder}{row.id}") for row in wanted]
    return [file for files in spread(write_down, asked) for file in files]


def write_down(past: Past) -> Sequence[HeldFile]:
    """On an executor: one run's removals."""
    repository = past.open()
    files: list[HeldFile] = []
    with repository.database.read() as tx:
        stones = (stone.address for stone in tombstones.of_run(tx, repository.uid, past.run) if stone.state in GONE)
        while some := list(islice(stones, PAGE)):
            rows = pa.table([pa.array(some, pa.string()), np.zeros(len(some), np.int32)], schema=HELD)
            files.append(put(repository.store, f"{past.target}-{len(files):04d}.parquet", hashed(rows)))
    return files
