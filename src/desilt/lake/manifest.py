"""The staging manifest: every staged entry of a branch, or of all, written down as a range would be.

What a run reads of it it keeps by the column (:mod:`desilt.lake.areas`); this is for whoever wants a commit of it.
One snapshot of the raw rows, areas that are sealed included, and entries that a
newer one hides: whatever is staged anywhere is held. (Not a difference to the
commit: bytes uploaded again under the same path would not show in one.)
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice

from desilt.errors import Unreadable
from desilt.lake import refs, repositories, staging
from desilt.lake.core import Core
from desilt.records.database import Transaction
from desilt.sstable.ranges import EMPTY, STAGING, Ranges
from desilt.sstable.records import paired
from desilt.sstable.table import RAW
from desilt.sstable.values import RangeData

PAGE = 20_000


@dataclass(frozen=True, slots=True)
class StagingManifest:
    """What was staged at one moment. A record's key is its staging area's token, a slash, and the path."""

    metarange: str  # below :data:`STAGING`; "" if nothing was staged
    entries: int
    generation: int  # of refs, in the same snapshot
    taken_at: datetime
    branches: tuple[refs.LakeBranch, ...]


def ranges_of(core: Core) -> Ranges:
    """Where manifests are kept: ranges like any other, in a folder of their own."""
    return Ranges(core.store, core.prefix, folder=STAGING)


def prepare(core: Core, branch: str | None = None) -> StagingManifest:
    """Write down what is staged on ``branch``, or on every branch."""
    ranges = ranges_of(core)
    written: list[RangeData] = []
    writer, count = ranges.writer(), 0
    with core.database.read() as tx:
        generation, taken_at = repositories.generation(tx, core.uid), core.clock()
        if stray := staging.strays(tx):
            raise Unreadable(f"staging area {stray[0]} belongs to no branch: rows are missing; see `desilt fsck`")
        found = [refs.branch(tx, core.uid, branch)] if branch else refs.branches(tx, core.uid)
        pairs = _staged(tx, sorted(token for one in found for token in one.tokens))
        while page := list(islice(pairs, PAGE)):
            count += len(page)
            written += map(ranges.put, writer.add(paired(page, RAW)))
        written += map(ranges.put, writer.finish())
    if sum(one.count for one in written) != count:
        raise AssertionError("a staging manifest lost entries on the way")
    metarange = ranges.put_metarange(written) if written else EMPTY
    return StagingManifest(metarange, count, generation, taken_at, tuple(found))


def _staged(tx: Transaction, tokens: Sequence[str]) -> Iterator[tuple[bytes, bytes]]:
    for token in tokens:
        for path, value, _ in staging.entries(tx, token):
            yield f"{token}/".encode() + path, value
