"""How much every set of pins keeps: one pass over all that commits, staging areas and orders point to.

A pin is a bit. Whoever asks says which bits reach each commit, and what else there is.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from desilt.columns.files import HeldFile
from desilt.columns.hashing import address_hash
from desilt.columns.kernel import DamagedFiles, judge_buckets
from desilt.columns.pins import POINTERS, in_words
from desilt.errors import NotReadBack
from desilt.executors.executor import Executor
from desilt.inventory.listing import stored_at
from desilt.jobs.lifecycle.replay import ground, reaching
from desilt.jobs.pins.kernel import PinCounts, PinJudge
from desilt.jobs.removed import distrust, removed
from desilt.records import removals as tombstones
from desilt.repository.protocol import Repository
from desilt.repository.snapshot import Snapshot
from desilt.repository.source import Pointers, Source
from desilt.runs.report import Amount


@dataclass(frozen=True, slots=True)
class Besides:
    """What keeps something though no commit does: each with its bits."""

    prefixes: Sequence[tuple[str, int]]  # of paths
    addresses: Sequence[tuple[str, int]]
    staged: Pointers
    areas: Sequence[int]  # of staging areas, by their place


def weigh(
    repository: Repository,
    executor: Executor,
    source: Source,
    history: Snapshot,
    bits: Mapping[str, int],
    besides: Besides,
    pins: int,
    also_gone: Sequence[HeldFile] = (),
) -> dict[int, Amount]:
    """What each set of ``pins`` keeps, by its bits; every object counts once. ``bits`` are of commits.

    What runs have removed does not count, nor what is ``also_gone``.
    """
    commits = reaching(ground(source, history), history.commits, bits)
    sets = [*commits.sets, *(one for _, one in besides.prefixes), *(one for _, one in besides.addresses)]
    first = len(commits.sets)
    prefixes = tuple((prefix, first + place) for place, (prefix, _) in enumerate(besides.prefixes))
    others = pointers(repository, besides, first + len(prefixes))
    judge = PinJudge(
        commits.files,
        prefixes,
        others,
        in_words([*sets, *besides.areas], pins),
        (*removed(executor, repository), *also_gone),
        restored(repository),
    )
    answer = judge_buckets(executor, repository.store.uri, judge, weigh=counted_objects)
    if isinstance(answer, DamagedFiles):
        source.distrust(sorted({held.key for held, _ in commits.files} & answer.names))
        distrust(repository.store, repository.prefix, answer.names)
        raise NotReadBack(min(answer.names))
    return {one: Amount(objects, answer.bytes[one]) for one, objects in answer.objects.items()}


def pointers(repository: Repository, besides: Besides, first: int) -> pa.Table:
    """What no commit says, by places from ``first`` on: objects that orders name, if they are there; what is staged."""
    found = [POINTERS.empty_table()]
    for place, (address, _) in enumerate(besides.addresses, first):
        if (listed := stored_at(repository.store, repository.prefix + address)) is not None:
            hashes = address_hash(pa.array([address], pa.string()))
            found.append(pa.table([hashes, pa.array([place]), listed["size_bytes"]], schema=POINTERS))
    rows = besides.staged.rows
    moved = rows["place"].to_numpy() + first + len(besides.addresses)
    found.append(rows.set_column(1, POINTERS.field("place"), pa.array(moved)))
    return pa.concat_tables(found).combine_chunks()


def restored(repository: Repository) -> npt.NDArray[np.uint64]:
    """Of what runs removed, the hashes of what may be there again."""
    with repository.records.read() as tx:
        back = tombstones.unsettled(tx, repository.uid)
    return np.sort(address_hash(pa.array(back, pa.string())))


def counted_objects(answer: PinCounts) -> int:
    return answer.objects.total()
