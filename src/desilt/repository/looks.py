"""The last look at what is held, where nothing can be condemned: what it relies on, and for how long it counts.

Such a repository is read again right before each batch. A look that was begun moments ago serves the next one as well,
unless somebody has ordered something to be kept since.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from desilt.errors import WentBack
from desilt.records import holds, revisions
from desilt.repository.gate import Reliance
from desilt.repository.graced import GracedCore
from desilt.repository.policy import check_policy
from desilt.repository.snapshot import Revision

FRESH_SECONDS = 30.0  # for which a look counts as one from right before


class Looks:
    """Of a run, one after the other."""

    def __init__(
        self,
        core: GracedCore,
        run: str,
        since: Revision,
        relies_on: Reliance,
        *,
        swept: bool = False,
        clock: Callable[[], float],
    ) -> None:
        self.number = since.number  # of the revision that was seen
        self.took = 0.0  # seconds
        self._core, self._run, self._since, self._relies_on = core, run, since, relies_on
        self._swept, self._clock = swept, clock
        self._began: float | None = None
        self._checked: Revision | None = None

    def fresh_for(self, besides: float = 0.0) -> float:
        """Seconds from the beginning of a look, which took so many ``besides``; where it takes long, as long again, or
        one would follow the other."""
        return max(FRESH_SECONDS, 2 * (self.took + besides))

    def is_fresh(self, besides: float = 0.0) -> bool:
        """Whether the last one still counts."""
        if self._began is None or self._clock() - self._began >= self.fresh_for(besides):
            return False
        with self._core.records.read() as tx:
            return not any(True for _ in holds.since(tx, self._core.uid, self.number))

    @contextmanager
    def look(self) -> Iterator[None]:
        """One more, as old as the moment it begins. One that fails, or sees what is not checked, never counts."""
        began, self._checked = self._clock(), None
        yield
        if self._checked is None:
            raise AssertionError("what was seen was not checked")
        self._began, self.took, self.number = began, self._clock() - began, self._checked.number

    def check(self, seen: Revision) -> None:
        """What was ``seen`` is of the history that the run's plan is of, and so is its policy; else refused."""
        with self._core.records.read() as tx:
            known = revisions.at(tx, self._core.uid, self._since.number)
            if known is None or known.mark != self._since.mark:
                raise WentBack(f"the records do not know revision {self._since.number}, which it saw", "plan again")
            if not self._swept:
                check_policy(tx, self._core.uid, self._run, self._relies_on)
        self._checked = seen
