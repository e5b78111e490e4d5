"""What holds a file of the repository by now: refs and history, read again right before each batch.

A ref may be put onto anything that is there, with a branch made or reset, at any moment. So whatever a ref reaches by
now holds its snapshot file, its log, its manifests and the chunks that these refer to; and so does a snapshot that the
repository lists though no ref reaches it, unless this very run took it. Chunks of manifests that verdicts took into
account need not be read twice: they are held already, and manifests never change. Logs are kept too that a snapshot has
taken over from expired ones. What is young, by the store's clock, is left to the sessions that may have written it.
"""

from collections.abc import Callable, Collection, Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from desilt.cache.ranges import Placed
from desilt.clock import elapsed
from desilt.columns.arrays import Flags
from desilt.columns.buckets import every
from desilt.columns.files import Files
from desilt.columns.hashing import Hashes, address_hash
from desilt.domain.times import CLOCK_MARGIN
from desilt.errors import DamagedRun
from desilt.executors.executor import HERE
from desilt.icechunk import seen
from desilt.icechunk.core import IcechunkCore
from desilt.icechunk.format.repo_info import refuse_unless_online
from desilt.icechunk.layout import MANIFESTS, SNAPSHOTS, TRANSACTIONS
from desilt.icechunk.seen import Looked
from desilt.icechunk.source import IcechunkSource
from desilt.records.holds import HoldKind
from desilt.repository.gate import Reliance
from desilt.repository.looks import Looks
from desilt.repository.sealed import Sealed
from desilt.repository.snapshot import Revision


class IcechunkHeld:
    """What is held by now, whatever verdicts have not taken into account."""

    def __init__(
        self,
        core: IcechunkCore,
        run: str,
        since: Revision,
        relies_on: Reliance,
        *,
        swept: bool = False,
        clock: Callable[[], float] = elapsed,
    ) -> None:
        self._core, self._relies_on, self._source = core, relies_on, IcechunkSource(core, HERE)
        self._looks = Looks(core, run, since, relies_on, swept=swept, clock=clock)
        self._named: dict[Sealed, set[str]] = {}
        self._read: set[str] = set()  # manifests
        self._chunks: Hashes = np.zeros(0, np.uint64)
        self._now: Hashes = np.zeros(0, np.uint64)  # files that are reached, or ordered to be kept

    @property
    def generation(self) -> int:
        """Of what was seen last."""
        return self._looks.number

    def catch_up(self) -> None:
        """Read refs and all that they reach, unless that was done a moment ago."""
        if self._looks.is_fresh():
            return
        with self._looks.look():
            looked = seen.look(self._core, min(self._relies_on.at, self._core.clock()))
            refuse_unless_online(looked.found.availability)
            self._looks.check(looked.seen.revision)
            self._now = address_hash(pa.array(sorted(self._files(looked)), pa.string()))

    def holds(self, rows: pa.Table) -> Flags:
        """Which of a plan's rows are held, or so young that a session may have them."""
        hashes = address_hash(rows["address"].combine_chunks())
        found: Flags = np.isin(hashes, self._now) | np.isin(hashes, self._chunks) | self._young(rows)
        return found

    def _young(self, rows: pa.Table) -> Flags:
        """By the store's clock, as the run was told how old things must be; counted to when it was made at most."""
        told = self._relies_on.least_age
        age = self._core.grace + CLOCK_MARGIN if told is None else told
        before = min(self._relies_on.at, self._core.clock()) - age
        dates = rows["modified_at"]
        young: Flags = pc.fill_null(pc.greater_equal(dates, pa.scalar(before, dates.type)), True).to_numpy()
        return young

    def _files(self, looked: Looked) -> set[str]:
        """The addresses of all files that something has by now; the chunks of their manifests are read."""
        whole = looked.seen
        self._source.know(looked.found)
        kept = whole.below(whole.tips | (whole.commits.keys() - self._names(self._relies_on.taken)))
        lists = self._source.lists(one for one in whole.in_time if one.id in kept)
        manifests = {name for listed in lists.of.values() for name in listed}
        new = manifests - self._names(self._relies_on.judged) - self._read
        if new:
            self._add(self._source.entries([lists.ranges[name] for name in sorted(new)]))
            self._read |= new
        logs = kept | {log for name in kept for log in looked.found.pruned.get(name, ())}
        return {
            *_below(SNAPSHOTS, kept),
            *_below(TRANSACTIONS, logs),
            *_below(MANIFESTS, manifests),
            *(hold.value for hold in whole.held(HoldKind.ADDRESS)),
        }

    def _add(self, files: Iterable[Placed]) -> None:
        opened = Files(self._core.store)
        found = [opened.hashes([placed.held], bucket) for placed in files for bucket in every(placed.file.buckets)]
        self._chunks = np.unique(np.concatenate([self._chunks, *found]))

    def _names(self, sealed: Sealed | None) -> set[str]:
        """What a file of a signed plan lists, a name at the beginning of each line; nothing, where there is none."""
        if sealed is None:
            return set()
        if sealed not in self._named:
            data = sealed.read(self._core.store)
            if data is None:
                raise DamagedRun(sealed.key, "is not what was planned")
            self._named[sealed] = {line.split("\t")[0] for line in data.decode().splitlines()}
        return self._named[sealed]


def _below(folder: str, names: Collection[str]) -> Iterable[str]:
    return (folder + name for name in names)
