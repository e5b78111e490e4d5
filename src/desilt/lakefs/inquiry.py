"""What branches were asked for in one look at them: as long as that look counts, nothing is asked for twice."""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cached_property

import numpy as np

from desilt.columns.hashing import Hashes, address_hash
from desilt.columns.runs import distinct
from desilt.errors import NotFound
from desilt.lakefs.core import LakefsCore
from desilt.lakefs.pages import UNSURE

AT_ONCE = 8  # requests
TOGETHER = 1_000_000  # addresses, before those that came twice are dropped
REMOVED = "removed"  # what was done to a path
NONE: Hashes = np.zeros(0, np.uint64)
Change = tuple[str, int | None]  # a path, and the size of what was put there
Changed = Mapping[str, Sequence[Change] | None]  # by branch; None: it must be listed


class Inquiry:
    """Branches with the commits that they were seen at."""

    def __init__(self, core: LakefsCore, heads: Mapping[str, str]) -> None:
        self._core, self._heads = core, heads
        self._listed: set[str] = set()
        self._hashes = NONE
        self.seconds = 0.0  # that it took

    @cached_property
    def changed(self) -> Changed:
        """What differs on each branch from its commit; of one that has moved since, nothing that would be sure."""
        with self._timed(), ThreadPoolExecutor(AT_ONCE) as threads:
            return dict(zip(self._heads, threads.map(self._changes, self._heads), strict=True))

    def _changes(self, branch: str) -> list[Change] | None:
        server = self._core.server
        try:
            found = [(path, size) for path, kind, size in server.changes(branch) if kind != REMOVED]
        except NotFound:
            found = []
        at = server.head_of(branch)
        if at is None:
            return []  # what was staged there is gone with it
        return None if at != self._heads[branch] or any(UNSURE in path for path, _ in found) else found

    def listed(self, branches: Iterable[str]) -> Hashes:
        """The hashes of all addresses inside that ``branches`` serve, and others that were listed before."""
        new = [branch for branch in branches if branch not in self._listed]
        with self._timed(), ThreadPoolExecutor(AT_ONCE) as threads:
            self._hashes = each_once(self._hashes, threads.map(self._addresses, new))
        self._listed |= set(new)
        return self._hashes

    @contextmanager
    def _timed(self) -> Iterator[None]:
        began = time.monotonic()
        yield
        self.seconds += time.monotonic() - began

    def _addresses(self, branch: str) -> Hashes:
        found = [NONE]
        for page in self._core.server.places(branch):
            found.append(address_hash(self._core.place.inside(page.addresses).drop_null()))
        return np.sort(np.concatenate(found))


def each_once(known: Hashes, others: Iterable[Hashes]) -> Hashes:
    """All of them in order; what is added up takes no more than as much again, or little."""
    waiting, count = [known], 0
    for found in others:
        waiting.append(found)
        count += len(found)
        if count > max(len(waiting[0]), TOGETHER):
            waiting, count = [distinct(np.concatenate(waiting))], 0
    return distinct(np.concatenate(waiting))
