"""What moved since a plan was made, judged again: every commit that came after it holds what it holds.

A plan names the generation of refs at which it read commits. Commits made later
are few, and what they bring is read here, once for each new range. A plan that
relies on refs and rules (it *watches* them) is judged again by those too.
"""

from hashlib import sha256

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from desilt.errors import WentBack
from desilt.frames.hashing import Hashes, address_hash
from desilt.lake import commits, holds, repositories
from desilt.lake.database import Transaction
from desilt.lake.holds import Hold, Kind
from desilt.lake.ranges import FOLDER as RANGES
from desilt.lake.repository import Repository
from desilt.runs.folder import Folder
from desilt.runs.plan import Plan, run_of
from desilt.sources.range_cache import entries_of
from desilt.sweep import moved
from desilt.sweep.commits import left, planned
from desilt.sweep.policy import check_policy

Flags = npt.NDArray[np.bool_]


class Recheck:
    """What is held since the plan, up to ``generation``."""

    def __init__(self, repository: Repository, plan: Plan) -> None:
        self.generation = plan.generation
        self._repository, self._plan = repository, plan
        self._judged: set[str] | None = None  # ranges that the plan took into account
        self._read: set[str] = set()  # and those that were read here
        self._held: Hashes = np.zeros(0, np.uint64)
        self._prefixes: tuple[str, ...] = ()
        self._left = bool(plan.history and "commits" in plan.history)  # whether commits that stayed are still to read

    def catch_up(self) -> None:
        """Read what has come to hold something since the last look."""
        going = planned(self._repository, self._plan) if self._left else ()
        with self._repository.database.read() as tx:
            generation = repositories.generation(tx, self._repository.uid)
            if repositories.mark_at(tx, self._repository.uid, self._plan.generation) != self._plan.mark:
                raise WentBack(f"the database does not know generation {self._plan.generation}, which the plan saw")
            if generation < self.generation:
                raise WentBack(f"the database is at move {generation}, and was at {self.generation} a moment ago")
            if generation == self.generation and not self._left:
                return
            check_policy(tx, self._plan)
            new = commits.metaranges_since(tx, self._repository.uid, self.generation)
            new |= left(tx, self._repository, going)
            orders = [
                hold
                for hold in holds.since(tx, self._repository.uid, self._plan.generation)
                if hold.counts(min(self._plan.now, self._repository.clock()))
            ]
            found = self._moved(tx) | {moved.Moved(one) for one in self._ordered(tx, orders)}
        self._left = False
        if self._plan.watches is None:
            for metarange in sorted(new):
                self._add(metarange, passing_over=self._known())
        for one in found:
            had = {listed.id for base in one.bases for listed in self._repository.ranges.metarange(base)}
            self._add(one.metarange, passing_over=had)
        self._hold(pa.array([hold.value for hold in orders if hold.kind is Kind.ADDRESS], pa.string()))
        self._prefixes = tuple(hold.value for hold in orders if hold.kind is Kind.PREFIX)
        self.generation = generation

    def holds(self, rows: pa.Table) -> Flags:
        """Which of a plan's rows are held by something that came after it."""
        found: Flags = np.isin(address_hash(rows["address"].combine_chunks()), self._held)
        if self._prefixes and self._plan.watches is not None:
            paths = [text.split("\0")[1:] for text in rows["detail"].to_pylist()]  # after the rules, as they are shown
            found |= np.array([any(path.startswith(self._prefixes) for path in some) for some in paths], np.bool_)
        return found

    def _moved(self, tx: Transaction) -> set[moved.Moved]:
        watches = self._plan.watches
        return moved.moves(tx, self._repository.uid, watches, self._plan.generation) if watches else set()

    def _ordered(self, tx: Transaction, orders: list[Hold]) -> set[str]:
        """The metaranges of commits that people ordered to be kept."""
        if self._plan.watches is None:
            return set()  # whatever is in a commit is kept anyway
        fetch = commits.fetching(tx, self._repository.uid)
        return {fetch(hold.value).metarange for hold in orders if hold.kind is Kind.REF}

    def _add(self, metarange: str, *, passing_over: set[str]) -> None:
        tables = self._repository.ranges.metarange(metarange)
        self._hold(pa.array([RANGES + name for name in (metarange, *(listed.id for listed in tables))], pa.string()))
        for listed in tables:
            if listed.id not in passing_over and listed.id not in self._read:
                self._read.add(listed.id)
                self._hold(entries_of(self._repository.ranges, listed, 0)["address"].combine_chunks())

    def _hold(self, addresses: pa.Array) -> None:
        self._held = np.union1d(self._held, address_hash(addresses))

    def _known(self) -> set[str]:
        if self._judged is None:
            judged = Folder(self._repository.store, self._repository.prefix, run_of(self._plan)).judged_ranges()
            whole = sha256(judged).hexdigest() == self._plan.ranges
            self._judged = set(judged.decode().split()) if whole else set()  # then all in new commits counts as new
        return self._judged
