"""So many deletes a second, whoever does them: leased from the records by every task that is about to delete."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from desilt.logs import logger
from desilt.records import budget as leases
from desilt.repository.protocol import Repository

LEASE_SECONDS = 1.0  # that a lease lasts: what is lost with a task, and how long nobody looks at the lock
log = logger(__name__)


@dataclass(frozen=True, slots=True)
class Budget:
    """What one task takes its leases from; without a limit there are none, and no cost."""

    repository: Repository
    per_second: int | None  # of all tasks together
    sleep: Callable[[float], None] = time.sleep

    def portions(self, keys: Sequence[str]) -> Iterator[Sequence[str]]:
        """All of ``keys``, in parts: each is given out once it is its turn to be deleted."""
        size = len(keys) if self.per_second is None else max(1, int(self.per_second * LEASE_SECONDS))
        for at in range(0, len(keys), size or 1):
            some = keys[at : at + size]
            if self.per_second is not None:
                self._wait(len(some) / self.per_second)
            yield some

    def hold_back(self, seconds: float) -> None:
        """The store has no time for so many: nobody is given another lease that begins within ``seconds``."""
        if self.per_second is not None:
            with self.repository.records.write() as tx:
                leases.hold_back(tx, self.repository.uid, seconds)

    def _wait(self, seconds: float) -> None:
        with self.repository.records.write() as tx:
            wait = leases.lease(tx, self.repository.uid, seconds)
        if wait > 0:
            log.debug("%.1f s until the next deletes", wait)
            self.sleep(wait)
