"""What moved since a plan was made, judged again: every commit that came after it holds what it holds.

A plan names the generation of refs at which it read commits. Commits made later
are few, and what they bring is read here, once for each new range.
"""

import numpy as np

from desilt.errors import NotFound, WentBack
from desilt.frames.hashing import Hashes, address_hash
from desilt.lake import commits, repositories
from desilt.lake.repository import Repository
from desilt.runs.folder import Folder
from desilt.runs.plan import Plan, run_of
from desilt.sources.range_cache import entries_of


class Recheck:
    """The addresses that commits made since the plan hold, up to ``generation``."""

    def __init__(self, repository: Repository, plan: Plan) -> None:
        self.generation = plan.generation
        self._repository, self._plan = repository, plan
        self._judged: set[str] | None = None  # ranges that the plan took into account, or that were read since
        self._held: Hashes = np.zeros(0, np.uint64)

    def catch_up(self) -> None:
        """Read what commits have brought since the last look."""
        with self._repository.database.read() as tx:
            generation = repositories.generation(tx, self._repository.uid)
            if repositories.mark_at(tx, self._repository.uid, self._plan.generation) != self._plan.mark:
                raise WentBack(f"the database does not know generation {self._plan.generation}, which the plan saw")
            new = commits.metaranges_since(tx, self._repository.uid, self.generation)
        judged = self._known() if new else set()
        for metarange in sorted(new):
            for listed in self._repository.ranges.metarange(metarange):
                if listed.id not in judged:
                    rows = entries_of(self._repository.ranges, listed, 0)
                    found = address_hash(rows["address"].combine_chunks())
                    self._held = np.union1d(self._held, found)
                    judged.add(listed.id)
        self.generation = generation

    def holds(self, hashes: Hashes) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Which of ``hashes`` some newer commit holds."""
        found: np.ndarray[tuple[int], np.dtype[np.bool_]] = np.isin(hashes, self._held)
        return found

    def _known(self) -> set[str]:
        if self._judged is None:
            folder = Folder(self._repository.store, self._repository.prefix, run_of(self._plan))
            try:
                self._judged = set(self._repository.store.get(folder.ranges).decode().split())
            except NotFound:
                self._judged = set()  # then everything in the new commits counts as new
        return self._judged
