"""What has come to be held since verdicts were made: every commit that came after them holds what it holds.

Verdicts name the revision at which commits were read. Commits made later are few, and
what they bring is read here, once for each new range. Verdicts that went by rules are
judged again by those, too: where refs have moved, a rule may say something else.

Verdicts that nobody vouches for name no tables that were taken into account. Then what
was held before counts as well: every commit, every hold, and whatever is so young
that somebody may still be uploading it.
"""

import numpy as np
import pyarrow as pa

from desilt.cache.ranges import entries_of
from desilt.columns.arrays import Flags
from desilt.columns.hashing import Hashes, address_hash
from desilt.columns.schemas import DIVIDER
from desilt.domain.times import CLOCK_MARGIN, seconds
from desilt.errors import DamagedRun, WentBack
from desilt.lake import commits, moved, repositories
from desilt.lake.core import Core
from desilt.lake.layout import LAYOUT
from desilt.records import holds
from desilt.records.database import Transaction
from desilt.records.holds import Hold, HoldKind
from desilt.repository.gate import Reliance
from desilt.repository.policy import check_policy
from desilt.repository.snapshot import Revision
from desilt.sstable.ranges import FOLDER as RANGES

EVER = -1  # before the first move


class LakeHeld:
    """What is held since verdicts were made, up to ``generation``."""

    def __init__(self, core: Core, run: str, since: Revision, relies_on: Reliance) -> None:
        self.generation = since.number
        self._core, self._run, self._since, self._relies_on = core, run, since, relies_on
        self._judged: set[str] | None = None  # ranges that were taken into account
        self._read: set[str] = set()  # and those that were read here
        self._held: Hashes = np.zeros(0, np.uint64)
        self._prefixes: tuple[str, ...] = ()
        self._vouched = relies_on.judged is not None
        self._unseen = not self._vouched  # whether what was held before is still to read
        self._left = relies_on.taken is not None  # whether commits that stayed after all are still to read

    def catch_up(self) -> None:
        """Read what has come to hold something since the last look."""
        going = self._taken() if self._left else ()
        with self._core.database.read() as tx:
            generation = repositories.generation(tx, self._core.uid)
            if repositories.mark_at(tx, self._core.uid, self._since.number) != self._since.mark:
                raise WentBack(f"the database does not know generation {self._since.number}, which the plan saw")
            if generation < self.generation:
                raise WentBack(f"the database is at move {generation}, and was at {self.generation} a moment ago")
            if generation == self.generation and not self._left and not self._unseen:
                return
            check_policy(tx, self._core.uid, self._run, self._relies_on)
            new = commits.metaranges_since(tx, self._core.uid, EVER if self._unseen else self.generation)
            new |= self._still_there(tx, going)
            orders = [
                hold
                for hold in holds.since(tx, self._core.uid, self._since.number if self._vouched else EVER)
                if hold.counts(min(self._relies_on.at, self._core.clock()))
            ]
            found = self._moved(tx) | {moved.Moved(one) for one in self._ordered(tx, orders)}
        self._left = self._unseen = False
        if self._relies_on.rules is None or not self._vouched:
            for metarange in sorted(new):
                self._add(metarange, passing_over=self._known())
        for one in found:
            had = {listed.id for base in one.bases for listed in self._core.ranges.metarange(base)}
            self._add(one.metarange, passing_over=had)
        self._hold(pa.array([hold.value for hold in orders if hold.kind is HoldKind.ADDRESS], pa.string()))
        self._prefixes = tuple(hold.value for hold in orders if hold.kind is HoldKind.PREFIX)
        self.generation = generation

    def holds(self, rows: pa.Table) -> Flags:
        """Which of a plan's rows are held by something that came after it."""
        found: Flags = np.zeros(len(rows), np.bool_)
        if len(self._held):
            found = np.isin(address_hash(rows["address"].combine_chunks()), self._held)
        if self._prefixes and self._relies_on.rules is not None:
            paths = [text.split(DIVIDER)[1:] for text in rows["detail"].to_pylist()]  # as they are shown
            found |= np.array([any(path.startswith(self._prefixes) for path in some) for some in paths], np.bool_)
        return found if self._vouched else found | self._young(rows)

    def _young(self, rows: pa.Table) -> Flags:
        """Which somebody may still be uploading, by the times in their names, or by the store's."""
        settled, addresses = (
            self._core.clock() - self._core.ticket_life - CLOCK_MARGIN,
            rows["address"].combine_chunks(),
        )
        objects = LAYOUT.objects(addresses)
        found: Flags = objects.copy()
        found[objects] = LAYOUT.address_seconds(addresses.filter(pa.array(objects))) >= seconds(settled)
        return found | np.array([at is None or at >= settled for at in rows["modified_at"].to_pylist()], np.bool_)

    def _moved(self, tx: Transaction) -> set[moved.Moved]:
        rules = self._relies_on.rules if self._vouched else None  # else all that any commit has is kept
        return moved.moves(tx, self._core.uid, rules, self._since.number) if rules else set()

    def _ordered(self, tx: Transaction, orders: list[Hold]) -> set[str]:
        """The metaranges of commits that people ordered to be kept."""
        if self._relies_on.rules is None:
            return set()  # whatever is in a commit is kept anyway
        fetch = commits.fetching(tx, self._core.uid)
        return {fetch(hold.value).metarange for hold in orders if hold.kind is HoldKind.REF}

    def _still_there(self, tx: Transaction, going: tuple[str, ...]) -> set[str]:
        """The metaranges of commits that were to go and are there: something reaches them again."""
        fetch = commits.fetching(tx, self._core.uid)
        return {fetch(name).metarange for name in commits.there(tx, self._core.uid, going)}

    def _taken(self) -> tuple[str, ...]:
        taken = self._relies_on.taken
        assert taken is not None
        data = taken.read(self._core.store)
        if data is None:
            raise DamagedRun(taken.key, "is not what was planned")
        return tuple(line.partition("\t")[0] for line in data.decode().splitlines())

    def _add(self, metarange: str, *, passing_over: set[str]) -> None:
        tables = self._core.ranges.metarange(metarange)
        self._hold(pa.array([RANGES + name for name in (metarange, *(listed.id for listed in tables))], pa.string()))
        for listed in tables:
            if listed.id not in passing_over and listed.id not in self._read:
                self._read.add(listed.id)
                self._hold(entries_of(self._core.ranges, listed, 0)["address"].combine_chunks())

    def _hold(self, addresses: pa.Array) -> None:
        self._held = np.union1d(self._held, address_hash(addresses))

    def _known(self) -> set[str]:
        if self._judged is None:
            judged = self._relies_on.judged.read(self._core.store) if self._relies_on.judged else None
            self._judged = set(judged.decode().split()) if judged else set()  # then all in new commits counts as new
        return self._judged
